/* SPDX-License-Identifier: MIT */
#include "base/settings.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/nearest.h"
#include "base/text.h"

enum { QUOTED_MAX = 96, RANGE_TEXT_MAX = 24 };

struct unit {
	const char *suffix;
	long long factor;
};

/* Largest last, so that a bound is written with the largest unit that divides it. */
static const struct unit size_units[] = {
	{"", 1}, {"k", 1LL << 10}, {"m", 1LL << 20}, {"g", 1LL << 30}};
static const struct unit time_units[] = {{"ms", 1}, {"s", 1000}, {"", 1000}, {"m", 60 * 1000LL},
	{"h", 3600 * 1000LL}, {"d", 24 * 3600 * 1000LL}};

void settings_init(struct settings *settings)
{
	list_init(&settings->list);
}

void settings_finish(struct settings *settings)
{
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		list_remove(&setting->link);
		free(setting->key);
		free(setting->value);
		free(setting->origin);
		free(setting);
	}
}

void settings_add(struct settings *settings, const char *key, const char *value, const char *origin)
{
	struct setting *setting = mem_alloc_zero(sizeof(*setting));
	setting->key = mem_strdup(key);
	setting->value = value ? mem_strdup(value) : NULL;
	setting->origin = mem_strdup(origin);
	list_append(&settings->list, &setting->link);
}

const struct setting *settings_find(const struct settings *settings, const char *key)
{
	const struct setting *found = NULL;
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		if (strcmp(setting->key, key) == 0) {
			found = setting;
		}
	}
	return found;
}

const char *settings_get(const struct settings *settings, const char *key)
{
	const struct setting *setting = settings_find(settings, key);
	return setting ? setting->value : NULL;
}

const struct setting_key *setting_key_find(
	const struct setting_key *keys, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(keys[i].name, name) == 0) {
			return &keys[i];
		}
	}
	return NULL;
}

bool setting_is_list(const struct setting_key *key)
{
	return key->type == SETTING_LIST || key->type == SETTING_ENV_LIST ||
	       key->type == SETTING_NAME_LIST;
}

/* Reads digits and one of the units; false on anything else and on overflow. */
static bool parse_scaled(
	const char *value, const struct unit *units, size_t unit_count, long long *out_number)
{
	long long number = 0;
	const char *at = value;
	for (; *at >= '0' && *at <= '9'; at++) {
		if (__builtin_mul_overflow(number, 10, &number) ||
			__builtin_add_overflow(number, *at - '0', &number)) {
			return false;
		}
	}
	if (at == value) {
		return false;
	}
	for (size_t i = 0; i < unit_count; i++) {
		if (strcasecmp(at, units[i].suffix) == 0) {
			return !__builtin_mul_overflow(number, units[i].factor, out_number);
		}
	}
	return false;
}

static bool parse_number(const struct setting_key *key, const char *value, long long *out_number)
{
	if (key->type != SETTING_DURATION) {
		return parse_scaled(value, size_units, ARRAY_LENGTH(size_units), out_number);
	}
	if (key->max == 0 && strcmp(value, "never") == 0) {
		*out_number = 0;
		return true;
	}
	return parse_scaled(value, time_units, ARRAY_LENGTH(time_units), out_number);
}

static const long long age_max_ms = 1LL << 42; // 139 years

/* Writes a bound as a user would: "64m", "30s". */
static const char *number_text(
	char *text, size_t size, const struct setting_key *key, long long number)
{
	bool time = key->type == SETTING_DURATION;
	const struct unit *units = time ? time_units : size_units;
	size_t count = time ? ARRAY_LENGTH(time_units) : ARRAY_LENGTH(size_units);
	const struct unit *best = &units[0];
	for (size_t i = 1; i < count; i++) {
		bool is_days = time && units[i].suffix[0] == 'd'; // the docs write "24h"
		if (number != 0 && number % units[i].factor == 0 && units[i].suffix[0] &&
			!is_days) {
			best = &units[i];
		}
	}
	text_whole(text, size, "%lld%s", number / best->factor, best->suffix);
	return text;
}

static bool check_number(const struct setting_key *key, const char *value, struct error *err)
{
	long long number = 0;
	bool parsed = parse_number(key, value, &number);
	bool unlimited = key->type == SETTING_DURATION && key->max == 0;
	long long max = !unlimited ? key->max : key->is_age ? age_max_ms : INT_MAX;
	if (parsed && unlimited && strcmp(value, "never") == 0) {
		return true;
	}
	if (parsed && number >= key->min && number <= max) {
		return true;
	}
	char quoted[QUOTED_MAX];
	setting_quote(quoted, sizeof(quoted), value);
	if (unlimited) {
		return error_set(err, ERROR_CONFIG,
			"expected a time like 500ms, 30s, 5m or 1h, or never, got %s", quoted);
	}
	char low[RANGE_TEXT_MAX];
	char high[RANGE_TEXT_MAX];
	return error_set(err, ERROR_CONFIG, "expected %s from %s to %s, got %s",
		key->type == SETTING_DURATION ? "a time"
		: key->type == SETTING_BYTES  ? "a size"
					      : "a whole number",
		number_text(low, sizeof(low), key, key->min),
		number_text(high, sizeof(high), key, max), quoted);
}

static bool parse_bool(const char *value, bool *out_value)
{
	static const char *const words[][2] = {
		{"false", "true"}, {"no", "yes"}, {"off", "on"}, {"0", "1"}};
	for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
		for (int truth = 0; truth < 2; truth++) {
			if (strcasecmp(value, words[i][truth]) == 0) {
				*out_value = truth;
				return true;
			}
		}
	}
	return false;
}

static bool check_bool(const struct setting_key *key, const char *value, struct error *err)
{
	bool truth;
	char quoted[QUOTED_MAX];
	return parse_bool(value, &truth) ||
	       error_set(err, ERROR_CONFIG, "expected true or false, got %s",
		       setting_quote(quoted, sizeof(quoted), value));
}

static bool check_choice(const struct setting_key *key, const char *value, struct error *err)
{
	for (const char *const *choice = key->choices; *choice; choice++) {
		if (strcmp(value, *choice) == 0) {
			return true;
		}
	}
	char choices[256];
	char quoted[QUOTED_MAX];
	struct nearest nearest;
	nearest_init(&nearest, value);
	for (const char *const *choice = key->choices; *choice; choice++) {
		nearest_offer(&nearest, *choice);
	}
	return error_set(err, ERROR_CONFIG, "expected %s, got %s%s%s%s",
		setting_choices_text(choices, sizeof(choices), key->choices),
		setting_quote(quoted, sizeof(quoted), value),
		nearest.best ? ": did you mean \"" : "", nearest.best ? nearest.best : "",
		nearest.best ? "\"?" : "");
}

static bool check_text(const struct setting_key *key, const char *value, struct error *err)
{
	return value[0] || error_set(err, ERROR_CONFIG, "expected a value, got an empty one");
}

static bool check_list(const struct setting_key *key, const char *value, struct error *err)
{
	return true;
}

static bool check_env(const struct setting_key *key, const char *value, struct error *err)
{
	const char *equals = strchr(value, '=');
	return (equals && environment_name_is_valid(value, (size_t)(equals - value))) ||
	       error_set(err, ERROR_CONFIG,
		       "expected NAME=value, with a NAME of letters, digits and _");
}

static bool check_name(const struct setting_key *key, const char *value, struct error *err)
{
	return environment_name_is_valid(value, strlen(value)) ||
	       error_set(err, ERROR_CONFIG,
		       "expected only the name of an environment variable (letters, digits and "
		       "_): its value is read from an environment");
}

bool setting_check(const struct setting_key *key, const char *value, struct error *err)
{
	static bool (*const checks[])(const struct setting_key *, const char *, struct error *) = {
		[SETTING_TEXT] = check_text,
		[SETTING_BOOL] = check_bool,
		[SETTING_COUNT] = check_number,
		[SETTING_BYTES] = check_number,
		[SETTING_DURATION] = check_number,
		[SETTING_CHOICE] = check_choice,
		[SETTING_LIST] = check_list,
		[SETTING_ENV_LIST] = check_env,
		[SETTING_NAME_LIST] = check_name,
		[SETTING_SECRET_NAME] = check_name,
	};
	assert((size_t)key->type < ARRAY_LENGTH(checks));
	return checks[key->type](key, value, err);
}

static const char *value_or_fallback(const struct settings *settings, const struct setting_key *key)
{
	const char *value = settings_get(settings, key->name);
	value = value ? value : key->fallback;
	assert(value);
	return value;
}

long long settings_number(const struct settings *settings, const struct setting_key *key)
{
	long long number = 0;
	bool parsed = parse_number(key, value_or_fallback(settings, key), &number);
	assert(parsed);
	return number;
}

bool settings_bool(const struct settings *settings, const struct setting_key *key)
{
	bool truth = false;
	bool parsed = parse_bool(value_or_fallback(settings, key), &truth);
	assert(parsed);
	return truth;
}

bool environment_name_is_valid(const char *name, size_t len)
{
	static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	static const char later[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
	for (size_t i = 0; i < len; i++) {
		if (!name[i] || !strchr(i == 0 ? first : later, name[i])) {
			return false;
		}
	}
	return len > 0;
}

bool environment_name_is_secret(const char *name, size_t len)
{
	static const char *const endings[] = {"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD"};
	for (size_t i = 0; i < ARRAY_LENGTH(endings); i++) {
		size_t end = strlen(endings[i]);
		if (len >= end && strncasecmp(name + len - end, endings[i], end) == 0) {
			return true;
		}
	}
	return false;
}
