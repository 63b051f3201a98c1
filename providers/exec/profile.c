/* SPDX-License-Identifier: MIT */
#include "providers/exec/profile.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/words.h"

enum {
	WORD_MAX = 4096,
	EXPANDED_MAX = WORD_MAX / 2 * FILE_PATH_MAX,
	BUILT_MAX = 128,
	VARIANT_MAX = 4096,
	PLACE_MAX = 4096
};

enum {
	KEY_RUNTIME_ROOT,
	KEY_LINK_GRACE,
	KEY_ANSWER_TIMEOUT,
	KEY_CREATE_TIMEOUT,
	KEY_COMMAND_TIMEOUT,
};

static const struct setting_key common_keys[EXEC_COMMON_COUNT] = {EXEC_COMMON_KEYS};

const char *exec_verb_name(enum exec_verb verb)
{
	static const char *const names[EXEC_VERBS] = {"exec", "start", "stop", "destroy", "list",
		"state", "copy-in", "restart", "inspect", "has-built", "build"};
	assert(verb < EXEC_VERBS);
	return names[verb];
}

bool exec_instance_is_valid(struct span name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._/-";
	for (size_t i = 0; i < name.len; i++) {
		if (!memchr(allowed, name.data[i], sizeof(allowed) - 1)) {
			return false;
		}
	}
	return name.len > 0 && name.len <= EXEC_INSTANCE_MAX && name.data[0] != '-';
}

/* ---- words ---- */

/* The value for a letter after "%"; NULL: the command has no such letter. */
static const char *value_of(const struct exec_profile *profile, enum exec_verb verb,
	const struct exec_values *values, char letter)
{
	const char *instance = exec_profile_has_instances(profile) ? values->instance : NULL;
	switch (letter) {
	case '%':
		return "%";
	case 'p':
		return profile->name;
	case 'i':
		return verb == EXEC_LIST ? NULL : instance;
	case 'n':
		return profile->platform->keeps_files ? values->proposed : NULL;
	case 'b':
		return profile->built;
	case 'f':
		return verb == EXEC_COPY_IN ? values->file
		       : verb == EXEC_BUILD ? profile->recipe_file
		                            : NULL;
	case 't':
		return verb == EXEC_COPY_IN ? values->target
		       : verb == EXEC_BUILD ? profile->recipe_folder
		                            : NULL;
	default:
		return NULL;
	}
}

static bool check_letters(
	const struct exec_profile *profile, enum exec_verb verb, struct error *err)
{
	static const struct exec_values any = {
		.instance = "i", .proposed = "n", .file = "f", .target = "t"};
	for (char **word = profile->words[verb]; word && *word; word++) {
		const char *at = *word;
		for (; (at = strchr(at, '%')); at += 2) {
			if (at[1] == 'i' && !exec_profile_has_instances(profile)) {
				return error_set(err, ERROR_CONFIG,
					"%s: %%i is the name that start prints, and the profile "
					"has no start",
					exec_verb_name(verb));
			}
			if (!value_of(profile, verb, &any, at[1])) {
				return error_set(err, ERROR_CONFIG,
					"%s: \"%s\": after a %% comes p, i or %%%s",
					exec_verb_name(verb), *word,
					verb == EXEC_COPY_IN ? ", f or t" : "");
			}
		}
	}
	return true;
}

static char *expand(const struct exec_profile *profile, enum exec_verb verb,
	const struct exec_values *values, const char *word)
{
	struct buf text;
	buf_init(&text, EXPANDED_MAX);
	while (*word) {
		size_t len = strcspn(word, "%");
		(void)!buf_append(&text, (struct span){word, len}, NULL);
		word += len;
		if (*word) {
			const char *value = value_of(profile, verb, values, word[1]);
			(void)!buf_append(&text, span_of(value ? value : ""), NULL);
			word += 2;
		}
	}
	char *whole = mem_strndup(buf_span(&text));
	buf_finish(&text);
	return whole;
}

char *exec_profile_input(
	const struct exec_profile *profile, enum exec_verb verb, const struct exec_values *values)
{
	const char *input = profile->input[verb];
	return input ? expand(profile, verb, values, input) : NULL;
}

char **exec_profile_argv(const struct exec_profile *profile, enum exec_verb verb,
	const struct exec_values *values, const char *const *more)
{
	char **argv = mem_alloc_zero(sizeof(*argv));
	for (char **word = profile->words[verb]; *word; word++) {
		char *whole = expand(profile, verb, values, *word);
		words_append(&argv, whole);
		free(whole);
	}
	words_append_all(&argv, more);
	return argv;
}

void exec_append_literal(struct buf *text, struct span value)
{
	for (size_t i = 0; i < value.len; i++) {
		(void)!buf_append(text, (struct span){value.data + i, 1}, NULL);
		(void)!buf_append(text, (struct span){"%", value.data[i] == '%'}, NULL);
	}
}

void exec_add_literal(char ***words, const char *name, const char *value)
{
	struct buf text;
	buf_init(&text, strlen(name) + 2 * strlen(value) + 1);
	(void)!buf_append(&text, span_of(name), NULL);
	exec_append_literal(&text, span_of(value));
	char *whole = mem_strndup(buf_span(&text));
	words_append(words, whole);
	free(whole);
	buf_finish(&text);
}

void exec_profile_add_words(
	struct exec_profile *profile, enum exec_verb verb, const char *const *more)
{
	enum { BEFORE = 2 };
	char **old = profile->words[verb];
	char **words = NULL;
	uint64_t hash = HASH_START;
	if (!more || !*more) {
		return;
	}
	for (size_t i = 0; i < BEFORE; i++) {
		words_append(&words, old[i]);
	}
	for (; *more; more++) {
		exec_add_literal(&words, "", *more);
		hash = hash_text(hash, *more);
	}
	words_append_all(&words, (const char *const *)old + BEFORE);
	words_free(old);
	profile->words[verb] = words;
	if (verb == EXEC_START) {
		struct buf variant;
		buf_init(&variant, VARIANT_MAX);
		(void)!buf_append_format(&variant, NULL, "%s %016" PRIx64, profile->variant, hash);
		free(profile->variant);
		profile->variant = mem_strndup(buf_span(&variant));
		buf_finish(&variant);
	}
}

void exec_profile_set_image(struct exec_profile *profile, const char *image)
{
	struct buf variant;
	buf_init(&variant, VARIANT_MAX);
	(void)!buf_append_format(&variant, NULL, "%s %s", profile->variant, image);
	mem_set_text(&profile->built, image);
	free(profile->recipe_file);
	profile->recipe_file = NULL;
	free(profile->variant);
	profile->variant = mem_strndup(buf_span(&variant));
	buf_finish(&variant);
}

void exec_profile_set_recipe(
	struct exec_profile *profile, const char *file, const char *folder, const char *content)
{
	char built[BUILT_MAX];
	text_whole(built, sizeof(built), "localhost/acp-broker:%s", content);
	exec_profile_set_image(profile, built);
	mem_set_text(&profile->recipe_file, file);
	mem_set_text(&profile->recipe_folder, folder);
}

bool exec_profile_has_instances(const struct exec_profile *profile)
{
	return profile->words[EXEC_START] != NULL;
}

static bool has_name(const char *text)
{
	while (text && (text = strchr(text, '%'))) {
		if (text[1] == 'i' || text[1] == 'n') {
			return true;
		}
		text += 2;
	}
	return false;
}

bool exec_profile_uses_name(const struct exec_profile *profile, enum exec_verb verb)
{
	for (char **word = profile->words[verb]; word && *word; word++) {
		if (has_name(*word)) {
			return true;
		}
	}
	return has_name(profile->input[verb]);
}

char *exec_profile_place(const struct exec_profile *profile, const char *instance)
{
	struct buf place;
	uint64_t hash = HASH_START;
	buf_init(&place, PLACE_MAX);
	(void)!buf_append_format(&place, NULL, "%s:%s", profile->platform->name,
		instance ? instance : profile->name);
	if (!instance) {
		for (char **word = profile->words[EXEC_EXEC]; *word; word++) {
			hash = hash_text(hash, *word);
		}
		(void)!buf_append_format(&place, NULL, ":%016" PRIx64, hash);
	}
	char *whole = mem_strndup(buf_span(&place));
	buf_finish(&place);
	return whole;
}

/* ---- the profile ---- */

/* The platform's commands do not get the secrets that are meant for the agent. */
static char **choose_environment(
	const struct settings *settings, const struct provider_context *context)
{
	char **secret = words_of_settings(settings, "secret-env");
	char **env = mem_alloc_zero(sizeof(*env));
	for (const char *const *entry = context->environment; entry && *entry; entry++) {
		struct span name = {*entry, strcspn(*entry, "=")};
		char *text = mem_strndup(name);
		if (!words_contain((const char *const *)secret, text) &&
			!(context->registry && registry_has_secret(context->registry, name))) {
			words_append(&env, *entry);
		}
		free(text);
	}
	words_free(secret);
	return env;
}

static bool check_all_letters(const struct exec_profile *profile, struct error *err)
{
	for (int verb = 0; verb < EXEC_VERBS; verb++) {
		if (!check_letters(profile, (enum exec_verb)verb, err)) {
			return false;
		}
	}
	return true;
}

static bool is_set_to(const struct settings *settings, const char *key, const char *wanted)
{
	const char *value = settings_get(settings, key);
	return value && strcmp(value, wanted) == 0;
}

bool exec_profile_read(struct exec_profile *profile, const struct exec_platform *platform,
	const char *name, const struct settings *settings, const struct provider_context *context,
	struct error *err)
{
	const char *root = settings_get(settings, common_keys[KEY_RUNTIME_ROOT].name);
	const char *home =
		context->environment ? environment_get(context->environment, "HOME") : NULL;
	*profile = (struct exec_profile){.platform = platform,
		.name = mem_strdup(name),
		.env = choose_environment(settings, context),
		.home = mem_strdup(home && home[0] == '/' ? home : "/"),
		.runtime_root = mem_strdup(root ? root : common_keys[KEY_RUNTIME_ROOT].fallback),
		.start_ms = settings_number(settings, &common_keys[KEY_CREATE_TIMEOUT]),
		.command_ms = settings_number(settings, &common_keys[KEY_COMMAND_TIMEOUT]),
		.answer_ms = settings_number(settings, &common_keys[KEY_ANSWER_TIMEOUT]),
		.grace_ms = settings_number(settings, &common_keys[KEY_LINK_GRACE]),
		.is_transient = is_set_to(settings, "persistence", "transient"),
		.is_synced = !is_set_to(settings, "sync", "none")};
	if (platform->read(profile, settings, context, err) && check_all_letters(profile, err)) {
		return true;
	}
	exec_profile_finish(profile);
	return false;
}

void exec_profile_finish(struct exec_profile *profile)
{
	for (size_t i = 0; i < ARRAY_LENGTH(profile->words); i++) {
		words_free(profile->words[i]);
		free(profile->input[i]);
	}
	words_free(profile->env);
	free(profile->home);
	free(profile->runtime_root);
	free(profile->made);
	free(profile->reach);
	free(profile->variant);
	free(profile->runner_file);
	free(profile->recipe);
	free(profile->recipe_file);
	free(profile->recipe_folder);
	free(profile->built);
	free(profile->name);
	*profile = (struct exec_profile){0};
}
