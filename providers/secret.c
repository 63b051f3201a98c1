/* SPDX-License-Identifier: MIT */
#include "providers/secret.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/capture.h"
#include "base/io.h"

enum {
	WORDS_MAX = 600,       // the end of stderr
	COMPLAINT_MAX = 8192,  // the part of it that is searched
	SHELL_NOT_FOUND = 127, // sh's exit status for this
};

struct secret_query {
	const char *what;
	secret_done *done;
	void *data;
	long long timeout_ms;
	struct capture *capture;
};

void secret_query_cancel(struct secret_query *query)
{
	if (query) {
		capture_cancel(query->capture);
		free(query);
	}
}

static void query_end(struct secret_query *query, char *secret, const struct error *err)
{
	secret_done *done = query->done;
	void *data = query->data;
	struct error copy = err ? *err : (struct error){0};
	query->capture = NULL;
	secret_query_cancel(query);
	done(data, secret, err ? &copy : NULL);
}

/* Up to the end of the line, or to a byte that no text contains. */
static size_t line_length(struct span text)
{
	size_t len = 0;
	while (len < text.len && !strchr("\r\n", text.data[len])) { // also finds a NUL
		len++;
	}
	return len;
}

/* Appends what the command wrote to stderr to the error's text. */
static void add_words(struct error *err, struct span complaint)
{
	char words[WORDS_MAX + 1] = "";
	struct error whole = *err;
	io_keep_words(words, WORDS_MAX, complaint);
	const char *begin = words + strspn(words, " ");
	size_t len = strlen(begin);
	while (len > 0 && begin[len - 1] == ' ') {
		len--;
	}
	if (len > 0) {
		error_set_reason(err, whole.code, whole.reason, "%s; it said on stderr: %.*s",
			whole.text, (int)len, begin);
	}
}

static bool take(const struct secret_query *query, const struct capture_result *result, size_t len,
	struct error *err)
{
	char status[64];
	if (result->status.code != 0 || result->status.signal != 0) {
		bool is_unknown = result->status.code == SHELL_NOT_FOUND;
		error_set(err, ERROR_UNAVAILABLE, "%s %s%s", query->what,
			process_status_text(result->status, status, sizeof(status)),
			is_unknown ? ", as the shell does for a program that is not in the PATH of "
				     "the broker's environment"
				   : "");
	} else if (len == 0) {
		/*
		 * The reader of the configuration may have taken a part of the line for a comment.
		 */
		error_set(err, ERROR_UNAVAILABLE,
			"%s printed nothing in the first line; is the command complete? In the "
			"configuration, a command with ; or # needs double quotes",
			query->what);
	} else if (len > SECRET_MAX) {
		error_set(err, ERROR_LIMIT, "%s printed a first line of more than %d bytes",
			query->what, (int)SECRET_MAX);
	} else {
		return true;
	}
	add_words(err, result->err);
	return false;
}

static void on_done(void *data, const struct capture_result *result, const struct error *failure)
{
	struct secret_query *query = data;
	struct error err;
	if (failure && failure->code == ERROR_TIMEOUT) {
		error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
			"%s had not ended after %lld ms", query->what, query->timeout_ms);
		query_end(query, NULL, &err);
		return;
	}
	if (failure) {
		err = *failure;
		error_prefix(&err, "running %s", query->what);
		query_end(query, NULL, &err);
		return;
	}
	size_t len = line_length(result->out);
	if (take(query, result, len, &err)) {
		query_end(query, mem_strndup((struct span){result->out.data, len}), NULL);
	} else {
		query_end(query, NULL, &err);
	}
}

struct secret_query *secret_query_start(const struct provider_context *context,
	const struct secret_spec *spec, secret_done *done, void *data, struct error *err)
{
	const char *const argv[] = {"/bin/sh", "-c", spec->line, NULL};
	struct capture_spec capture = {.argv = argv,
		.env = context->environment,
		.cwd = spec->cwd,
		.out_max = SECRET_MAX + 1, // one more byte shows that the line is too long
		.out_is_cut = true,
		.is_secret = true,
		.err_max = COMPLAINT_MAX,
		.timeout_ms = spec->timeout_ms};
	struct secret_query *query = mem_alloc_zero(sizeof(*query));
	query->what = spec->what;
	query->done = done;
	query->data = data;
	query->timeout_ms = spec->timeout_ms;
	query->capture =
		capture_start(context->loop, context->spawner, &capture, on_done, query, err);
	if (!query->capture) {
		error_prefix(err, "running %s", spec->what);
		free(query);
		return NULL;
	}
	return query;
}
