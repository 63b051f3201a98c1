/* SPDX-License-Identifier: MIT */
#include "base/json_check_impl.h"
#include "base/json_fast.h"

/*
 * The grammar of RFC 8259 outside of strings. A step handles one token, so that there is one call
 * per token and not one per byte.
 */
enum number_class { NC_OTHER, NC_ZERO, NC_DIGIT, NC_POINT, NC_E, NC_PLUS, NC_MINUS, NC_COUNT };

static const uint8_t number_classes[256] = {
	['0'] = NC_ZERO,
	['1' ... '9'] = NC_DIGIT,
	['.'] = NC_POINT,
	['e'] = NC_E,
	['E'] = NC_E,
	['+'] = NC_PLUS,
	['-'] = NC_MINUS,
};

/* A short name, for the width of the table. */
#define BAD NUMBER_BAD
#define END NUMBER_END
#define INT NUMBER_DIGITS
#define FRA NUMBER_FRACTION
#define SIG NUMBER_SIGN
#define EXP NUMBER_EXPONENT
/* clang-format off */
static const uint8_t number_table[NUMBER_STATES][NC_COUNT] = {
	/*                    other 0            1-9  .             e         +            - */
	[NUMBER_MINUS] =    { BAD,  NUMBER_ZERO, INT, BAD,          BAD,      BAD,         BAD },
	[NUMBER_ZERO] =     { END,  BAD,         BAD, NUMBER_POINT, NUMBER_E, BAD,         BAD },
	[NUMBER_DIGITS] =   { END,  INT,         INT, NUMBER_POINT, NUMBER_E, BAD,         BAD },
	[NUMBER_POINT] =    { BAD,  FRA,         FRA, BAD,          BAD,      BAD,         BAD },
	[NUMBER_FRACTION] = { END,  FRA,         FRA, BAD,          NUMBER_E, BAD,         BAD },
	[NUMBER_E] =        { BAD,  EXP,         EXP, BAD,          BAD,      SIG,         SIG },
	[NUMBER_SIGN] =     { BAD,  EXP,         EXP, BAD,          BAD,      BAD,         BAD },
	[NUMBER_EXPONENT] = { END,  EXP,         EXP, BAD,          BAD,      BAD,         BAD },
};
/* clang-format on */
#undef BAD
#undef END
#undef INT
#undef FRA
#undef EXP
#undef SIG

/* Whether any number of digits may follow without changing the state. */
static inline bool is_in_digits(unsigned int state)
{
	return state == NUMBER_DIGITS || state == NUMBER_FRACTION || state == NUMBER_EXPONENT;
}

static inline const unsigned char *skip_digits(const unsigned char *at, const unsigned char *end)
{
	while (at < end && (unsigned int)(*at - '0') < 10) {
		at++;
	}
	return at;
}

static const unsigned char *step_number(
	struct json_check *check, const unsigned char *at, const unsigned char *end)
{
	unsigned int state = check->number;
	for (; at < end; at++) {
		if (is_in_digits(state)) {
			at = skip_digits(at, end);
			if (at == end) {
				break;
			}
		}
		state = number_table[state][number_classes[*at]];
		if (state >= NUMBER_END) {
			if (state == NUMBER_BAD) {
				return json_fail(check, at, "bad number");
			}
			return json_value_ended(check, check->value, check->value_start, at);
		}
	}
	check->number = state;
	return at;
}

static const unsigned char *step_literal(
	struct json_check *check, const unsigned char *at, const unsigned char *end)
{
	const char *left = check->literal;
	for (; at < end && *left != '\0'; at++, left++) {
		if (*at != (unsigned char)*left) {
			return json_fail(check, at, "neither true, false nor null");
		}
	}
	check->literal = left;
	if (*left != '\0') {
		return at;
	}
	return json_value_ended(check, check->value, check->value_start, at);
}

static inline bool is_space(unsigned char byte)
{
	return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

static inline const unsigned char *skip_space(const unsigned char *at, const unsigned char *end)
{
	while (at < end && is_space(*at)) {
		at++;
	}
	return at;
}

static const unsigned char *open_container(
	struct json_check *check, const unsigned char *at, bool is_object)
{
	unsigned int depth = check->depth;
	if (depth == JSON_DEPTH_MAX) {
		return json_fail_limit(check, at, "nested too deeply");
	}
	if (depth <= JSON_PLACE_DEPTH) {
		check->levels[depth] = (struct json_level){check->value, check->value_start};
	}
	uint64_t bit = UINT64_C(1) << (depth % 64);
	uint64_t *word = &check->objects[depth / 64];
	*word = is_object ? *word | bit : *word & ~bit;
	check->depth = depth + 1;
	check->in_object = is_object;
	check->container = check->value;
	if (is_object) {
		check->state = STATE_FIRST_NAME;
	} else {
		check->state = STATE_FIRST_ELEMENT;
		check->value = check->container ? check->container->element : NULL;
	}
	return at + 1;
}

static const unsigned char *close_container(struct json_check *check, const unsigned char *at)
{
	unsigned int depth = --check->depth;
	struct json_level level = {0};
	if (depth <= JSON_PLACE_DEPTH) {
		level = check->levels[depth];
	}
	check->container = NULL;
	if (depth > 0) {
		unsigned int outer = depth - 1;
		check->in_object = (check->objects[outer / 64] >> (outer % 64) & 1) != 0;
		check->container = outer <= JSON_PLACE_DEPTH ? check->levels[outer].node : NULL;
	}
	return json_value_ended(check, level.node, level.start, at + 1);
}

static const unsigned char *begin_number(
	struct json_check *check, const unsigned char *at, const unsigned char *end)
{
	check->state = STATE_NUMBER;
	check->number = *at == '-' ? NUMBER_MINUS : *at == '0' ? NUMBER_ZERO : NUMBER_DIGITS;
	return step_number(check, at + 1, end);
}

static const unsigned char *begin_literal(
	struct json_check *check, const unsigned char *at, const unsigned char *end)
{
	check->state = STATE_LITERAL;
	check->literal = *at == 't' ? "rue" : *at == 'f' ? "alse" : "ull";
	return step_literal(check, at + 1, end);
}

static const unsigned char *begin_value(
	struct json_check *check, const unsigned char *at, const unsigned char *end)
{
	switch (*at) {
	case '"':
		check->state = STATE_STRING;
		check->in_name = false;
		check->captures = false;
		return json_step_string(check, at + 1, end);
	case '{':
		return open_container(check, at, true);
	case '[':
		return open_container(check, at, false);
	case '-':
	case '0' ... '9':
		return begin_number(check, at, end);
	case 't':
	case 'f':
	case 'n':
		return begin_literal(check, at, end);
	default:
		return json_fail(check, at, "a value was expected");
	}
}

static const unsigned char *step_value(
	struct json_check *check, const unsigned char *at, const unsigned char *end)
{
	at = skip_space(at, end);
	if (at == end) {
		return at;
	}
	if (*at == ']' && check->state == STATE_FIRST_ELEMENT) {
		return close_container(check, at);
	}
	if (check->value) {
		check->value_start = json_position(check, at);
		if (check->value->place >= 0 &&
			!json_place_begin(check, check->value, check->value_start)) {
			return NULL;
		}
	}
	return begin_value(check, at, end);
}

static const unsigned char *step_name(
	struct json_check *check, const unsigned char *at, const unsigned char *end)
{
	at = skip_space(at, end);
	if (at == end) {
		return at;
	}
	if (*at == '"') {
		check->state = STATE_STRING;
		check->in_name = true;
		check->captures = check->container && check->container->members;
		check->name_fits = true;
		check->name_high = 0;
		check->name_len = 0;
		return json_step_string(check, at + 1, end);
	}
	if (*at == '}' && check->state == STATE_FIRST_NAME) {
		return close_container(check, at);
	}
	return json_fail(check, at, "a member's name was expected");
}

static const unsigned char *step_colon(
	struct json_check *check, const unsigned char *at, const unsigned char *end)
{
	at = skip_space(at, end);
	if (at == end) {
		return at;
	}
	if (*at != ':') {
		return json_fail(check, at, "a colon was expected");
	}
	check->state = STATE_VALUE;
	return at + 1;
}

static const unsigned char *step_after_value(
	struct json_check *check, const unsigned char *at, const unsigned char *end)
{
	at = skip_space(at, end);
	if (at == end) {
		return at;
	}
	if (*at == ',') {
		if (check->in_object) {
			check->state = STATE_NAME;
		} else {
			check->state = STATE_VALUE;
			check->value = check->container ? check->container->element : NULL;
		}
		return at + 1;
	}
	if (*at == (check->in_object ? '}' : ']')) {
		return close_container(check, at);
	}
	return json_fail(check, at,
		check->in_object ? "a comma or the object's end was expected"
				 : "a comma or the array's end was expected");
}

static const unsigned char *step_done(
	struct json_check *check, const unsigned char *at, const unsigned char *end)
{
	at = skip_space(at, end);
	return at == end ? at : json_fail(check, at, "more than one document");
}

static const unsigned char *(*const steps[STATE_COUNT])(
	struct json_check *, const unsigned char *, const unsigned char *) = {
	[STATE_START] = step_value,
	[STATE_VALUE] = step_value,
	[STATE_FIRST_ELEMENT] = step_value,
	[STATE_FIRST_NAME] = step_name,
	[STATE_NAME] = step_name,
	[STATE_COLON] = step_colon,
	[STATE_AFTER_VALUE] = step_after_value,
	[STATE_STRING] = json_step_string,
	[STATE_ESCAPE] = json_step_escape,
	[STATE_HEX] = json_step_hex,
	[STATE_UTF8] = json_step_utf8,
	[STATE_NUMBER] = step_number,
	[STATE_LITERAL] = step_literal,
	[STATE_DONE] = step_done,
};

/* Whether the next token lies in a container without known members. */
static inline bool may_run_fast(const struct json_check *check)
{
	const unsigned int states = 1u << STATE_VALUE | 1u << STATE_FIRST_ELEMENT |
	                            1u << STATE_FIRST_NAME | 1u << STATE_NAME | 1u << STATE_COLON |
	                            1u << STATE_AFTER_VALUE;
	return (states >> check->state & 1) != 0 && check->depth > 0 &&
	       json_is_unknown(check->container) && check->fast->unknown;
}

const unsigned char *json_run(
	struct json_check *check, const unsigned char *at, const unsigned char *end)
{
	while (at && at < end) {
		if (may_run_fast(check) && end - at >= JSON_FAST_BLOCK) {
			at = check->fast->unknown(check, at, end);
			if (at == end) {
				break;
			}
		}
		at = steps[check->state](check, at, end);
	}
	return at;
}
