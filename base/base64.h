/* SPDX-License-Identifier: MIT */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"

/* RFC 4648, section 4, with its padding. */

/* Returns the text, with a NUL at the end; the caller frees it. */
char *base64_encode(struct span bytes);

/*
 * Returns the bytes, which the caller frees; never NULL on success. False unless the whole text is
 * base64: it contains another character, lacks padding, or has bits after the padding.
 */
bool base64_decode(struct span text, uint8_t **out_bytes, size_t *out_len) ATTR_NODISCARD;

#endif
