/* SPDX-License-Identifier: MIT */
#include "broker/policy/policy_words.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/glob.h"
#include "base/real_path.h"

static const char blanks[] = " \t";

/* Programs that run the command in their arguments. */
static const char *const launchers[] = {"sh", "bash", "dash", "zsh", "ksh", "fish", "busybox",
	"env", "sudo", "doas", "su", "nice", "ionice", "nohup", "setsid", "stdbuf", "time",
	"timeout", "xargs", "exec", "command", "eval"};

static void words_add(struct policy_words *words, const char *word)
{
	words->list = mem_realloc(words->list, (words->count + 2) * sizeof(*words->list));
	words->list[words->count++] = word;
	words->list[words->count] = NULL;
}

/* Splits text (owned) at the separators, which are overwritten. */
static void words_split(struct policy_words *words, char *text, const char *separators)
{
	*words = (struct policy_words){.text = text};
	for (char *at = text + strspn(text, separators); *at; at += strspn(at, separators)) {
		size_t len = strcspn(at, separators);
		words_add(words, at);
		at += len;
		if (*at) {
			*at++ = '\0';
		}
	}
}

void policy_words_finish(struct policy_words *words)
{
	free(words->text);
	free(words->list);
	*words = (struct policy_words){0};
}

bool policy_words_parse(struct policy_words *words, const char *pattern, struct error *err)
{
	words_split(words, mem_strdup(pattern), blanks);
	for (size_t i = 0; i < words->count; i++) {
		if (!glob_check(words->list[i], err)) {
			policy_words_finish(words);
			return false;
		}
	}
	return true;
}

/* ---- matching ---- */

/*
 * A * alone matches any word. In a longer pattern it stays inside one part of a path, unless the
 * rule is a deny or ask rule.
 */
static bool word_matches(const char *pattern, const char *word, bool guards)
{
	return strcmp(pattern, "*") == 0 || glob_match(pattern, word) ||
	       (guards && glob_match_flat(pattern, word));
}

/* In a deny or ask rule (`guards`), a name also matches every path that ends in it. */
static bool program_matches(const char *pattern, const char *word, bool guards)
{
	return word_matches(pattern, word, guards) ||
	       (guards && !strchr(pattern, '/') &&
		       word_matches(pattern, path_last_part(word), true));
}

enum place { PLACE_BEGIN, PLACE_ANYWHERE };

/* Whether the words begin with the pattern, or contain it anywhere, as if ** preceded it. */
static bool words_match(
	const struct policy_words *pattern, const char *const *words, enum place place, bool guards)
{
	size_t want = 0;
	size_t have = 0;
	bool has_star = place == PLACE_ANYWHERE;
	size_t after_star = 0;
	size_t star_have = 0;
	while (want < pattern->count) {
		const char *glob = pattern->list[want];
		if (strcmp(glob, "**") == 0) {
			has_star = true;
			after_star = ++want;
			star_have = have;
		} else if (words[have] && (want == 0 ? program_matches(glob, words[have], guards)
						     : word_matches(glob, words[have], guards))) {
			want++;
			have++;
		} else if (has_star && words[star_have]) {
			have = ++star_have;
			want = after_star;
		} else {
			return false;
		}
	}
	return true;
}

/* ---- shell lines ---- */

/*
 * Whether a line consists of plain words separated by blanks, so that it is certain what a shell
 * does with it.
 */
static bool line_is_plain(const char *line)
{
	static const char syntax[] = ";&|<>$`(){}\\*?[]~#!'\"";
	for (const char *at = line; *at; at++) {
		bool is_control = ((unsigned char)*at < ' ' && *at != '\t') || *at == 0x7f;
		if (is_control || strchr(syntax, *at)) {
			return false;
		}
	}
	return true;
}

bool policy_words_begin(
	const struct policy_words *pattern, const char *const *command, bool shell_line)
{
	if (!command || !command[0]) {
		return false;
	}
	if (!shell_line) {
		return words_match(pattern, command, PLACE_BEGIN, false);
	}
	if (strlen(command[0]) > POLICY_COMMAND_MAX || !line_is_plain(command[0])) {
		return false;
	}
	struct policy_words words;
	words_split(&words, mem_strdup(command[0]), blanks);
	bool found = words.count > 0 && words_match(pattern, words.list, PLACE_BEGIN, false);
	policy_words_finish(&words);
	return found;
}

/* All words of a command, separated by blanks and without quotes; NULL if they are too long. */
static char *join_unquoted(const char *const *command, bool shell_line)
{
	struct buf line;
	buf_init(&line, POLICY_COMMAND_MAX);
	bool fits = true;
	for (size_t i = 0; command[i] && (i == 0 || !shell_line) && fits; i++) {
		for (const char *at = command[i]; *at && fits; at++) {
			fits = strchr("'\"\\", *at) ||
			       buf_append(&line, (struct span){at, 1}, NULL);
		}
		fits = fits && buf_append(&line, SPAN_LITERAL(" "), NULL);
	}
	char *text = fits ? mem_strndup(buf_span(&line)) : NULL;
	buf_finish(&line);
	return text;
}

static bool occurs_anywhere(
	const struct policy_words *pattern, const char *const *command, bool shell_line)
{
	char *text = join_unquoted(command, shell_line);
	if (!text) {
		return true;
	}
	struct policy_words words;
	words_split(&words, text, " \t\r\n\v\f;&|<>`(){}");
	bool found = words.count > 0 && words_match(pattern, words.list, PLACE_ANYWHERE, true);
	policy_words_finish(&words);
	return found;
}

static bool is_launcher(const char *word)
{
	const char *name = path_last_part(word);
	for (size_t i = 0; i < ARRAY_LENGTH(launchers); i++) {
		if (strcmp(name, launchers[i]) == 0) {
			return true;
		}
	}
	return false;
}

bool policy_words_may_occur(
	const struct policy_words *pattern, const char *const *command, bool shell_line)
{
	if (!command || !command[0]) {
		return false;
	}
	if (!shell_line && words_match(pattern, command, PLACE_BEGIN, true)) {
		return true;
	}
	return (shell_line || is_launcher(command[0])) &&
	       occurs_anywhere(pattern, command, shell_line);
}
