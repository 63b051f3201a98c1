/* SPDX-License-Identifier: MIT */
#include "providers/daytona/keys.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/list.h"
#include "base/soon.h"
#include "providers/secret.h"

/* A command, and the key that it has printed. */
struct key_line {
	struct list link; // keys.lines
	struct daytona_keys *keys;
	char *line;                 // owned
	char *key;                  // owned, wiped; NULL: none yet
	struct secret_query *query; // running; or NULL
	long long timeout_ms;       // for the query
	struct list waits;          // of struct daytona_key_wait
};

struct daytona_key_wait {
	struct list link; // line.waits
	struct key_line *line;
	bool is_for_query; // waits for the line's query; otherwise the outcome is known and raised
	                   // soon
	char *key;         // owned, wiped; the outcome; or NULL
	struct error *err; // owned; the outcome; or NULL
	struct soon soon;
	daytona_key_done *done;
	void *data;
};

void daytona_keys_init(struct daytona_keys *keys, const struct provider_context *context)
{
	*keys = (struct daytona_keys){.context = context};
	list_init(&keys->lines);
}

void daytona_keys_finish(struct daytona_keys *keys)
{
	LIST_FOR_EACH(line, &keys->lines, struct key_line, link) {
		assert(list_is_empty(&line->waits) && !line->query);
		list_remove(&line->link);
		mem_wipe_free(line->key);
		free(line->line);
		free(line);
	}
}

static struct key_line *find_line(struct daytona_keys *keys, const char *text)
{
	LIST_FOR_EACH(line, &keys->lines, struct key_line, link) {
		if (strcmp(line->line, text) == 0) {
			return line;
		}
	}
	struct key_line *line = mem_alloc_zero(sizeof(*line));
	line->keys = keys;
	line->line = mem_strdup(text);
	list_init(&line->waits);
	list_append(&keys->lines, &line->link);
	return line;
}

/* ---- outcome ---- */

static void wait_free(struct daytona_key_wait *wait)
{
	soon_stop(&wait->soon);
	list_remove(&wait->link);
	mem_wipe_free(wait->key);
	free(wait->err);
	free(wait);
}

static void on_soon(struct soon *soon)
{
	struct daytona_key_wait *wait = CONTAINER_OF(soon, struct daytona_key_wait, soon);
	daytona_key_done *done = wait->done;
	void *data = wait->data;
	char *key = wait->key;
	struct error *err = wait->err;
	wait->key = NULL;
	wait->err = NULL;
	wait_free(wait);
	done(data, key, err);
	mem_wipe_free(key);
	free(err);
}

static void tell(struct daytona_key_wait *wait, const struct error *err)
{
	wait->is_for_query = false;
	if (err) {
		wait->err = mem_alloc(sizeof(*wait->err));
		*wait->err = *err;
	} else {
		wait->key = mem_strdup(wait->line->key);
	}
	soon_start(&wait->soon);
}

static void tell_all(struct key_line *line, const struct error *err)
{
	LIST_FOR_EACH(wait, &line->waits, struct daytona_key_wait, link) {
		if (wait->is_for_query) {
			tell(wait, err);
		}
	}
}

static void fail(struct key_line *line, const struct error *err)
{
	struct error told;
	if (err->code == ERROR_TIMEOUT) {
		error_set_reason(&told, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
			"%s (api-key-command-timeout): does it wait for a terminal? It has "
			"none",
			err->text);
	} else {
		error_set_reason(&told, err->code, "DAYTONA_KEY_COMMAND", "%s", err->text);
	}
	tell_all(line, &told);
}

/* ---- the command ---- */

static void trim(char *text)
{
	size_t blanks = strspn(text, " \t"), len = strlen(text);
	while (len > blanks && strchr(" \t", text[len - 1])) {
		len--;
	}
	memmove(text, text + blanks, len - blanks);
	explicit_bzero(text + len - blanks, blanks);
	text[len - blanks] = '\0';
}

static void on_printed(void *data, char *secret, const struct error *err)
{
	struct key_line *line = data;
	line->query = NULL;
	mem_wipe_free(line->key); // the service refused it, or there was none
	line->key = NULL;
	if (err) {
		fail(line, err);
		return;
	}
	trim(secret);
	if (!*secret) {
		struct error blank;
		mem_wipe_free(secret);
		error_set(&blank, ERROR_UNAVAILABLE,
			"api-key-command printed nothing in the first line");
		fail(line, &blank);
		return;
	}
	line->key = secret;
	tell_all(line, NULL);
}

/* Not in the broker's working folder, which is a workspace: others may have put files there. */
static const char *folder_of(const struct provider_context *context)
{
	const char *home =
		context->environment ? environment_get(context->environment, "HOME") : NULL;
	return home && home[0] == '/' ? home : "/";
}

static void run(struct key_line *line)
{
	const struct provider_context *context = line->keys->context;
	struct error err;
	struct secret_spec spec = {.what = "api-key-command",
		.line = line->line,
		.cwd = folder_of(context),
		.timeout_ms = line->timeout_ms};
	line->query = secret_query_start(context, &spec, on_printed, line, &err);
	if (!line->query) {
		fail(line, &err);
	}
}

/* ---- for the caller ---- */

struct daytona_key_wait *daytona_key_ask(const struct daytona_key_command *command,
	const char *refused, daytona_key_done *done, void *data)
{
	struct key_line *line = find_line(command->keys, command->line);
	struct daytona_key_wait *wait = mem_alloc_zero(sizeof(*wait));
	bool is_known = line->key && !(refused && strcmp(line->key, refused) == 0);
	wait->line = line;
	wait->done = done;
	wait->data = data;
	wait->is_for_query = true;
	soon_init(&wait->soon, command->keys->context->loop, on_soon);
	list_append(&line->waits, &wait->link);
	if (is_known && !line->query) {
		tell(wait, NULL);
	} else if (!line->query) {
		line->timeout_ms = command->timeout_ms;
		run(line);
	}
	return wait;
}

void daytona_key_cancel(struct daytona_key_wait *wait)
{
	if (!wait) {
		return;
	}
	struct key_line *line = wait->line;
	bool is_awaited = false;
	wait_free(wait);
	LIST_FOR_EACH(other, &line->waits, struct daytona_key_wait, link) {
		is_awaited = is_awaited || other->is_for_query;
	}
	if (!is_awaited) {
		secret_query_cancel(line->query);
		line->query = NULL;
	}
}
