/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_HOST_NAMES_H
#define PROVIDERS_LOCAL_NET_HOST_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"

/*
 * The names that a cell's programs have asked for. Each gets its own address from 198.18.0.0/15
 * (RFC 2544), which no host on the Internet has. An address is never given to another name: a
 * program that kept it reaches the same name, or nothing.
 */
struct host_names;

enum {
	NAME_MAX_BYTES = 253, // RFC 1035, section 2.3.4, without the trailing dot
	NAME_SIZE = 256,
	NAMES_MAX = 8192,         // further names are not resolved
	NAMES_FIRST = 0xc6120100, // 198.18.1.0; earlier ones are our own
};

/*
 * Normalises a name: lower case, without the trailing dot. Accepts letters, digits, hyphens and
 * underscores. False for any other text, and if the last label is a decimal or hexadecimal number,
 * because that would be an address.
 */
bool host_name_read(char out[NAME_SIZE], struct span text) ATTR_NODISCARD;

struct host_names *host_names_create(void);
void host_names_destroy(struct host_names *names); // NULL is fine

/*
 * Returns the address of a name (from host_name_read), in host order. 0: there are too many names.
 */
uint32_t host_names_give(struct host_names *names, const char *name);

/* The name of an address, borrowed until the end. NULL: no name has it. */
const char *host_names_find(const struct host_names *names, uint32_t address);

#endif
