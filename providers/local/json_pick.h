/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_JSON_PICK_H
#define PROVIDERS_LOCAL_JSON_PICK_H

#include "base/attr.h"
#include "base/buf.h"

/*
 * Named values of a JSON file, and nothing else of it. A key is a way through objects, "a.b.c";
 * lists of keys are in the order of strcmp(3), NULL-terminated. Only a string, a number, a boolean,
 * and an array of such values are taken: whatever else stands there is as if it were missing. The
 * texts may be hostile; those that are no JSON object are refused with ERROR_PROTOCOL.
 */
enum { JSON_PICK_VALUE_MAX = 16384 }; // bytes of one value; a longer one is missing

/* Appends an object that has the values of these keys; "{}" where none is there. */
bool json_pick(struct span text, const char *const *keys, struct buf *out,
	struct error *err) ATTR_NODISCARD;

/*
 * Appends `text` with the values that these keys have in `from`. A key is replaced where both have
 * it, and the value has the same type; every other byte of the text stays.
 */
bool json_renew(struct span text, struct span from, const char *const *keys, struct buf *out,
	struct error *err) ATTR_NODISCARD;

/*
 * Whether the value of `key` in `from` is greater than in `text`: of two numbers, or of two texts
 * as strcmp(3) has it, such as times of RFC 3339. False where one of them has no such value.
 */
bool json_is_newer(struct span text, struct span from, const char *key);

#endif
