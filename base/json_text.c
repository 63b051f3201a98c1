/* SPDX-License-Identifier: MIT */
#include "base/json_check_impl.h"

#include <string.h>
#include "base/hex.h"
#include "base/json_fast.h"
#include "base/json_utf8.h"

/*
 * The inside of strings. The loops of json_fast.h skip plain text, and the sequences and escapes
 * that lie completely in the piece; those that the piece cuts go through the states ESCAPE, HEX and
 * UTF8. Names that may be known are collected, decoded.
 */
const uint8_t json_text_classes[256] = {
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

/* clang-format off */
#define LONG(digits) {"\\u00" digits, 6}
#define SHORT(letter) {"\\" letter, 2}
const struct json_escape json_escapes[128] = {
	LONG("00"), LONG("01"), LONG("02"), LONG("03"),
	LONG("04"), LONG("05"), LONG("06"), LONG("07"),
	SHORT("b"), SHORT("t"), SHORT("n"), LONG("0b"),
	SHORT("f"), SHORT("r"), LONG("0e"), LONG("0f"),
	LONG("10"), LONG("11"), LONG("12"), LONG("13"),
	LONG("14"), LONG("15"), LONG("16"), LONG("17"),
	LONG("18"), LONG("19"), LONG("1a"), LONG("1b"),
	LONG("1c"), LONG("1d"), LONG("1e"), LONG("1f"),
	['"'] = SHORT("\""), ['\\'] = SHORT("\\"),
};
#undef LONG
#undef SHORT
/* clang-format on */

bool json_is_string(struct span raw)
{
	if (raw.len < 2 || raw.data[0] != '"') {
		return false;
	}
	const unsigned char *at = (const unsigned char *)raw.data + 1;
	const unsigned char *end = (const unsigned char *)raw.data + raw.len;
	at = json_fast_best()->text(at, end, true);
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
	at = check->fast->text(at, end, !check->captures);
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
	if (!(json_text_classes[*at] & TC_ESCAPE)) {
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
	if (!(json_text_classes[*at] & TC_HEX)) {
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
