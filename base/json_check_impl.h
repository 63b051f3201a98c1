/* SPDX-License-Identifier: MIT */
#ifndef BASE_JSON_CHECK_IMPL_H
#define BASE_JSON_CHECK_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json_check.h"

/*
 * The internals of the checker, for its own files only: json_places.c compiles the known places to
 * a tree, json_check.c drives and records, json_steps.c knows the grammar between strings,
 * json_text.c the inside of strings.
 */
enum {
	JSON_NAME_MAX = 63,   // bytes of one step's name
	JSON_PLACE_IDS = 256, // json_place.id is below
};

/* A step of the known paths. The root stands for the document. */
struct json_place_node {
	struct json_place_node *members; // first of the known members; may be NULL
	struct json_place_node *next;    // the next one of the parent's members
	struct json_place_node *element; // the step "[]"; may be NULL
	uint64_t name_lengths;           // bit n: a known member's name has n bytes
	int place;          // json_place.id, or -1 for a step that only leads to a place
	unsigned int flags; // enum json_place_flag
	size_t name_len;
	char name[JSON_NAME_MAX];
};

/* The root of a table, or NULL for no table. */
const struct json_place_node *json_places_root(const struct json_places *places);

/* The known member of that name, or NULL. */
const struct json_place_node *json_places_member(
	const struct json_place_node *object, const char *name, size_t len);

/* What the next byte belongs to. */
enum json_state {
	STATE_START,         // before the document
	STATE_VALUE,         // a value must come
	STATE_FIRST_ELEMENT, // a value or ]
	STATE_FIRST_NAME,    // a name or }
	STATE_NAME,          // a name must come
	STATE_COLON,
	STATE_AFTER_VALUE, // a comma or the container's end
	STATE_STRING,
	STATE_ESCAPE, // after a backslash
	STATE_HEX,    // in the digits of \uXXXX
	STATE_UTF8,   // in a UTF-8 sequence that the last piece cut
	STATE_NUMBER,
	STATE_LITERAL,
	STATE_DONE, // after the document
	STATE_COUNT,
};

enum number_state {
	NUMBER_MINUS,
	NUMBER_ZERO,
	NUMBER_DIGITS,
	NUMBER_POINT,
	NUMBER_FRACTION,
	NUMBER_E,
	NUMBER_SIGN,
	NUMBER_EXPONENT,
	NUMBER_STATES,
	NUMBER_END = NUMBER_STATES, // the number ended before this byte
	NUMBER_BAD,
};

/* An open container that a known path may lead into. */
struct json_level {
	const struct json_place_node *node; // may be NULL
	size_t start;
};

struct json_keep {
	const struct json_place_node *node; // NULL: free
	size_t start;
	size_t len; // over JSON_KEEP_MAX: too long, nothing is kept
	bool active;
	char bytes[JSON_KEEP_MAX];
};

struct json_check {
	enum json_state state;
	enum number_state number;
	bool failed;
	bool in_object;                      // the innermost open container is an object
	bool in_name;                        // the running string is a member's name
	bool captures;                       // ... that may be known, and is collected in `name`
	unsigned int depth;                  // open containers
	const struct json_place_node *value; // of the next or running value; may be NULL
	const struct json_place_node *container; // of the innermost open one; may be NULL
	size_t value_start;
	const char *literal; // the rest of true, false or null

	const unsigned char *piece; // bytes being fed
	size_t piece_start;         // where they begin in the document

	struct json_level levels[JSON_PLACE_DEPTH + 1];
	uint64_t objects[JSON_DEPTH_MAX / 64]; // bit n: the container at depth n is an object

	uint8_t left;     // bytes or digits still missing of a UTF-8 sequence or \uXXXX
	uint8_t utf8_low; // bounds of the next byte of a sequence
	uint8_t utf8_high;
	bool name_fits;
	uint16_t unit;      // digits of \uXXXX so far
	uint16_t name_high; // a high surrogate that waits for its low one; 0: none
	size_t name_len;
	char name[JSON_NAME_MAX];

	size_t hit_count;
	size_t hit_capacity;
	struct json_hit *hits; // owned
	unsigned int keeping;  // active keeps
	uint64_t begun[JSON_PLACE_IDS / 64];
	uint64_t ended[JSON_PLACE_IDS / 64];
	uint32_t first_hits[JSON_PLACE_IDS]; // index of the first hit, where ended
	struct json_keep keeps[JSON_KEEP_PLACES];
	const struct json_places *places; // borrowed; may be NULL
	const struct json_fast *fast;

	size_t error_at;
	enum error_code error_code;
	const char *error_text; // static storage
};

/*
 * The steps consume as much as they can of [at, end) and return where they stopped, with the state
 * set for the next byte; NULL after json_fail.
 */
const unsigned char *json_step_string(
	struct json_check *check, const unsigned char *at, const unsigned char *end);
const unsigned char *json_step_escape(
	struct json_check *check, const unsigned char *at, const unsigned char *end);
const unsigned char *json_step_hex(
	struct json_check *check, const unsigned char *at, const unsigned char *end);
const unsigned char *json_step_utf8(
	struct json_check *check, const unsigned char *at, const unsigned char *end);

/* Runs the grammar over one piece; NULL after json_fail. */
const unsigned char *json_run(
	struct json_check *check, const unsigned char *at, const unsigned char *end);

enum text_class {
	TC_PLAIN = 1 << 0,  // ASCII that means itself
	TC_ESCAPE = 1 << 1, // may follow a backslash as its only character
	TC_HEX = 1 << 2,
};

extern const uint8_t json_text_classes[256];

/* The character that each of "\/bfnrt means after a backslash, indexed by it. */
extern const char json_escape_values[256];

/*
 * How each byte of text is written in a string, as short as possible (RFC 8259 section 7). Two
 * members of eight bytes together, so that eight bytes can be copied at once.
 */
struct json_escape {
	char text[7];
	uint8_t len; // 0: the byte stands for itself
};
extern const struct json_escape json_escapes[128];

/* The length of the escape at `at` if it is complete and valid; otherwise 0. */
static inline size_t json_whole_escape(const unsigned char *at, const unsigned char *end)
{
	if (end - at < 2) {
		return 0;
	}
	if (json_text_classes[at[1]] & TC_ESCAPE) {
		return 2;
	}
	if (at[1] != 'u' || end - at < 6) {
		return 0;
	}
	unsigned int hex = json_text_classes[at[2]] & json_text_classes[at[3]] &
	                   json_text_classes[at[4]] & json_text_classes[at[5]] & TC_HEX;
	return hex ? 6 : 0;
}

/* Whether the bytes are exactly one string with its quotes. */
bool json_is_string(struct span raw);

/* Notes what is wrong with the byte at `at`. Returns NULL. */
const unsigned char *json_fail(struct json_check *check, const unsigned char *at, const char *text);
const unsigned char *json_fail_limit(
	struct json_check *check, const unsigned char *at, const char *text);

/* A value of a known place begins or has ended; false after json_fail. */
bool json_place_begin(struct json_check *check, const struct json_place_node *node, size_t start);
bool json_place_end(struct json_check *check, const struct json_place_node *node, size_t start,
	const unsigned char *at);

/* Whether no known place lies inside the container: the checker records nothing there. */
static inline bool json_is_unknown(const struct json_place_node *container)
{
	return !container || (!container->members && !container->element);
}

static inline size_t json_position(const struct json_check *check, const unsigned char *at)
{
	return check->piece_start + (size_t)(at - check->piece);
}

/* The value that began at `start` ends before `at`. */
static inline const unsigned char *json_value_ended(struct json_check *check,
	const struct json_place_node *node, size_t start, const unsigned char *at)
{
	if (node && node->place >= 0 && !json_place_end(check, node, start, at)) {
		return NULL;
	}
	check->state = check->depth == 0 ? STATE_DONE : STATE_AFTER_VALUE;
	return at;
}

#endif
