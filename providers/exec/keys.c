/* SPDX-License-Identifier: MIT */
#include "providers/exec/keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/words.h"

enum { WORD_MAX = 4096 };

const struct setting_key exec_keys[EXEC_KEYS] = {
	[EXEC_EXEC] = {.name = "exec",
		.type = SETTING_TEXT,
		.help = "the command that runs a program on the platform; its words follow"},
	[EXEC_START] = {.name = "start",
		.type = SETTING_TEXT,
		.help = "the command that starts an instance and prints its name"},
	[EXEC_STOP] = {.name = "stop",
		.type = SETTING_TEXT,
		.help = "the command that stops an instance and keeps its files"},
	[EXEC_DESTROY] = {.name = "destroy",
		.type = SETTING_TEXT,
		.help = "the command that removes an instance"},
	[EXEC_LIST] = {.name = "list",
		.type = SETTING_TEXT,
		.help = "the command that prints the names of all instances"},
	[EXEC_STATE] = {.name = "state",
		.type = SETTING_TEXT,
		.help = "the command that exits with 0 (running), 3 (stopped) or 4 (gone)"},
	[EXEC_COPY_IN] = {.name = "copy-in",
		.type = SETTING_TEXT,
		.help = "the command that copies the file %f of this machine to %t there"},
	EXEC_COMMON_KEYS,
};

/* ---- words ---- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/* The quote that closes the one at `at`; NULL: there is none. */
static const char *find_quote(const char *at)
{
	return strchr(at + 1, *at);
}

/* Blanks separate words, except in single or double quotes. No other character is special. */
static bool split(const char *text, char ***words, struct error *err)
{
	const char *at = text;
	struct buf word;
	bool is_ok = true;
	buf_init(&word, WORD_MAX);
	while (is_ok && *(at += strspn(at, " \t\n"))) {
		while (is_ok && *at && !is_blank(*at)) {
			bool is_quoted = *at == '"' || *at == '\'';
			const char *end = is_quoted ? find_quote(at) : at + strcspn(at, " \t\n\"'");
			if (!end) {
				is_ok = error_set(err, ERROR_CONFIG, "a quote has no end");
				break;
			}
			const char *begin = is_quoted ? at + 1 : at;
			is_ok = buf_append(&word, (struct span){begin, (size_t)(end - begin)}, err);
			at = is_quoted ? end + 1 : end;
		}
		char *whole = mem_strndup(buf_span(&word));
		words_append(words, whole);
		free(whole);
		buf_clear(&word);
	}
	buf_finish(&word);
	return is_ok && (words_count(*words) > 0 || error_set(err, ERROR_CONFIG, "it has no word"));
}

/* ---- the platform ---- */

static bool check(const struct exec_profile *profile, struct error *err)
{
	static const enum exec_verb managing[] = {EXEC_STOP, EXEC_DESTROY, EXEC_LIST, EXEC_STATE};
	if (!profile->words[EXEC_EXEC]) {
		return error_set(err, ERROR_CONFIG,
			"backend = exec needs the key exec, for example exec = podman exec -i box");
	}
	for (size_t i = 0; i < ARRAY_LENGTH(managing); i++) {
		if (profile->words[managing[i]] && !exec_profile_has_instances(profile)) {
			return error_set(err, ERROR_CONFIG,
				"%s needs start: without it the broker has made nothing to %s",
				exec_verb_name(managing[i]), exec_verb_name(managing[i]));
		}
	}
	if (profile->is_transient && exec_profile_has_instances(profile) &&
		!profile->words[EXEC_DESTROY]) {
		return error_set(err, ERROR_CONFIG,
			"persistence = transient with start needs destroy, which removes what "
			"start "
			"has made");
	}
	return true;
}

static bool read_words(struct exec_profile *profile, const struct settings *settings,
	const struct provider_context *context, struct error *err)
{
	for (int verb = 0; verb < EXEC_KEYED_VERBS; verb++) {
		const char *value = settings_get(settings, exec_keys[verb].name);
		if (value && !split(value, &profile->words[verb], err)) {
			return error_prefix(err, "%s", exec_keys[verb].name);
		}
	}
	return check(profile, err);
}

const struct exec_platform exec_platform = {.name = "exec", .read = read_words};
