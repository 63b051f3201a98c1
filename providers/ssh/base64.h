/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_BASE64_H
#define PROVIDERS_SSH_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"

/* RFC 4648, section 4, with its padding. */

/* The text, terminated; the caller frees it. */
char *base64_encode(struct span bytes);

/*
 * The bytes, the caller's to free; never NULL on success. False where the text is no base64
 * to its last byte: another character, padding that is missing or has bits behind it.
 */
bool base64_decode(struct span text, uint8_t **out_bytes, size_t *out_len) ATTR_NODISCARD;

#endif
