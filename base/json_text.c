/* SPDX-License-Identifier: MIT */
#include "base/json_check_impl.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/hex.h"
#include "base/json_utf8.h"

/*
 * The inside of strings. Plain ASCII is handled in blocks, then UTF-8 sequences and escapes that
 * lie completely in the piece; those that the piece cuts go through the states ESCAPE, HEX and
 * UTF8. Names that may be known are collected, decoded.
 */
enum text_class {
	TC_PLAIN = 1 << 0,  // ASCII that means itself
	TC_ESCAPE = 1 << 1, // may follow a backslash as its only character
	TC_HEX = 1 << 2,
};

static const uint8_t text_classes[256] = {
	[0x20 ... 0x21] = TC_PLAIN,
	['"'] = TC_ESCAPE,
	[0x23 ... 0x2e] = TC_PLAIN,
	['/'] = TC_PLAIN | TC_ESCAPE,
	['0' ... '9'] = TC_PLAIN | TC_HEX,
	[0x3a ... 0x40] = TC_PLAIN,
	['A' ... 'F'] = TC_PLAIN | TC_HEX,
	['G' ... 'Z'] = TC_PLAIN,
	['['] = TC_PLAIN,
	['\\'] = TC_ESCAPE,
	[0x5d ... 0x60] = TC_PLAIN,
	['a'] = TC_PLAIN | TC_HEX,
	['b'] = TC_PLAIN | TC_HEX | TC_ESCAPE,
	['c' ... 'e'] = TC_PLAIN | TC_HEX,
	['f'] = TC_PLAIN | TC_HEX | TC_ESCAPE,
	['g' ... 'm'] = TC_PLAIN,
	['n'] = TC_PLAIN | TC_ESCAPE,
	['o' ... 'q'] = TC_PLAIN,
	['r'] = TC_PLAIN | TC_ESCAPE,
	['s'] = TC_PLAIN,
	['t'] = TC_PLAIN | TC_ESCAPE,
	['u' ... 0x7f] = TC_PLAIN,
};

const char json_escape_values[256] = {['"'] = '"',
	['\\'] = '\\',
	['/'] = '/',
	['b'] = '\b',
	['f'] = '\f',
	['n'] = '\n',
	['r'] = '\r',
	['t'] = '\t'};

#ifdef __SSE2__
enum { BLOCK = 16 };

/* How many bytes at the start of the block are plain. */
static inline unsigned int plain_in_block(const unsigned char *at)
{
	__m128i bytes = _mm_loadu_si128((const void *)at);
	/* As signed numbers, bytes from 0x80 on are also less than a space. */
	__m128i special = _mm_cmplt_epi8(bytes, _mm_set1_epi8(' '));
	special = _mm_or_si128(special, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')));
	special = _mm_or_si128(special, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
	unsigned int mask = (unsigned int)_mm_movemask_epi8(special);
	return (unsigned int)__builtin_ctz(mask | 1u << BLOCK);
}

/* One bit for each of 64 bytes that is not plain; the first byte's is the lowest. */
static inline uint64_t special_in_64(const unsigned char *at)
{
	uint64_t all = 0;
	for (size_t i = 0; i < 4; i++) {
		__m128i bytes = _mm_loadu_si128((const void *)(at + i * BLOCK));
		__m128i special = _mm_cmplt_epi8(bytes, _mm_set1_epi8(' '));
		special = _mm_or_si128(special, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')));
		special = _mm_or_si128(special, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
		all |= (uint64_t)(uint16_t)_mm_movemask_epi8(special) << (i * BLOCK);
	}
	return all;
}
#else
enum { BLOCK = 8 };

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Not 0 if one of the bytes is 0. */
static inline uint64_t has_zero(uint64_t bytes)
{
	return (bytes - EACH(0x01)) & ~bytes & EACH(0x80);
}

/* BLOCK if all bytes of the block are plain, else 0. */
static inline unsigned int plain_in_block(const unsigned char *at)
{
	uint64_t bytes;
	memcpy(&bytes, at, sizeof(bytes));
	uint64_t special = (bytes | (bytes - EACH(' '))) & EACH(0x80);
	special |= has_zero(bytes ^ EACH('"')) | has_zero(bytes ^ EACH('\\'));
	return special == 0 ? BLOCK : 0;
}
#endif

static inline const unsigned char *skip_plain(const unsigned char *at, const unsigned char *end)
{
	while (end - at >= BLOCK) {
		unsigned int plain = plain_in_block(at);
		if (plain == BLOCK) {
			at += BLOCK; // a constant, so that the next block does not depend on this
			             // one
			continue;
		}
		if (plain > 0) {
			return at + plain;
		}
		break; // the first byte is special or, without SSE2, any of them
	}
	while (at < end && (text_classes[*at] & TC_PLAIN)) {
		at++;
	}
	return at;
}

/* The length of the escape at `at` if it is complete and valid; otherwise 0. */
static inline size_t whole_escape(const unsigned char *at, const unsigned char *end)
{
	if (end - at < 2) {
		return 0;
	}
	if (text_classes[at[1]] & TC_ESCAPE) {
		return 2;
	}
	if (at[1] != 'u' || end - at < 6) {
		return 0;
	}
	unsigned int hex = text_classes[at[2]] & text_classes[at[3]] & text_classes[at[4]] &
	                   text_classes[at[5]] & TC_HEX;
	return hex ? 6 : 0;
}

#ifdef __SSE2__
/*
 * Skips long text, 64 bytes at a time. The bytes of an escape or a sequence are removed from the
 * block's bits, so that the start of the next block seldom depends on this one, and the processor
 * need not wait for it.
 */
static inline const unsigned char *skip_long_text(
	const unsigned char *at, const unsigned char *end, bool with_escapes)
{
	while (end - at >= 64) {
		uint64_t special = special_in_64(at);
		size_t over = 0; // bytes of the next block that were already handled
		while (special != 0) {
			size_t place = (size_t)__builtin_ctzll(special);
			const unsigned char *byte = at + place;
			size_t len = 0;
			if (*byte == '\\' && with_escapes) {
				len = whole_escape(byte, end);
			} else if (*byte >= 0x80) {
				len = utf8_sequence(byte, (size_t)(end - byte));
			}
			if (len == 0) {
				return byte;
			}
			if (place + len >= 64) {
				over = place + len - 64;
				break;
			}
			special &= UINT64_MAX << (place + len);
		}
		at += 64 + over;
	}
	return at;
}
#else
static inline const unsigned char *skip_long_text(
	const unsigned char *at, const unsigned char *end, bool with_escapes)
{
	return at;
}
#endif

/* Skips everything that needs no state: up to a quote, or something cut or invalid. */
static inline const unsigned char *skip_text(
	const unsigned char *at, const unsigned char *end, bool with_escapes)
{
	const unsigned char *first = at;
	for (;;) {
		at = skip_plain(at, end);
		if (at == end || *at == '"') {
			return at;
		}
		if (at - first >= (ptrdiff_t)2 * BLOCK && (*at < 0x80)) {
			first = end; // once; the code below continues where it stops
			at = skip_long_text(at, end, with_escapes);
			continue;
		}
		size_t len = 0;
		if (*at >= 0x80) {
			len = utf8_sequence(at, (size_t)(end - at));
		} else if (*at == '\\' && with_escapes) {
			len = whole_escape(at, end);
		}
		if (len == 0) {
			return at;
		}
		at += len;
		while (at < end && *at >= 0x80) {
			len = utf8_sequence(at, (size_t)(end - at));
			if (len == 0) {
				return at;
			}
			at += len;
		}
	}
}

bool json_is_string(struct span raw)
{
	if (raw.len < 2 || raw.data[0] != '"') {
		return false;
	}
	const unsigned char *at = (const unsigned char *)raw.data + 1;
	const unsigned char *end = (const unsigned char *)raw.data + raw.len;
	at = skip_text(at, end, true);
	return at == end - 1 && *at == '"';
}

static void name_append(struct json_check *check, const void *bytes, size_t len)
{
	if (len == 0) {
		return;
	}
	if (check->name_high != 0 || len > JSON_NAME_MAX - check->name_len) {
		check->name_fits = false;
		return;
	}
	memcpy(check->name + check->name_len, bytes, len);
	check->name_len += len;
}

/* Appends an escaped UTF-16 unit to a name; a lone surrogate matches no known name. */
static void name_append_unit(struct json_check *check, uint16_t unit)
{
	uint32_t code_point = unit;
	if (check->name_high != 0 && utf16_is_low(unit)) {
		code_point = utf16_join(check->name_high, unit);
		check->name_high = 0;
	} else if (utf16_is_low(unit)) {
		check->name_fits = false;
		return;
	} else if (utf16_is_high(unit) && check->name_high == 0) {
		check->name_high = unit;
		return;
	}
	char bytes[UTF8_MAX];
	name_append(check, bytes, utf8_encode(code_point, bytes));
}

static const unsigned char *end_string(
	struct json_check *check, const unsigned char *at, const unsigned char *end)
{
	if (!check->in_name) {
		return json_value_ended(check, check->value, check->value_start, at);
	}
	check->value = NULL;
	if (check->captures && check->name_fits && check->name_high == 0) {
		check->value = json_places_member(check->container, check->name, check->name_len);
	}
	if (at < end && *at == ':') {
		check->state = STATE_VALUE; // the usual case; saves a step
		return at + 1;
	}
	check->state = STATE_COLON;
	return at;
}

/* An invalid sequence, or one that continues in the next piece. */
static const unsigned char *begin_utf8(struct json_check *check, const unsigned char *at)
{
	struct utf8_lead lead = utf8_leads[*at - 0x80];
	if (lead.len == 0) {
		return json_fail(check, at, "not UTF-8");
	}
	if (check->captures) {
		name_append(check, at, 1);
	}
	check->left = lead.len - 1;
	check->utf8_low = lead.low;
	check->utf8_high = lead.high;
	check->state = STATE_UTF8;
	return at + 1;
}

const unsigned char *json_step_string(
	struct json_check *check, const unsigned char *at, const unsigned char *end)
{
	const unsigned char *text = at;
	at = skip_text(at, end, !check->captures);
	if (check->captures) {
		name_append(check, text, (size_t)(at - text));
	}
	if (at == end) {
		return at;
	}
	if (*at == '"') {
		return end_string(check, at + 1, end);
	}
	if (*at == '\\') {
		check->state = STATE_ESCAPE;
		return at + 1;
	}
	if (*at >= 0x80) {
		return begin_utf8(check, at);
	}
	return json_fail(check, at, "control character in a string");
}

const unsigned char *json_step_utf8(
	struct json_check *check, const unsigned char *at, const unsigned char *end)
{
	if (*at < check->utf8_low || *at > check->utf8_high) {
		return json_fail(check, at, "not UTF-8");
	}
	if (check->captures) {
		name_append(check, at, 1);
	}
	check->utf8_low = 0x80;
	check->utf8_high = 0xbf;
	if (--check->left == 0) {
		check->state = STATE_STRING;
	}
	return at + 1;
}

const unsigned char *json_step_escape(
	struct json_check *check, const unsigned char *at, const unsigned char *end)
{
	if (*at == 'u') {
		check->left = 4;
		check->unit = 0;
		check->state = STATE_HEX;
		return at + 1;
	}
	if (!(text_classes[*at] & TC_ESCAPE)) {
		return json_fail(check, at, "bad escape in a string");
	}
	if (check->captures) {
		name_append(check, &json_escape_values[*at], 1);
	}
	check->state = STATE_STRING;
	return at + 1;
}

const unsigned char *json_step_hex(
	struct json_check *check, const unsigned char *at, const unsigned char *end)
{
	if (!(text_classes[*at] & TC_HEX)) {
		return json_fail(check, at, "bad \\u escape in a string");
	}
	check->unit = (uint16_t)(check->unit << 4 | hex_digit((char)*at));
	if (--check->left == 0) {
		if (check->captures) {
			name_append_unit(check, check->unit);
		}
		check->state = STATE_STRING;
	}
	return at + 1;
}
