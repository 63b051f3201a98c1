/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_JSON_PICK_H
#define PROVIDERS_LOCAL_JSON_PICK_H

#include "base/attr.h"
#include "base/buf.h"

/*
 * Takes named values from a JSON file and nothing else. A key is a path through objects, "a.b.c";
 * lists of keys are sorted as by strcmp(3) and NULL-terminated. Only strings, numbers, booleans and
 * arrays of these are taken; any other value counts as missing. The texts may be hostile. A text
 * that is not a JSON object is refused with ERROR_PROTOCOL.
 */
enum { JSON_PICK_VALUE_MAX = 16384 }; // bytes of one value; a longer one counts as missing

/* Appends an object with the values of these keys, "{}" if it has none of them. */
bool json_pick(struct span text, const char *const *keys, struct buf *out,
	struct error *err) ATTR_NODISCARD;

/*
 * Appends `text` after replacing the values of these keys with those of `from`. A value is replaced
 * only if both texts have the key and both values have the same type. Every other byte of the text
 * stays.
 */
bool json_renew(struct span text, struct span from, const char *const *keys, struct buf *out,
	struct error *err) ATTR_NODISCARD;

/*
 * Whether the value of `key` in `from` is greater than in `text`. Compares two numbers, or two
 * strings as strcmp(3) does, for example times of RFC 3339. False if either value is missing.
 */
bool json_is_newer(struct span text, struct span from, const char *key);

#endif
