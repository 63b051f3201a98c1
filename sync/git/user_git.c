/* SPDX-License-Identifier: MIT */
#include "sync/git/user_git.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/path_quote.h"
#include "base/text.h"
#include "base/words.h"
#include "sync/run_git.h"

enum { LINE_MAX_BYTES = 1 << 20 };

/* ---- the environment and the settings ---- */

/*
 * Where git finds the user's configuration; relative paths are ignored, because they would lead
 * into the work tree.
 */
static void take_paths(struct user_git *git, const char *const *environment)
{
	static const char *const names[] = {
		"HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		const char *value = environment_get(environment, names[i]);
		if (value && *value == '/') {
			char text[PATH_MAX + 64];
			if (text_whole(text, sizeof(text), "%s=%s", names[i], value)) {
				words_append(&git->environment, text);
			}
		}
	}
}

/* The names for the reflog. */
static void take_names(struct user_git *git, const char *const *environment)
{
	static const char *const names[] = {"USER", "LOGNAME", "EMAIL", "GIT_COMMITTER_NAME",
		"GIT_COMMITTER_EMAIL", "GIT_CONFIG_NOSYSTEM", "TZ"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		const char *value = environment_get(environment, names[i]);
		if (value) {
			char text[1024];
			if (text_whole(text, sizeof(text), "%s=%s", names[i], value)) {
				words_append(&git->environment, text);
			}
		}
	}
}

/* Git must find the repository at the root, or none. */
static void take_ceiling(struct user_git *git, const char *root)
{
	char text[PATH_MAX + 64];
	const char *slash = strrchr(root, '/');
	int length = slash && slash > root ? (int)(slash - root) : 1;
	text_whole(text, sizeof(text), "GIT_CEILING_DIRECTORIES=%.*s", length, root);
	words_append(&git->environment, text);
}

static void make_environment(struct user_git *git, const char *root, const char *const *environment)
{
	static const char *const fixed[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C",
		"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1",
		"GIT_ALLOW_PROTOCOL=file", NULL};
	words_append_all(&git->environment, fixed);
	take_paths(git, environment);
	take_names(git, environment);
	take_ceiling(git, root);
}

static void add_setting(struct user_git *git, const char *setting)
{
	words_append(&git->words, "-c");
	words_append(&git->words, setting);
}

static void make_words(struct user_git *git, const char *root)
{
	static const char *const settings[] = {"core.hooksPath=/dev/null", "core.fsmonitor=false",
		"core.alternateRefsCommand=true", "submodule.recurse=false", "gc.auto=0",
		"maintenance.auto=false"};
	words_append(&git->words, "git");
	words_append(&git->words, "-C");
	words_append(&git->words, root);
	for (size_t i = 0; i < ARRAY_LENGTH(settings); i++) {
		add_setting(git, settings[i]);
	}
}

/* ---- running it ---- */

static char **whole_environment(const struct user_git *git, bool is_on_draft)
{
	char **environment = words_copy((const char *const *)git->environment);
	if (is_on_draft && git->draft) {
		size_t size = strlen(git->draft) + sizeof("GIT_INDEX_FILE=");
		char *text = mem_alloc(size);
		text_whole(text, size, "GIT_INDEX_FILE=%s", git->draft);
		words_append(&environment, text);
		free(text);
	}
	return environment;
}

static bool run(struct user_git *git, const struct user_git_call *call, int *out_status,
	char said[RUN_GIT_WORDS_MAX], struct error *err)
{
	struct buf unwanted;
	buf_init(&unwanted, LINE_MAX_BYTES);
	char **environment = whole_environment(git, call->is_on_draft);
	char **words = words_copy((const char *const *)git->words);
	words_append_all(&words, call->words);
	struct run_git_call run = {.argv = (const char *const *)words,
		.environment = (const char *const *)environment,
		.input = call->input,
		.output = call->output ? call->output : &unwanted,
		.words = said};
	bool ok = run_git_call(&run, out_status, err);
	words_free(words);
	words_free(environment);
	buf_finish(&unwanted);
	return ok || error_prefix(err, "git %s", call->words[0]);
}

static bool fail(const struct user_git_call *call, int status, const char *said, struct error *err)
{
	char *quoted = path_quote(span_of(said));
	error_set(err, ERROR_SYSTEM, "git %s: %s (status %d)", call->words[0],
		*said ? quoted : "it failed", status);
	free(quoted);
	return false;
}

bool user_git_run(struct user_git *git, const struct user_git_call *call, struct error *err)
{
	char said[RUN_GIT_WORDS_MAX] = "";
	int status;
	return run(git, call, &status, said, err) && (status == 0 || fail(call, status, said, err));
}

bool user_git_ask(
	struct user_git *git, const struct user_git_call *call, bool *out_yes, struct error *err)
{
	char said[RUN_GIT_WORDS_MAX] = "";
	int status;
	if (!run(git, call, &status, said, err)) {
		return false;
	}
	if (status != 0 && status != 1) {
		return fail(call, status, said, err);
	}
	*out_yes = status == 0;
	return true;
}

bool user_git_line(struct user_git *git, const char *const *words, bool is_on_draft, char *line,
	size_t size, struct error *err)
{
	struct buf output;
	buf_init(&output, LINE_MAX_BYTES);
	struct user_git_call call = {.words = words, .output = &output, .is_on_draft = is_on_draft};
	bool ok = user_git_run(git, &call, err);
	struct span text = buf_span(&output);
	const char *end = ok && text.len > 0 ? memchr(text.data, '\n', text.len) : NULL;
	size_t length = end ? (size_t)(end - text.data) : text.len;
	if (ok && length >= size) {
		ok = error_set(err, ERROR_LIMIT, "git %s: a line is too long", words[0]);
	}
	if (ok) {
		text_whole(line, size, "%.*s", (int)length, length > 0 ? text.data : "");
	}
	buf_finish(&output);
	return ok;
}

/* ---- filters ---- */

/*
 * Disables "filter.NAME.clean". NAME may not contain "=": git splits a setting on its command line
 * at the first one.
 */
static bool stop_filter(struct user_git *git, struct span name, struct error *err)
{
	static const char *const ends[] = {".clean=", ".smudge=", ".process=", ".required=false"};
	if (memchr(name.data, '=', name.len)) {
		return error_set(err, ERROR_CONFIG,
			"git's configuration has a filter with \"=\" in its name, which cannot be "
			"disabled: rename it");
	}
	for (size_t i = 0; i < ARRAY_LENGTH(ends); i++) {
		char setting[1024];
		int length = snprintf(setting, sizeof(setting), "filter.%.*s%s", (int)name.len,
			name.data, ends[i]);
		if (length >= (int)sizeof(setting)) {
			return error_set(err, ERROR_LIMIT, "the name of a filter is too long");
		}
		add_setting(git, setting);
	}
	char *own = mem_strndup(name);
	words_append(&git->filters, own);
	free(own);
	return true;
}

static bool stop_filters(struct user_git *git, struct span keys, struct error *err)
{
	static const char prefix[] = "filter.";
	bool ok = true;
	for (size_t at = 0; ok && at < keys.len;) {
		const char *key = keys.data + at;
		size_t length = strnlen(key, keys.len - at);
		at += length + 1;
		const char *end = length >= sizeof(prefix) ? memrchr(key, '.', length) : NULL;
		struct span name = {key + sizeof(prefix) - 1, 0};
		if (!end || end < name.data) {
			continue;
		}
		name.len = (size_t)(end - name.data);
		char *text = mem_strndup(name);
		bool is_known = words_contain((const char *const *)git->filters, text);
		free(text);
		ok = is_known || stop_filter(git, name, err);
	}
	return ok;
}

/* Asks git, which knows all configuration files and what they include. */
static bool find_filters(struct user_git *git, struct error *err)
{
	static const char *const words[] = {
		"config", "-z", "--name-only", "--get-regexp", "^filter[.]", NULL};
	bool any;
	struct buf keys;
	buf_init(&keys, LINE_MAX_BYTES);
	struct user_git_call call = {.words = words, .output = &keys};
	bool ok = user_git_ask(git, &call, &any, err) && stop_filters(git, buf_span(&keys), err);
	buf_finish(&keys);
	return ok;
}

/* ---- all of it ---- */

static bool check_top(struct user_git *git, const char *root, struct error *err)
{
	static const char *const words[] = {"rev-parse", "--show-toplevel", NULL};
	char top[PATH_MAX];
	if (!user_git_line(git, words, false, top, sizeof(top), err)) {
		return false;
	}
	return strcmp(top, root) == 0 ||
	       error_set(err, ERROR_NOT_FOUND, "%s is not the top of its repository's work tree",
		       root);
}

bool user_git_open(struct user_git *git, const char *root, bool may_be_part,
	const char *const *environment, struct error *err)
{
	*git = (struct user_git){.environment = NULL};
	const char *top = git->repository.top;
	if (!user_repository_find(&git->repository, root, may_be_part)) {
		return error_set(err, ERROR_NOT_FOUND, "%s is not a git repository", root);
	}
	make_environment(git, top, environment);
	make_words(git, top);
	return check_top(git, top, err) && find_filters(git, err);
}

void user_git_finish(struct user_git *git)
{
	words_free(git->environment);
	words_free(git->words);
	words_free(git->filters);
	free(git->draft);
	*git = (struct user_git){.environment = NULL};
}
