/* SPDX-License-Identifier: MIT */

/*
 * The loops of json_fast.h. They look at blocks of 64 bytes. A file that includes this one chooses
 * the instructions. It defines FAST_TARGET (the function attribute, or nothing), FAST_NAME and
 * FAST_TEXT (the name of its table), and these functions. Those with _bits return one bit for each
 * of 64 bytes; the lowest bit belongs to the first byte:
 *
 *     odd_bits(at)          control characters and bytes from 0x80 on
 *     high_bits(at)         bytes from 0x80 on
 *     above_bits(at, byte)  bytes above that one, which is 0x80 or more; the bits of bytes below
 *                           0x80 mean nothing
 *     other_bits(at)        everything but digits
 *     usual_bits(at)        the characters "\/bfnrt
 *     equal_bits(at, byte)  that byte
 *     copy_block(to, at)    copies the 64 bytes
 *
 * The address of the next block does not depend on the contents of this one. So the processor works
 * on several blocks at the same time. Inside a block, the loops only use the bits.
 */
#include <string.h>

#include "base/bytes16.h"
#include "base/json_doc.h"
#include "base/json_fast.h"
#include "base/json_utf8.h"

#define FAST_INLINE FAST_TARGET __attribute__((always_inline))

/* The current block. */
struct block {
	const unsigned char *at;
	uint64_t stops;    // bytes that end plain text, if escapes and UTF-8 count as plain
	uint64_t all;      // the same, if escapes do not count as plain
	uint64_t unusual;  // escaped bytes other than "\/bfnrt
	uint64_t other;    // everything but digits
	bool escapes_next; // the last byte is a backslash that escapes the next block's first byte
};

struct scan {
	struct block block;
	const unsigned char *end; // of the piece
};

/*
 * Finds the escaped bytes: those after a backslash that is not itself escaped. In a row of
 * backslashes, every second one is escaped.
 */
FAST_INLINE static inline uint64_t escaped_bits(
	uint64_t backslashes, bool first_is_escaped, bool *out_next_is)
{
	const uint64_t even = UINT64_C(0x5555555555555555);
	uint64_t first = first_is_escaped ? 1 : 0;
	uint64_t active = backslashes & ~first;
	uint64_t follows = active << 1 | first;
	/* Adding the first bit of a row to the row moves that bit to the byte after the row. */
	uint64_t odd_starts = active & ~even & ~follows;
	uint64_t past;
	*out_next_is = __builtin_add_overflow(odd_starts, active, &past);
	return (even ^ past << 1) & follows;
}

/* The bits of the bytes at a block's beginning that continue a sequence of the block before. */
FAST_INLINE static inline uint64_t continued_bits(const unsigned char *at)
{
	bool first = at[-1] >= 0xc0 || at[-2] >= 0xe0 || at[-3] >= 0xf0;
	bool second = at[-1] >= 0xe0 || at[-2] >= 0xf0;
	bool third = at[-1] >= 0xf0;
	return (uint64_t)first | (uint64_t)second << 1 | (uint64_t)third << 2;
}

/*
 * Checks the UTF-8 sequences of a block (RFC 3629 section 4); `high` are its bytes from 0x80 on.
 * Returns those that must be looked at one by one: if all sequences are well-formed, only those of
 * a last one that goes on behind the block.
 */
FAST_TARGET static __attribute__((noinline)) uint64_t high_stops(
	const unsigned char *at, uint64_t high, bool is_first)
{
	uint64_t leads = high & above_bits(at, 0xbf);
	uint64_t leads3 = high & above_bits(at, 0xdf); // of three bytes or more
	uint64_t leads4 = high & above_bits(at, 0xef);
	uint64_t rest = leads << 1 | leads3 << 2 | leads4 << 3;
	uint64_t cut = leads >> 63 | leads3 >> 62 | leads4 >> 61;
	rest |= is_first ? 0 : continued_bits(at);
	uint64_t bad = rest ^ (high & ~leads);
	bad |= equal_bits(at, 0xc0) | equal_bits(at, 0xc1) | (high & above_bits(at, 0xf4));
	if (leads3 != 0) {
		uint64_t above_8f = above_bits(at, 0x8f);
		uint64_t above_9f = above_bits(at, 0x9f);
		bad |= (equal_bits(at, 0xe0) << 1 & ~above_9f) | // overlong
		       (equal_bits(at, 0xed) << 1 & above_9f) |  // a surrogate
		       (equal_bits(at, 0xf0) << 1 & ~above_8f) | // overlong
		       (equal_bits(at, 0xf4) << 1 & above_8f);   // beyond U+10FFFF
	}
	if (bad != 0) {
		return high;
	}
	return cut != 0 ? high & UINT64_MAX << (63 - __builtin_clzll(leads)) : 0;
}

/*
 * Bytes from 0x80 on that are looked at one by one: for so few, that is quicker than to check all
 * sequences of a block.
 */
enum { FEW_HIGH = 8 };

/* Those of the odd bytes of a block that are not plain text. */
FAST_INLINE static inline uint64_t odd_stops(const unsigned char *at, uint64_t odd, bool is_first)
{
	if (odd == 0) {
		return 0;
	}
	uint64_t high = high_bits(at);
	return __builtin_popcountll(high) <= FEW_HIGH
	               ? odd
	               : (odd & ~high) | high_stops(at, high, is_first);
}

FAST_INLINE static inline void block_load(
	struct block *block, const unsigned char *at, bool first_is_escaped, bool is_first)
{
	uint64_t odd = odd_stops(at, odd_bits(at), is_first);
	uint64_t quotes = equal_bits(at, '"');
	uint64_t backslashes = equal_bits(at, '\\');
	block->at = at;
	block->other = other_bits(at);
	block->all = odd | quotes | backslashes;
	block->stops = odd | quotes;
	block->unusual = 0;
	block->escapes_next = false;
	if (backslashes != 0 || first_is_escaped) {
		uint64_t escaped =
			escaped_bits(backslashes, first_is_escaped, &block->escapes_next);
		block->unusual = escaped & ~usual_bits(at);
		block->stops = odd | (quotes & ~escaped) | block->unusual;
	}
}

/* Loads the block that contains `at`. False: the piece ends before that block does. */
FAST_INLINE static inline bool scan_seek(struct scan *scan, const unsigned char *at)
{
	while (at - scan->block.at >= JSON_FAST_BLOCK) {
		const unsigned char *next = scan->block.at + JSON_FAST_BLOCK;
		if (scan->end - next < JSON_FAST_BLOCK) {
			return false;
		}
		block_load(&scan->block, next, scan->block.escapes_next, false);
	}
	return true;
}

FAST_INLINE static inline uint64_t bits_from(
	uint64_t bits, const struct block *block, const unsigned char *at)
{
	return bits & UINT64_MAX << (at - block->at);
}

/* The first byte from `at` on that is not a digit; NULL if the blocks end first. */
FAST_INLINE static inline const unsigned char *skip_digits(
	struct scan *scan, const unsigned char *at)
{
	while (scan_seek(scan, at)) {
		uint64_t other = bits_from(scan->block.other, &scan->block, at);
		if (other != 0) {
			return scan->block.at + __builtin_ctzll(other);
		}
		at = scan->block.at + JSON_FAST_BLOCK;
	}
	return NULL;
}

/*
 * The text stopped at *at. Returns the byte after the UTF-8 sequence or the escape there. NULL: it
 * is incomplete, invalid or something else, and *at is set to its first byte.
 */
FAST_INLINE static inline const unsigned char *skip_stop(
	const struct scan *scan, const unsigned char **at)
{
	const unsigned char *stop = *at;
	size_t len = 0;
	if ((scan->block.unusual >> (stop - scan->block.at) & 1) != 0) {
		*at = --stop; // the backslash
		len = json_whole_escape(stop, scan->end);
	} else if (*stop >= 0x80) {
		len = utf8_sequence(stop, (size_t)(scan->end - stop));
	}
	return len > 0 ? stop + len : NULL;
}

/*
 * `at` is inside a string. Returns its closing quote, the first byte that may not be skipped, or
 * the end of the blocks.
 */
FAST_INLINE static inline const unsigned char *scan_text(
	struct scan *scan, const unsigned char *at, bool with_escapes)
{
	while (scan_seek(scan, at)) {
		uint64_t stops = with_escapes ? scan->block.stops : scan->block.all;
		stops = bits_from(stops, &scan->block, at);
		if (stops == 0) {
			at = scan->block.at + JSON_FAST_BLOCK;
			continue;
		}
		at = scan->block.at + __builtin_ctzll(stops);
		if (*at == '"') {
			return at;
		}
		const unsigned char *next = skip_stop(scan, &at);
		if (!next) {
			return at;
		}
		at = next;
	}
	/* The last byte of the last block begins an escape. */
	bool is_cut =
		with_escapes && at == scan->block.at + JSON_FAST_BLOCK && scan->block.escapes_next;
	return is_cut ? at - 1 : at;
}

FAST_TARGET static __attribute__((noinline)) const unsigned char *long_text(
	const unsigned char *at, const unsigned char *end, bool with_escapes)
{
	if (end - at >= JSON_FAST_BLOCK) {
		struct scan scan = {.end = end};
		block_load(&scan.block, at, false, true);
		at = scan_text(&scan, at, with_escapes);
	}
	return json_fast_plain.text(at, end, with_escapes);
}

/* Blocks are slower for short text, which ends in the first bytes. */
enum { SHORT_TEXT = 2 * BYTES16 };

FAST_TARGET static const unsigned char *fast_text(
	const unsigned char *at, const unsigned char *end, bool with_escapes)
{
	for (int i = 0; i < SHORT_TEXT / BYTES16 && end - at >= BYTES16; i++) {
		unsigned int plain = bytes16_plain(at);
		at += plain;
		if (plain < BYTES16) {
			return *at == '"' ? at : long_text(at, end, with_escapes);
		}
	}
	return long_text(at, end, with_escapes);
}

FAST_INLINE static inline bool is_space(unsigned char byte)
{
	return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

/* The first byte from `at` on that is not white space. */
FAST_INLINE static inline const unsigned char *skip_space(
	const struct scan *scan, const unsigned char *at)
{
	while (at < scan->end && is_space(*at)) {
		at++;
	}
	return at;
}

FAST_INLINE static inline bool is_digit(unsigned char byte)
{
	return (unsigned int)(byte - '0') < 10;
}

/* The byte after the number at `at`. NULL: it is incomplete, invalid or has an exponent. */
FAST_INLINE static inline const unsigned char *scan_number(
	struct scan *scan, const unsigned char *at)
{
	if (*at == '-') {
		at++;
	}
	if (at == scan->end || !is_digit(*at)) {
		return NULL;
	}
	at = *at == '0' ? at + 1 : skip_digits(scan, at);
	if (at && at < scan->end && *at == '.') {
		const unsigned char *digits = at + 1;
		at = skip_digits(scan, digits);
		if (at == digits) {
			return NULL;
		}
	}
	bool has_ended =
		at && at < scan->end && (*at == ',' || *at == '}' || *at == ']' || is_space(*at));
	return has_ended ? at : NULL;
}

/* The byte after true, false or null; NULL: it is incomplete or invalid. */
FAST_INLINE static inline const unsigned char *scan_literal(
	const struct scan *scan, const unsigned char *at)
{
	size_t len = *at == 'f' ? 5 : 4;
	if ((size_t)(scan->end - at) < len) {
		return NULL;
	}
	const char *text = *at == 't' ? "true" : *at == 'f' ? "false" : "null";
	return memcmp(at, text, len) == 0 ? at + len : NULL;
}

FAST_INLINE static inline void open_unknown(struct json_check *check, bool is_object)
{
	unsigned int depth = check->depth;
	if (depth <= JSON_PLACE_DEPTH) {
		check->levels[depth] = (struct json_level){NULL, 0};
	}
	uint64_t bit = UINT64_C(1) << (depth % 64);
	uint64_t *word = &check->objects[depth / 64];
	*word = is_object ? *word | bit : *word & ~bit;
	check->depth = depth + 1;
	check->in_object = is_object;
}

FAST_INLINE static inline void close_unknown(struct json_check *check)
{
	unsigned int outer = --check->depth - 1;
	check->in_object = (check->objects[outer / 64] >> (outer % 64) & 1) != 0;
}

/* The number of open containers, from the outermost, that lie on paths to known places. */
FAST_INLINE static inline unsigned int known_depth(const struct json_check *check)
{
	unsigned int depth = 0;
	while (depth < check->depth && depth <= JSON_PLACE_DEPTH && check->levels[depth].node) {
		depth++;
	}
	return depth;
}

/* One run of the grammar's loop. */
struct run {
	struct scan scan;
	struct json_check *check;
	const unsigned char *at; // the next byte
	enum json_state state;   // what the next byte belongs to
	/* The steps close this many outer containers: the known ones, and the document. */
	unsigned int floor;
	bool may_run_at_floor;
};

/* Skips a string that begins at run->at. False: the steps must continue inside of it. */
FAST_INLINE static inline bool run_string(struct run *run, bool is_name)
{
	run->at = scan_text(&run->scan, run->at + 1, true);
	if (run->at == run->scan.end || *run->at != '"') {
		run->check->in_name = is_name;
		run->check->captures = false;
		run->state = STATE_STRING;
		return false;
	}
	run->at++;
	return true;
}

FAST_INLINE static inline bool run_name(struct run *run)
{
	if (!run_string(run, true)) {
		return false;
	}
	run->state = STATE_COLON;
	if (run->at < run->scan.end && *run->at == ':') {
		run->at++;
		run->state = STATE_VALUE;
	}
	return true;
}

FAST_INLINE static inline bool run_open(struct run *run, bool is_object)
{
	if (run->check->depth == JSON_DEPTH_MAX) {
		return false;
	}
	open_unknown(run->check, is_object);
	run->state = is_object ? STATE_FIRST_NAME : STATE_FIRST_ELEMENT;
	run->at++;
	return true;
}

FAST_INLINE static inline bool run_close(struct run *run)
{
	struct json_check *check = run->check;
	if (*run->at != (check->in_object ? '}' : ']') || check->depth <= run->floor) {
		return false;
	}
	run->at++;
	close_unknown(check);
	run->state = STATE_AFTER_VALUE;
	return check->depth > run->floor || run->may_run_at_floor;
}

FAST_INLINE static inline bool run_comma(struct run *run)
{
	run->at++;
	run->state = run->check->in_object ? STATE_NAME : STATE_VALUE;
	return true;
}

/* A value ends before `at`. NULL: the value is incomplete or invalid. */
FAST_INLINE static inline bool run_after(struct run *run, const unsigned char *at)
{
	if (!at) {
		return false;
	}
	run->at = at;
	run->state = STATE_AFTER_VALUE;
	return at == run->scan.end || *at != ',' || run_comma(run);
}

FAST_INLINE static inline bool run_value(struct run *run)
{
	switch (*run->at) {
	case '"':
		return run_string(run, false) && run_after(run, run->at);
	case '{':
		return run_open(run, true);
	case '[':
		return run_open(run, false);
	case ']':
		return run->state == STATE_FIRST_ELEMENT && run_close(run);
	case 't':
	case 'f':
	case 'n':
		return run_after(run, scan_literal(&run->scan, run->at));
	default:
		return run_after(run, scan_number(&run->scan, run->at));
	}
}

FAST_INLINE static inline bool run_space(struct run *run)
{
	const unsigned char *at = run->at;
	run->at = skip_space(&run->scan, at);
	return run->at != at;
}

/* Takes one token. False: the steps must continue, with run->state. */
FAST_INLINE static inline bool run_token(struct run *run)
{
	if (*run->at <= ' ') {
		return run_space(run);
	}
	switch (run->state) {
	case STATE_VALUE:
	case STATE_FIRST_ELEMENT:
		return run_value(run);
	case STATE_FIRST_NAME:
		return *run->at == '"' ? run_name(run) : run_close(run);
	case STATE_NAME:
		return *run->at == '"' && run_name(run);
	case STATE_AFTER_VALUE:
		return *run->at == ',' ? run_comma(run) : run_close(run);
	case STATE_COLON:
		if (*run->at != ':') {
			return false;
		}
		run->at++;
		run->state = STATE_VALUE;
		return true;
	default:
		return false;
	}
}

FAST_TARGET static const unsigned char *fast_unknown(
	struct json_check *check, const unsigned char *at, const unsigned char *end)
{
	unsigned int known = known_depth(check);
	struct run run = {
		.scan.end = end,
		.check = check,
		.at = at,
		.state = check->state,
		.floor = known > 0 ? known : 1,
	};
	run.may_run_at_floor = json_is_unknown(check->levels[run.floor - 1].node);
	block_load(&run.scan.block, at, false, true);
	while (run.at < end && run_token(&run)) {
	}
	unsigned int outer = check->depth - 1;
	check->state = run.state;
	check->value = NULL;
	check->container = outer <= JSON_PLACE_DEPTH ? check->levels[outer].node : NULL;
	return run.at;
}

/*
 * ---- copying ----
 *
 * The loops copy a whole block, although only a part of it may be wanted: the next bytes of the
 * output are written over the rest. They also copy where nothing is wanted, so that the address of
 * the next block does not depend on this one.
 */

/* The bits of a block from this byte on, which may lie behind it. */
FAST_INLINE static inline uint64_t bits_behind(
	uint64_t bits, const unsigned char *block, const unsigned char *at)
{
	return at - block < JSON_FAST_BLOCK ? bits & UINT64_MAX << (at - block) : 0;
}

/* Copies up to the block's end. Returns where to go on: behind what has gone beyond that end. */
FAST_INLINE static inline const unsigned char *copy_rest(
	unsigned char **to, const unsigned char *at, const unsigned char *block_end)
{
	if (at > block_end) {
		return at;
	}
	copy_block(*to, at);
	*to += block_end - at;
	return block_end;
}

/*
 * Writes the byte at `at`, which cannot be copied with its neighbours. Returns the byte after its
 * UTF-8 sequence or itself; NULL if it is malformed.
 */
FAST_INLINE static inline const unsigned char *escape_one(
	const unsigned char *at, const unsigned char *end, unsigned char **to)
{
	if (*at < 0x80) {
		memcpy(*to, &json_escapes[*at], sizeof(json_escapes[0]));
		*to += json_escapes[*at].len;
		return at + 1;
	}
	size_t len = utf8_sequence(at, (size_t)(end - at));
	memcpy(*to, at, UTF8_MAX);
	*to += len;
	return len > 0 ? at + len : NULL;
}

FAST_TARGET static const unsigned char *fast_escape(
	const unsigned char *at, const unsigned char *end, unsigned char **to)
{
	const unsigned char *begin = at;
	unsigned char *out = *to;
	/* A block, and as many bytes that are copied with its last one. */
	for (const unsigned char *block = at; end - block >= 2 * JSON_FAST_BLOCK;
		block += JSON_FAST_BLOCK) {
		uint64_t stops = odd_stops(block, odd_bits(block), block == begin) |
		                 equal_bits(block, '"') | equal_bits(block, '\\');
		stops = bits_behind(stops, block, at);
		while (stops != 0) {
			const unsigned char *stop = block + __builtin_ctzll(stops);
			copy_block(out, at);
			out += stop - at;
			at = escape_one(stop, end, &out);
			if (!at) {
				*to = out;
				return stop;
			}
			stops = bits_behind(stops, block, at);
		}
		at = copy_rest(&out, at, block + JSON_FAST_BLOCK);
	}
	*to = out;
	return json_fast_plain.escape(at, end, to);
}

/* Writes what the escape at `at` means. Returns the byte after it. */
FAST_INLINE static inline const unsigned char *decode_one(
	const unsigned char *at, const unsigned char *end, unsigned char **to)
{
	if (at[1] != 'u') {
		*(*to)++ = (unsigned char)json_escape_values[at[1]];
		return at + 2;
	}
	size_t len;
	struct span text = {(const char *)at, (size_t)(end - at)};
	at += json_decode_escape(text, (char *)*to, &len);
	*to += len;
	return at;
}

FAST_TARGET static unsigned char *fast_decode(
	const unsigned char *at, const unsigned char *end, unsigned char *to)
{
	for (const unsigned char *block = at; end - block >= 2 * JSON_FAST_BLOCK;
		block += JSON_FAST_BLOCK) {
		uint64_t backslashes = bits_behind(equal_bits(block, '\\'), block, at);
		while (backslashes != 0) {
			const unsigned char *stop = block + __builtin_ctzll(backslashes);
			copy_block(to, at);
			to += stop - at;
			at = decode_one(stop, end, &to);
			backslashes = bits_behind(backslashes, block, at);
		}
		at = copy_rest(&to, at, block + JSON_FAST_BLOCK);
	}
	return json_fast_plain.decode(at, end, to);
}

const struct json_fast FAST_NAME = {
	.name = FAST_TEXT,
	.text = fast_text,
	.unknown = fast_unknown,
	.escape = fast_escape,
	.decode = fast_decode,
};
