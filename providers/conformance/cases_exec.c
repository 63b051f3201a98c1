/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/conformance/cases.h"

/* What every provider does with processes. */

enum { MEGABYTE = 1 << 20, MANY = 4, ALIVE_MAX = 8 << 20 };

/* Runs a shell script; `argument` is its $1. */
static bool run_script(struct conformance_place *place, const char *script, struct span input,
	struct conformance_result *out, struct error *err)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	return conformance_run(
		place, &(struct conformance_spec){.argv = argv, .input = input}, out, err);
}

/* Checks the content of a stream. The error has a shortened copy of the content. */
static bool expect_text(
	const char *stream, const struct buf *text, const char *wanted, struct error *err)
{
	struct span got = buf_span(text);
	if (span_is(got, wanted)) {
		return true;
	}
	char shown[164];
	text_format(shown, sizeof(shown), "%.*s", (int)got.len, got.data ? got.data : "");
	return error_set(err, ERROR_PROTOCOL,
		"%s: expected \"%s\", got %zu bytes: \"%s\"; perhaps another program writes to "
		"this output or changes it, for example a login script that prints",
		stream, wanted, got.len, shown);
}

static bool expect_status(struct process_status got, int code, int signal, struct error *err)
{
	char how[64];
	char wanted[64];
	struct process_status status = {.code = code, .signal = signal};
	return (got.code == code && got.signal == signal) ||
	       error_set(err, ERROR_PROTOCOL, "expected a process that %s, got one that %s",
		       process_status_text(status, wanted, sizeof(wanted)),
		       process_status_text(got, how, sizeof(how)));
}

/* Expects an exit status of 0 and this output. */
static bool expect_output(struct conformance_place *place, const struct conformance_spec *spec,
	const char *wanted, struct error *err)
{
	struct conformance_result result;
	if (!conformance_run(place, spec, &result, err)) {
		return false;
	}
	bool ok = expect_status(result.status, 0, 0, err) &&
	          expect_text("stdout", &result.out, wanted, err);
	conformance_result_finish(&result);
	return ok || error_prefix(err, "%s", spec->argv[0]);
}

bool case_exit_status(struct conformance_place *place, struct error *err)
{
	static const struct {
		const char *script;
		int code, signal;
	} cases[] = {{"exit 0", 0, 0}, {"exit 7", 7, 0}, {"exit 137", 137, 0}, {"exit 255", 255, 0},
		{"kill -9 $$", 0, 9}, {"kill -15 $$", 0, 15}};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct conformance_result result;
		if (!run_script(place, cases[i].script, SPAN_LITERAL(""), &result, err)) {
			return false;
		}
		bool ok = expect_status(result.status, cases[i].code, cases[i].signal, err);
		conformance_result_finish(&result);
		if (!ok) {
			return error_prefix(err, "sh -c '%s'", cases[i].script);
		}
	}
	return true;
}

bool case_streams(struct conformance_place *place, struct error *err)
{
	struct conformance_result result;
	if (!run_script(place, "echo out; echo errors >&2; echo more", SPAN_LITERAL(""), &result,
		    err)) {
		return false;
	}
	bool ok = expect_text("stdout", &result.out, "out\nmore\n", err) &&
	          expect_text("stderr", &result.errors, "errors\n", err);
	conformance_result_finish(&result);
	return ok;
}

bool case_half_close(struct conformance_place *place, struct error *err)
{
	struct conformance_result result;
	if (!run_script(place, "cat; echo after", SPAN_LITERAL("before\n"), &result, err)) {
		return error_prefix(err, "output after the end of stdin");
	}
	bool ok = expect_text("stdout after the end of stdin", &result.out, "before\nafter\n", err);
	conformance_result_finish(&result);
	return ok;
}

bool case_bytes(struct conformance_place *place, struct error *err)
{
	struct conformance_result result;
	unsigned char *bytes = mem_alloc(MEGABYTE);
	unsigned state = 1;
	for (size_t i = 0; i < MEGABYTE; i++) {
		state = state * 1103515245 + 12345;
		bytes[i] = (unsigned char)(state >> 16);
	}
	struct span input = {(const char *)bytes, MEGABYTE};
	bool ok = run_script(place, "exec cat", input, &result, err);
	if (ok) {
		struct span got = buf_span(&result.out);
		ok = got.len == MEGABYTE && memcmp(got.data, bytes, MEGABYTE) == 0;
		if (!ok) {
			error_set(err, ERROR_PROTOCOL,
				"1 MiB sent through cat came back as %zu bytes that are %s",
				got.len, got.len == MEGABYTE ? "others" : "not all");
		}
		conformance_result_finish(&result);
	}
	free(bytes);
	return ok;
}

bool case_arguments(struct conformance_place *place, struct error *err)
{
	static const char *const argv[] = {"printf", "<%s>", "two words", "", "a'b\"c", "$HOME",
		"*", "line\nline", "\xc3\xa4", NULL};
	return expect_output(place, &(struct conformance_spec){.argv = argv},
		"<two words><><a'b\"c><$HOME><*><line\nline><\xc3\xa4>", err);
}

bool case_environment(struct conformance_place *place, struct error *err)
{
	static const char value[] = "two\nlines, 'quotes\" and $HOME `id` \\ \xc3\xa4";
	static const char *const argv[] = {"sh", "-c", "printf %s \"$ACP_BROKER_TRIAL\"", NULL};
	const char *more[] = {
		"ACP_BROKER_TRIAL=two\nlines, 'quotes\" and $HOME `id` \\ \xc3\xa4", NULL};
	char **env = environment_merge(sandbox_environment(place->sandbox), more);
	struct conformance_result result;
	struct conformance_spec spec = {.argv = argv, .env = (const char *const *)env};
	bool ok = conformance_run(place, &spec, &result, err);
	if (ok) {
		ok = expect_text("a variable", &result.out, value, err);
		conformance_result_finish(&result);
	}
	words_free(env);
	return ok;
}

bool case_directory(struct conformance_place *place, struct error *err)
{
	static const char *const pwd[] = {"pwd", "-P", NULL};
	static const char *const cat[] = {"cat", "here", NULL};
	const char *home = sandbox_home(place->sandbox);
	struct conformance_result result;
	char folder[PATH_MAX];
	text_whole(folder, sizeof(folder), "%s/sub dir", place->root);
	struct conformance_spec at_home = {.argv = pwd, .is_at_home = true};
	if (!conformance_run(place, &at_home, &result, err)) {
		return false;
	}
	struct span got = buf_span(&result.out);
	bool is_home = got.len >= strlen(home) && memcmp(got.data, home, strlen(home)) == 0;
	if (!is_home) {
		error_set(err, ERROR_PROTOCOL, "expected to start in %s, not in %.*s", home,
			(int)got.len, got.data ? got.data : "");
	}
	conformance_result_finish(&result);
	return is_home &&
	       conformance_shell(place, "mkdir 'sub dir' && echo x >'sub dir/here'", NULL, err) &&
	       expect_output(
		       place, &(struct conformance_spec){.argv = cat, .cwd = folder}, "x\n", err);
}

/* Expects a start that fails with this code, and an error text that contains `name`. */
static bool expect_not_started(struct conformance_place *place, const struct conformance_spec *spec,
	enum error_code code, const char *name, struct error *err)
{
	struct conformance_result result;
	if (conformance_run(place, spec, &result, err)) {
		conformance_result_finish(&result);
		return error_set(
			err, ERROR_PROTOCOL, "%s: it was started although it cannot be", name);
	}
	return (err->code == code && strstr(err->text, name)) ||
	       error_prefix(err, "%s: expected another error", name);
}

bool case_not_started(struct conformance_place *place, struct error *err)
{
	static const char *const path[] = {"PATH=/nowhere:/usr/bin", NULL};
	static const struct {
		const char *argv[2];
		const char *const *env;
		const char *cwd;
		enum error_code code;
		const char *name;
	} cases[] = {
		{{"no-such-command", NULL}, path, NULL, ERROR_NOT_FOUND, "/nowhere:/usr/bin"},
		{{"/nowhere/command", NULL}, NULL, NULL, ERROR_NOT_FOUND, "/nowhere/command"},
		{{"./plain", NULL}, NULL, NULL, ERROR_DENIED, "plain"},
		{{"true", NULL}, NULL, "/nowhere/at/all", ERROR_NOT_FOUND, "/nowhere/at/all"},
		{{"true", NULL}, NULL, "here", ERROR_DENIED, "here"},
	};
	if (!conformance_shell(place, "echo '#!/bin/sh' >plain && chmod 644 plain", NULL, err)) {
		return false;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct conformance_spec spec = {
			.argv = cases[i].argv, .env = cases[i].env, .cwd = cases[i].cwd};
		if (!expect_not_started(place, &spec, cases[i].code, cases[i].name, err)) {
			return false;
		}
	}
	return true;
}

/* Finds those of these processes that are alive; a zombie is not. */
static bool find_alive(
	struct conformance_place *place, struct span pids, struct buf *out, struct error *err)
{
	char line[600];
	int len = snprintf(line, sizeof(line), "for p in ");
	for (size_t i = 0; i < pids.len && len < 300; i++) {
		bool is_digit = pids.data[i] >= '0' && pids.data[i] <= '9';
		line[len++] = (char)(is_digit ? pids.data[i] : ' ');
	}
	snprintf(line + len, sizeof(line) - (size_t)len,
		"\ndo s=; { read -r s < /proc/$p/stat; } 2>/dev/null\n"
		"s=${s##*) }; case ${s%%%% *} in ''|Z|X) ;; *) echo $p;; esac; done; true");
	return conformance_shell(place, line, out, err);
}

/* A child that has left the process group, and its own child, must be killed as well. */
bool case_kill(struct conformance_place *place, struct error *err)
{
	static const char *const argv[] = {"sh", "-c",
		"sleep 600 & echo $!\n"
		"setsid sh -c 'sleep 600 & echo $! inner; wait' || echo inner\n"
		"wait",
		NULL};
	struct conformance_spec spec = {.argv = argv, .kill_after = "inner\n"};
	struct conformance_result result;
	struct buf alive;
	if (!conformance_run(place, &spec, &result, err)) {
		return error_prefix(err, "killing a process and its children");
	}
	buf_init(&alive, ALIVE_MAX);
	bool ok = expect_status(result.status, 0, 9, err) &&
	          find_alive(place, buf_span(&result.out), &alive, err);
	if (ok && alive.len > 0) {
		ok = error_set(err, ERROR_PROTOCOL,
			"children that should have been killed are alive: %.*s", (int)alive.len,
			buf_span(&alive).data);
	}
	conformance_result_finish(&result);
	buf_finish(&alive);
	return ok;
}

/* ---- several at once ---- */

struct many {
	struct exec *execs[MANY];
	int fds[MANY][2]; // stdin, stdout
	size_t started, ended;
	bool all_started, all_ended;
	struct error err; // the first one that occurred
};

static void on_started(void *data)
{
	struct many *many = data;
	many->all_started = ++many->started == MANY || many->all_started;
}

static void on_ended(struct many *many)
{
	many->all_ended = ++many->ended == MANY;
}

/* A failure also ends the wait for the start, because no other event follows. */
static void on_failed(void *data, const struct error *err)
{
	struct many *many = data;
	if (many->err.code == ERROR_NONE) {
		many->err = *err;
	}
	many->all_started = true;
	on_ended(many);
}

static void on_exited(void *data, struct process_status status)
{
	on_ended(data);
}

static const struct exec_listener many_listener = {
	.on_started = on_started,
	.on_failed = on_failed,
	.on_exited = on_exited,
	.on_lost = on_failed,
};

static bool start_many(struct conformance_place *place, struct many *many, struct error *err)
{
	static const char *const argv[] = {"cat", NULL};
	struct exec_spec spec = {
		.argv = argv, .cwd = place->root, .want_stdin = true, .merge_stderr = true};
	for (size_t i = 0; i < MANY; i++) {
		many->fds[i][0] = many->fds[i][1] = -1;
	}
	for (size_t i = 0; i < MANY; i++) {
		many->execs[i] = sandbox_exec(place->sandbox, &spec, &many_listener, many, err);
		if (!many->execs[i]) {
			return false;
		}
		many->fds[i][0] = exec_take_stdin(many->execs[i]);
		many->fds[i][1] = exec_take_stdout(many->execs[i]);
	}
	return true;
}

/* In a session an agent, its terminals and the sync run at the same time. */
bool case_parallel(struct conformance_place *place, struct error *err)
{
	struct many many = {.started = 0};
	bool ok = start_many(place, &many, err) && place->wait(place->data, &many.all_started, err);
	for (size_t i = 0; i < MANY; i++) {
		fd_close(&many.fds[i][0]);
	}
	ok = ok && place->wait(place->data, &many.all_ended, err);
	if (ok && many.err.code != ERROR_NONE) {
		*err = many.err;
		ok = false;
	}
	for (size_t i = 0; i < MANY; i++) {
		fd_close(&many.fds[i][1]);
		exec_destroy(many.execs[i]);
	}
	return ok || error_prefix(err, "%d processes at once, %zu started", MANY, many.started);
}
