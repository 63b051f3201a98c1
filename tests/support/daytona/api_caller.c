/* SPDX-License-Identifier: MIT */
#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json_writer.h"
#include "providers/daytona/api.h"

/*
 * The API client for a test in Python: api_caller URL KEY ORGANIZATION [TRY_MS TIMEOUT_MS]. Each
 * line of its input is a call, "VERB NAME [WORD]". It answers each call with one line of JSON, and
 * then makes the next one. It ends with its input.
 */
enum { LINE_MAX_BYTES = 4096, ANSWER_MAX = 8 << 20 };

static struct daytona_api *api;
static struct buf answer;
static struct json_writer writer;

/* ---- answers ---- */

static void write_member(const char *name, const char *text)
{
	json_write_key(&writer, name);
	json_write_text(&writer, text);
}

static void begin_answer(void)
{
	buf_clear(&answer);
	json_write_begin(&writer, &answer);
	json_write_object(&writer);
}

static void end_answer(const struct error *err)
{
	struct error failure;
	if (err) {
		write_member("reason", err->reason ? err->reason : "none");
		write_member("text", err->text);
	}
	json_write_object_end(&writer);
	if (!json_write_end(&writer, &failure)) {
		fprintf(stderr, "%s\n", failure.text);
		exit(1);
	}
	printf("%.*s\n", (int)answer.len, buf_span(&answer).data);
	fflush(stdout);
}

static void write_sandbox(const struct daytona_sandbox *sandbox)
{
	write_member("id", sandbox->id);
	write_member("name", sandbox->name);
	write_member("state", sandbox->state);
	write_member("errorReason", sandbox->error_reason);
	write_member("networkAllowList", sandbox->network_allow_list);
	json_write_key(&writer, "autoStop");
	json_write_int(&writer, sandbox->auto_stop_min);
	json_write_key(&writer, "oddLabels");
	json_write_bool(&writer, sandbox->has_odd_labels);
	json_write_key(&writer, "labels");
	json_write_object(&writer);
	for (const struct daytona_pair *label = sandbox->labels; label->name; label++) {
		write_member(label->name, label->value);
	}
	json_write_object_end(&writer);
}

static void on_sandbox(void *data, const struct daytona_sandbox *sandbox, const struct error *err)
{
	begin_answer();
	if (sandbox) {
		write_sandbox(sandbox);
	}
	end_answer(err);
}

static void on_access(void *data, const struct daytona_access *access, const struct error *err)
{
	begin_answer();
	if (access) {
		write_member("token", access->token);
		write_member("host", access->host);
		write_member("expiresAt", access->expires_at);
		json_write_key(&writer, "port");
		json_write_int(&writer, access->port);
	}
	end_answer(err);
}

static void on_done(void *data, const struct error *err)
{
	begin_answer();
	end_answer(err);
}

static void on_listed(void *data, const struct daytona_sandbox *sandbox)
{
	json_write_object(&writer);
	write_sandbox(sandbox);
	json_write_object_end(&writer);
}

static void on_list_done(void *data, const struct error *err)
{
	json_write_array_end(&writer);
	end_answer(err);
}

/* ---- calls ---- */

static void create(const char *name, const char *word, bool is_image)
{
	struct daytona_pair env[] = {{"FOO", "bar"}, {NULL, NULL}};
	struct daytona_pair labels[] = {
		{"acp-broker/session", "s/1"}, {"test", name}, {NULL, NULL}};
	struct daytona_create create = {.name = name,
		.snapshot = is_image || !word[0] ? NULL : word,
		.image = is_image ? word : NULL,
		.target = "us",
		.env = env,
		.labels = labels,
		.cpu = is_image ? 1 : 0,
		.memory_gib = is_image ? 1 : 0,
		.disk_gib = is_image ? 3 : 0,
		.auto_stop_min = 30,
		.auto_archive_min = 60,
		.auto_delete_min = -1,
		.network_allow_list = "10.0.0.0/8"};
	daytona_create(api, &create, on_sandbox, NULL);
}

static void list(const char *label, const char *value)
{
	static const struct daytona_list_listener listener = {on_listed, on_list_done};
	struct daytona_pair labels[] = {{label, value}, {NULL, NULL}};
	begin_answer();
	json_write_key(&writer, "items");
	json_write_array(&writer);
	daytona_list(api, labels, &listener, NULL);
}

static void set_labels(const char *name, const char *value)
{
	struct daytona_pair labels[] = {{"only", value}, {NULL, NULL}};
	daytona_set_labels(api, name, labels, on_done, NULL);
}

static void set_network(const char *name, const char *list)
{
	struct daytona_network network = {
		.blocks_network = !list[0], .network_allow_list = list[0] ? list : NULL};
	daytona_set_network(api, name, &network, on_done, NULL);
}

static bool call_act(const char *verb, const char *name)
{
	static const char *const verbs[] = {
		[DAYTONA_START] = "start",
		[DAYTONA_STOP] = "stop",
		[DAYTONA_ARCHIVE] = "archive",
		[DAYTONA_DELETE] = "delete",
		[DAYTONA_RECOVER] = "recover",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(verbs); i++) {
		if (strcmp(verb, verbs[i]) == 0) {
			daytona_act(api, (enum daytona_act)i, name, on_sandbox, NULL);
			return true;
		}
	}
	return false;
}

static bool call_interval(const char *verb, const char *name, const char *word)
{
	static const char *const verbs[] = {
		[DAYTONA_AUTO_STOP] = "autostop",
		[DAYTONA_AUTO_ARCHIVE] = "autoarchive",
		[DAYTONA_AUTO_DELETE] = "autodelete",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(verbs); i++) {
		if (strcmp(verb, verbs[i]) == 0) {
			daytona_set_interval(api, name, (enum daytona_interval)i,
				(int)strtol(word, NULL, 10), on_done, NULL);
			return true;
		}
	}
	return false;
}

static void call(const char *verb, const char *name, const char *word)
{
	if (call_act(verb, name) || call_interval(verb, name, word)) {
		return;
	}
	if (strcmp(verb, "create") == 0) {
		create(name, word, false);
	} else if (strcmp(verb, "create-image") == 0) {
		create(name, word, true);
	} else if (strcmp(verb, "get") == 0) {
		daytona_get(api, name, on_sandbox, NULL);
	} else if (strcmp(verb, "list") == 0) {
		list(name, word);
	} else if (strcmp(verb, "labels") == 0) {
		set_labels(name, word);
	} else if (strcmp(verb, "network") == 0) {
		set_network(name, word);
	} else if (strcmp(verb, "touch") == 0) {
		daytona_touch(api, name, on_done, NULL);
	} else if (strcmp(verb, "access") == 0) {
		daytona_ask_access(api, name, 60, on_access, NULL);
	} else if (strcmp(verb, "revoke") == 0) {
		daytona_revoke_access(api, name, on_done, NULL);
	} else {
		fprintf(stderr, "no such call: %s\n", verb);
		exit(2);
	}
}

static void on_input(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	static char line[LINE_MAX_BYTES];
	static size_t len;
	ssize_t count = read(0, line + len, 1); // reads a line only when it can make that call
	if (count <= 0) {
		ev_break(loop, EVBREAK_ALL);
		return;
	}
	if (line[len] != '\n') {
		len += len + 1 < sizeof(line);
		return;
	}
	line[len] = '\0';
	len = 0;
	char verb[32] = "";
	char name[512] = "";
	char word[512] = "";
	sscanf(line, "%31s %511s %511s", verb, name, word);
	call(verb, name, word);
}

int main(int argc, char **argv)
{
	struct error err;
	if (argc != 4 && argc != 6) {
		fprintf(stderr, "usage: api_caller URL KEY ORGANIZATION [TRY_MS TIMEOUT_MS]\n");
		return 2;
	}
	struct ev_loop *loop = ev_loop_new(0);
	struct ev_io input;
	struct daytona_api_config config = {.loop = loop,
		.url = argv[1],
		.key = argv[2],
		.organization = argv[3][0] ? argv[3] : NULL,
		.environment = (const char *const *)environ,
		.try_timeout_ms = argc == 6 ? strtol(argv[4], NULL, 10) : 60000,
		.timeout_ms = argc == 6 ? strtol(argv[5], NULL, 10) : 120000,
		.pause_ms = 20};
	api = daytona_api_create(&config, &err);
	if (!api) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	buf_init(&answer, ANSWER_MAX);
	ev_io_init(&input, on_input, 0, EV_READ);
	ev_io_start(loop, &input);
	ev_run(loop, 0);
	daytona_api_destroy(api);
	buf_finish(&answer);
	ev_loop_destroy(loop);
	return 0;
}
