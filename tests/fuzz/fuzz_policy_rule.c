/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/buf.h"
#include "base/glob.h"
#include "broker/policy/policy_rule.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/naive_glob.h"

/*
 * Lines: a rule as in a policy section; the operation's letter, r w t or g, and with a g the tool's
 * kind; roots, paths and a command's words, each list divided by colons. A command of one word is a
 * shell line. The rule is read as a rule that denies, asks and allows, and the results are compared
 * with a second version, if the paths are as a sandbox resolves them.
 */
enum { LINE_COUNT = 5, LIST_MAX = 32, EFFECTS = POLICY_EFFECT_COUNT };

struct input {
	char *lines[LINE_COUNT];
	const char *roots[LIST_MAX + 1];
	const char *paths[LIST_MAX + 1];
	const char *words[LIST_MAX + 1];
	struct policy_query query;
};

/* Cuts the text at each separator; the last part keeps what is left over. */
static size_t divide(char *text, char separator, char **parts, size_t max)
{
	size_t count = 0;
	while (text && count < max) {
		parts[count++] = text;
		text = count < max ? strchr(text, separator) : NULL;
		if (text) {
			*text++ = '\0';
		}
	}
	return count;
}

/* Returns false if a part is longer than the second version accepts. */
static bool read_list(char *line, const char *list[LIST_MAX + 1])
{
	char *parts[LIST_MAX];
	size_t count = line && *line ? divide(line, ':', parts, LIST_MAX) : 0;
	for (size_t i = 0; i < count; i++) {
		if (strlen(parts[i]) > NAIVE_MAX) {
			return false;
		}
		list[i] = parts[i];
	}
	list[count] = NULL;
	return true;
}

static bool read_input(struct input *input, char *text)
{
	static const char letters[] = "rwtg";
	*input = (struct input){0};
	divide(text, '\n', input->lines, LINE_COUNT);
	const char *operation = input->lines[1];
	if (!operation || !*operation || !strchr(letters, *operation) ||
		strlen(input->lines[0]) > NAIVE_MAX || !read_list(input->lines[2], input->roots) ||
		!read_list(input->lines[3], input->paths) ||
		!read_list(input->lines[4], input->words)) {
		return false;
	}
	input->query = (struct policy_query){
		.operation = (enum policy_operation)(strchr(letters, *operation) - letters),
		.roots = input->roots,
		.paths = input->paths,
		.command = input->words,
		.shell_line = input->words[0] && !input->words[1],
		.tool_kind = operation[0] == 'g' && operation[1] ? operation + 1 : NULL,
	};
	return true;
}

/* ---- paths ---- */

/* As sandbox_resolve_path gives them: absolute, no empty, . or .. part. */
static bool is_resolved(const char *path)
{
	if (path[0] != '/') {
		return false;
	}
	for (const char *at = path + 1;; at++) {
		size_t len = strcspn(at, "/");
		if (len == 0 || (len <= 2 && strncmp(at, "..", len) == 0)) {
			return false;
		}
		at += len;
		if (!*at) {
			return true;
		}
	}
}

/* The part of the path after a root; NULL if the path is outside. */
static const char *behind_root(const char *path, const char *root)
{
	size_t len = strlen(root);
	while (len > 0 && root[len - 1] == '/') {
		len--;
	}
	if (strlen(path) < len || memcmp(path, root, len) != 0) {
		return NULL;
	}
	return path[len] == '/' ? path + len + 1 : path[len] ? NULL : path + len;
}

static bool expect_path(
	const char *pattern, const char *path, const char *const *roots, bool guards)
{
	bool is_inside = false;
	bool matches = false;
	if (pattern[0] == '/') {
		return naive_glob(pattern, path);
	}
	for (; *roots; roots++) {
		const char *rest = behind_root(path, *roots);
		is_inside = is_inside || rest;
		matches = matches || (rest && naive_glob(pattern, rest));
	}
	return matches || (guards && !is_inside && naive_glob_anywhere(pattern, path));
}

static void check_globs(const char *pattern, const char *text)
{
	FUZZ_CHECK(glob_match(pattern, text) == naive_glob(pattern, text));
	FUZZ_CHECK(glob_match_anywhere(pattern, text) == naive_glob_anywhere(pattern, text));
	FUZZ_CHECK(glob_match_flat(pattern, text) == naive_glob_flat(pattern, text));
}

/* Checks a rule that is about this operation and has a path pattern. */
static void check_paths(const struct policy_rule *rule, const struct input *input, bool matches)
{
	bool guards = rule->effect != POLICY_ALLOW;
	bool any = false;
	bool all = true;
	for (const char *const *path = input->paths; *path; path++) {
		check_globs(rule->pattern, *path);
		if (!is_resolved(*path)) {
			return;
		}
		bool fits = expect_path(rule->pattern, *path, input->roots, guards);
		any = any || fits;
		all = all && fits;
	}
	FUZZ_CHECK(matches == (guards ? any : all && input->paths[0]));
}

/* ---- words ---- */

struct words {
	const char *const *pattern;
	const char *const *command;
	size_t pattern_count;
	size_t command_count;
	bool guards;
	char known[NAIVE_MAX + 2][NAIVE_MAX + 2]; // as in naive_glob.c
};

static bool fits_word(const char *pattern, const char *word, bool guards)
{
	return strcmp(pattern, "*") == 0 || naive_glob(pattern, word) ||
	       (guards && naive_glob_flat(pattern, word));
}

static bool fits_program(const char *pattern, const char *word, bool guards)
{
	const char *slash = strrchr(word, '/');
	return fits_word(pattern, word, guards) ||
	       (guards && !strchr(pattern, '/') && slash && slash[1] &&
		       fits_word(pattern, slash + 1, true));
}

static bool try_words(struct words *words, size_t p, size_t c)
{
	char *known = &words->known[p][c];
	if (*known > 0) {
		return *known == 2;
	}
	bool fits = p == words->pattern_count;
	const char *pattern = fits ? NULL : words->pattern[p];
	if (pattern && strcmp(pattern, "**") == 0) {
		fits = try_words(words, p + 1, c) ||
		       (c < words->command_count && try_words(words, p, c + 1));
	} else if (pattern && c < words->command_count) {
		const char *word = words->command[c];
		fits = (p == 0 ? fits_program(pattern, word, words->guards)
			       : fits_word(pattern, word, words->guards)) &&
		       try_words(words, p + 1, c + 1);
	}
	*known = fits ? 2 : 1;
	return fits;
}

static bool expect_words(
	const struct policy_words *pattern, const char *const *command, bool guards)
{
	static struct words words;
	words = (struct words){.pattern = pattern->list,
		.command = command,
		.pattern_count = pattern->count,
		.guards = guards};
	while (command[words.command_count]) {
		words.command_count++;
	}
	return words.command_count > 0 && try_words(&words, 0, 0);
}

/* Checks commands that no shell reads and that start no other command. */
static void check_words(const struct policy_rule *rule, const struct input *input, bool matches)
{
	bool guards = rule->effect != POLICY_ALLOW;
	const struct policy_words *pattern = &rule->words;
	bool begins = policy_words_begin(pattern, input->words, input->query.shell_line);
	bool may_occur = policy_words_may_occur(pattern, input->words, input->query.shell_line);
	FUZZ_CHECK(!begins || may_occur);
	FUZZ_CHECK(matches == (guards ? may_occur : begins));
	if (!input->query.shell_line) {
		FUZZ_CHECK(begins == expect_words(pattern, input->words, false));
		FUZZ_CHECK(!expect_words(pattern, input->words, true) || may_occur);
	}
}

/* ---- a rule ---- */

static void check_match(const struct policy_rule *rule, const struct input *input, bool matches)
{
	bool is_about = rule->operation == (int)policy_subject(&input->query);
	if (rule->operation == POLICY_ANY_OPERATION) {
		FUZZ_CHECK(matches);
	} else if (is_about && rule->operation != POLICY_GRANT) {
		if (rule->words.count > 0) {
			check_words(rule, input, matches);
		} else if (rule->pattern) {
			check_paths(rule, input, matches);
		} else {
			FUZZ_CHECK(matches);
		}
	} else if (policy_subject(&input->query) != POLICY_GRANT) {
		FUZZ_CHECK(!matches || rule->operation == POLICY_GRANT);
	}
}

static void check_line(const struct policy_rule *rule, const char *value)
{
	char line[NAIVE_MAX + 16];
	snprintf(line, sizeof(line), "%s = %s", policy_effect_name(rule->effect), value);
	FUZZ_CHECK(strcmp(rule->line, line) == 0);
	FUZZ_CHECK(!(rule->pattern && rule->words.count > 0));
}

static void run(const struct input *input)
{
	const char *value = input->lines[0];
	bool matches[EFFECTS] = {0};
	bool is_rule[EFFECTS];
	for (int effect = 0; effect < EFFECTS; effect++) {
		struct error err = {0};
		struct policy_rule *rule =
			policy_rule_create((enum policy_effect)effect, value, &err);
		is_rule[effect] = rule != NULL;
		FUZZ_CHECK(rule || (err.code == ERROR_CONFIG && err.text[0]));
		if (rule) {
			check_line(rule, value);
			matches[effect] = policy_rule_matches(rule, &input->query);
			check_match(rule, input, matches[effect]);
		}
		policy_rule_destroy(rule);
	}
	/*
	 * Whether a text is a rule does not depend on its effect; a guarding rule is never laxer
	 * than an allowing one.
	 */
	FUZZ_CHECK(is_rule[POLICY_DENY] == is_rule[POLICY_ASK]);
	FUZZ_CHECK(is_rule[POLICY_DENY] == is_rule[POLICY_ALLOW]);
	FUZZ_CHECK(matches[POLICY_DENY] == matches[POLICY_ASK]);
	FUZZ_CHECK(matches[POLICY_DENY] || !matches[POLICY_ALLOW]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input;
	char *text = mem_strndup((struct span){(const char *)data, size});
	if (read_input(&input, text)) {
		run(&input);
	}
	free(text);
	return 0;
}
