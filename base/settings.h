/* SPDX-License-Identifier: MIT */
#ifndef BASE_SETTINGS_H
#define BASE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/list.h"

/*
 * The keys of one configuration section, in the order of the file. Each remembers where it was
 * written, so that every error can name the place. Owned by the configuration; borrowed by everyone
 * else.
 */
struct setting {
	struct list link; // settings.list
	char *key;        // kebab-case, as in the documentation
	char *value;      // NULL until it was checked, if the key was written without "="
	char *origin;     // "FILE" or "command line"
};

struct settings {
	struct list list; // of struct setting
};

void settings_init(struct settings *settings);
void settings_finish(struct settings *settings);
/* Copies all three; value may be NULL. */
void settings_add(
	struct settings *settings, const char *key, const char *value, const char *origin);

/* The last value of the key, or NULL. */
const char *settings_get(const struct settings *settings, const char *key);
const struct setting *settings_find(const struct settings *settings, const char *key);

enum setting_type {
	SETTING_TEXT,        // not empty
	SETTING_BOOL,        // true/false, yes/no, on/off, 1/0
	SETTING_COUNT,       // a whole number; k, m, g suffixes as git-config(1)
	SETTING_BYTES,       // the same, of bytes
	SETTING_DURATION,    // 500ms, 5m, 1h, 30d; a bare number is seconds; "never" where max is 0
	SETTING_CHOICE,      // one of choices
	SETTING_LIST,        // text, repeated; may be empty
	SETTING_ENV_LIST,    // NAME=value, repeated
	SETTING_NAME_LIST,   // names of environment variables, repeated
	SETTING_SECRET_NAME, // the name of one that holds a secret: no trace shows its value
};

/* What values a key takes; tables of these describe every section. */
struct setting_key {
	const char *name;
	enum setting_type type;
	const char *const *choices; // SETTING_CHOICE: NULL-terminated
	const char *fallback;       // the default, spelled as a user would write it; NULL: none
	long long min;              // SETTING_COUNT, _BYTES, _DURATION (ms)
	long long max;              // 0 for a SETTING_DURATION that may be "never"
	bool is_age;      // a SETTING_DURATION that may be years; others are below 25 days
	const char *help; // one line
};

/* The key of that name in a table, or NULL. */
const struct setting_key *setting_key_find(
	const struct setting_key *keys, size_t count, const char *name);

bool setting_is_list(const struct setting_key *key); // may be repeated, every value counts

/*
 * Checks one value against its key. Fails with ERROR_CONFIG and "expected auto, editor or broker,
 * got "me""; the caller prefixes the file and the key. The text never repeats values of environment
 * keys: they may be secrets.
 */
bool setting_check(
	const struct setting_key *key, const char *value, struct error *err) ATTR_NODISCARD;

/* The values of checked settings, or the default if the key is not set. */
long long settings_number(const struct settings *settings, const struct setting_key *key);
bool settings_bool(const struct settings *settings, const struct setting_key *key);

/*
 * The value in double quotes on one line, as git-config would read it: quotes, backslashes and
 * control bytes are escaped. A value that does not fit ends in "…". Returns text.
 */
const char *setting_quote(char *text, size_t size, const char *value);

/* "a, b or c"; returns text. */
const char *setting_choices_text(char *text, size_t size, const char *const *choices);

/* A letter or _, then letters, digits or _ . */
bool environment_name_is_valid(const char *name, size_t len);

/* Whether it ends in KEY, TOKEN, SECRET, PASSWORD or PASSWD; upper or lower case. */
bool environment_name_is_secret(const char *name, size_t len);

#endif
