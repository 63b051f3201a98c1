/* SPDX-License-Identifier: MIT */
#ifndef BASE_JSON_CHECK_H
#define BASE_JSON_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

/*
 * Checks one JSON document as it arrives, in pieces of any size, and records where the values of
 * known places begin and end. It is strict: the grammar of RFC 8259, well-formed UTF-8 (no
 * surrogates, no overlong forms; an escaped lone surrogate is grammatical and passes), at most
 * JSON_DEPTH_MAX levels, one document with only white space around it. Its memory is its own struct
 * and the recorded hits; of the document it keeps only the bytes of KEEP places.
 */
enum {
	JSON_DEPTH_MAX = 256,
	JSON_HITS_MAX = 65536, // recorded values per document (24 bytes each)
	JSON_KEEP_MAX = 256,   // bytes kept of a KEEP place
	JSON_KEEP_PLACES = 2,  // KEEP places a table may have
	JSON_PLACE_DEPTH = 12, // steps of a place's path
};

enum json_place_flag {
	JSON_PLACE_ONCE = 1 << 0, // a second one in the same document is an error
	JSON_PLACE_KEEP = 1 << 1, // its bytes are kept even when the document is not
	/* The last name matches in any case: some readers accept "ID" for "id". */
	JSON_PLACE_ANY_CASE = 1 << 2,
};

/*
 * A known place: member names from the root, separated by dots; "[]" steps into every element of an
 * array: "params.update.locations[].path". Names are compared after escapes are decoded, so that
 * "p\u0061th" is path. The caller chooses `id`: 0 <= id < 256, and different for each place.
 */
struct json_place { // NOLINT(clang-analyzer-optin.performance.Padding): read in this order
	int id;
	const char *path;
	unsigned int flags; // enum json_place_flag
};

/*
 * A compiled table of places; immutable, and any number of checkers may share it. The path "" is
 * the document itself. A step's name has at most 63 bytes. A table that breaks a rule is a
 * programming mistake and trips an assert.
 */
struct json_places;
struct json_places *json_places_create(const struct json_place *table, size_t count);
void json_places_destroy(struct json_places *places);

/* One value of a known place: [start, end) counted from the document's first byte. */
struct json_hit {
	size_t start;
	size_t end;
	uint32_t place; // json_place.id
	uint32_t depth; // of the value; the document's is 0
};

struct json_check;

/* The places are borrowed and must outlive the checker; NULL for none. */
struct json_check *json_check_create(const struct json_places *places);
void json_check_destroy(struct json_check *check);

/* Forgets the document; the next feed begins another. */
void json_check_reset(struct json_check *check);

/*
 * Feeds the next bytes. Fails with ERROR_PROTOCOL; the text says what was wrong at which byte
 * ("byte 17: control character in a string", counted from 0). Fails with ERROR_LIMIT for depth or
 * hits. After a failure only reset is allowed. The kept places and the hits recorded until then
 * stay readable, so that an answer can carry the id.
 */
bool json_check_feed(struct json_check *check, struct span bytes, struct error *err) ATTR_NODISCARD;

/* Ends the document; fails if it is incomplete. */
bool json_check_end(struct json_check *check, struct error *err) ATTR_NODISCARD;

/* Whether any byte but white space was fed. */
bool json_check_is_blank(const struct json_check *check);

/* Hits in the order in which their values ended. */
size_t json_check_hit_count(const struct json_check *check);
const struct json_hit *json_check_hits(const struct json_check *check);

/* The first hit of a place, or NULL. */
const struct json_hit *json_check_find(const struct json_check *check, int place);

/*
 * The kept bytes of a KEEP place (of its first occurrence), borrowed until reset. False if the
 * place did not occur, has not ended, or was longer than JSON_KEEP_MAX.
 */
bool json_check_kept(const struct json_check *check, int place, struct span *out_bytes);

#endif
