/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_HOST_NAMES_H
#define PROVIDERS_LOCAL_NET_HOST_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"

/*
 * The names that a cell's programs have asked for, each with an address of its own from
 * 198.18.0.0/15 (RFC 2544), which is nobody's on the Internet. An address is never another name's
 * later: who kept it reaches what it was given for, or nothing.
 */
struct host_names;

enum {
	NAME_MAX_BYTES = 253, // RFC 1035, section 2.3.4, without the trailing dot
	NAME_SIZE = 256,
	NAMES_MAX = 8192,         // a name more is not resolved
	NAMES_FIRST = 0xc6120100, // 198.18.1.0; those before it are ours
};

/*
 * A name as it is decided by: lower case, without the trailing dot. Letters, digits, hyphens and
 * underscores; not the last label all digits or hexadecimal, which would be an address. False for
 * another.
 */
bool host_name_read(char out[NAME_SIZE], struct span text) ATTR_NODISCARD;

struct host_names *host_names_create(void);
void host_names_destroy(struct host_names *names); // NULL is fine

/* The address of a name (host_name_read), in host order. 0: there are too many. */
uint32_t host_names_give(struct host_names *names, const char *name);

/* The name of an address; borrowed until the end. NULL: none has it. */
const char *host_names_find(const struct host_names *names, uint32_t address);

#endif
