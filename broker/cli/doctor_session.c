/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acp/failure.h"
#include "base/json_doc.h"
#include "base/json_writer.h"
#include "base/libc.h"
#include "base/text.h"
#include "base/words.h"
#include "broker/cli/disk.h"
#include "broker/cli/doctor_parts.h"
#include "broker/cli/end_signals.h"
#include "broker/cli/exec_plan.h"
#include "broker/cli/scratch.h"
#include "broker/client/client.h"
#include "broker/client/methods.h"

enum { ASK_INITIALIZE = 1, ASK_NEW, ASK_HEALTH }; // ids of our requests

enum { MESSAGE_SLACK = 64 * 1024 }; // bytes that the broker may add to a message

/* A session, from the start of its broker to its end. */
struct visit {
	struct doctor *doctor;
	struct client *client;
	struct scratch scratch; // without a folder if the workspace is that of the checks
	const char *workspace;  // borrowed
	struct ev_timer due;
	struct end_signals signals;
	int timeout_ms;     // of the present wait
	long asked;         // the id of the unanswered request
	char logins[256];   // names of the agent's ways to log in
	bool is_over;       // no further requests
	bool has_failed;    // a step was reported as failed
	int urges;          // signals sent to a broker that does not end
	struct error error; // why the broker could not be read; ERROR_NONE: it could
	struct client_end end;
};

static const struct {
	const char *stage; // of a broker's error (docs/errors.md)
	enum doctor_step step;
} steps[] = {
	{"config", DOCTOR_CONFIGURATION},
	{"prepare", DOCTOR_SANDBOX},
	{"start", DOCTOR_AGENT},
	{"initialize", DOCTOR_INITIALIZE},
	{"authenticate", DOCTOR_LOGIN},
	{"session", DOCTOR_SESSION},
	{"sync", DOCTOR_SYNC},
	{"stop", DOCTOR_END},
};

static const struct profile *profile_of(const struct visit *visit)
{
	return &visit->doctor->means->config->profile;
}

static enum doctor_step step_of(const struct visit *visit, const char *stage)
{
	for (size_t i = 0; stage && i < ARRAY_LENGTH(steps); i++) {
		if (strcmp(steps[i].stage, stage) == 0) {
			return steps[i].step;
		}
	}
	return visit->asked == ASK_INITIALIZE ? DOCTOR_INITIALIZE : DOCTOR_SESSION;
}

/* ---- deadlines ---- */

static void wait_for(struct visit *visit, int timeout_ms)
{
	struct ev_loop *loop = visit->doctor->means->loop;
	visit->timeout_ms = timeout_ms;
	ev_timer_stop(loop, &visit->due);
	ev_now_update(loop);
	ev_timer_set(&visit->due, timeout_ms / 1000., 0.);
	ev_timer_start(loop, &visit->due);
}

/* The broker's own deadlines expire first, because its error says more. */
static int timeout_of(const struct visit *visit, long asked)
{
	const struct profile *profile = profile_of(visit);
	if (asked == ASK_INITIALIZE) {
		return profile->prepare_timeout_ms + profile->setup_timeout_ms +
		       profile->start_timeout_ms + DOCTOR_SLACK_MS;
	}
	if (asked == ASK_NEW) {
		int own_ms = profile->session_timeout_ms;
		return (own_ms > 0 ? own_ms : DOCTOR_SESSION_MS) + DOCTOR_SLACK_MS;
	}
	return profile->health_timeout_ms + DOCTOR_SLACK_MS;
}

static void finish_session(struct visit *visit)
{
	const struct profile *profile = profile_of(visit);
	if (visit->is_over) {
		return;
	}
	visit->is_over = true;
	client_close(visit->client);
	wait_for(visit, profile->stop_eof_ms + profile->stop_term_ms + profile->stop_kill_ms +
				profile->drain_timeout_ms + DOCTOR_SLACK_MS);
}

/* ---- failures ---- */

static void fail(struct visit *visit, enum doctor_step step, const char *code, const char *advice,
	const char *text)
{
	visit->has_failed = true;
	doctor_report_fail(&visit->doctor->report, step, code, advice, text);
	finish_session(visit);
}

static void on_due(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	static const int urges[] = {SIGTERM, SIGTERM, SIGKILL};
	struct visit *visit = timer->data;
	char text[128];
	enum doctor_step step = visit->is_over ? DOCTOR_END : step_of(visit, NULL);
	if (!visit->is_over || visit->urges == 0) {
		text_format(text, sizeof(text), "the broker has not %s within %d s",
			visit->is_over ? "ended" : "answered", visit->timeout_ms / 1000);
		fail(visit, step, "TIMEOUT_EXCEEDED",
			doctor_advice(visit->doctor, step, "BROKER_FAILED"), text);
	}
	if (visit->is_over && visit->urges < (int)ARRAY_LENGTH(urges)) {
		client_signal(visit->client, urges[visit->urges++]);
		wait_for(visit, DOCTOR_SLACK_MS);
	}
}

static void describe_login(const struct known_agent *known, char *out, size_t size)
{
	text_format(out, size, "log in: %s%s%s", known->login, known->login_step ? ", then " : "",
		known->login_step ? known->login_step : "");
	for (size_t i = 0; known->key_names[i]; i++) {
		text_append(out, size, "%s%s", i == 0 ? "; or set " : " or ", known->key_names[i]);
	}
}

/* Advice for an agent that was not found, or needs a login. */
static const char *advice_of(
	const struct visit *visit, enum doctor_step step, const char *code, char *room, size_t size)
{
	const struct known_agent *known = visit->doctor->known;
	if (known && strcmp(code, "AGENT_NOT_FOUND") == 0) {
		text_format(room, size, "install it: %s", known->install);
		return room;
	}
	if (known && strcmp(code, "LOGIN_NEEDED") == 0) {
		describe_login(known, room, size);
		return room;
	}
	if (strcmp(code, "LOGIN_NEEDED") == 0 && *visit->logins) {
		text_format(
			room, size, "log in, in your editor or in a terminal: %s", visit->logins);
		return room;
	}
	return doctor_advice(visit->doctor, step, code);
}

/* The last line of a program's output, whose beginning is missing. */
static const char *last_words(const char *detail)
{
	enum { LAST_MAX = 240 };
	size_t len = strlen(detail);
	while (len > 0 && detail[len - 1] == '\n') {
		len--;
	}
	size_t from = len > LAST_MAX ? len - LAST_MAX : 0;
	while (from > 0 && ((unsigned char)detail[from] & 0xc0) == 0x80) {
		from++; // not in the middle of a character
	}
	return detail + from;
}

static void take_error(struct visit *visit, struct span error)
{
	char advice[512], text[ERROR_TEXT_MAX];
	struct json_doc *doc = json_doc_parse_unchecked(error, NULL);
	char *message = doc ? json_string(doc, json_get(doc, 0, "message")) : NULL;
	char *code = doc ? json_string(doc, json_path(doc, 0, "data.code")) : NULL;
	char *stage = doc ? json_string(doc, json_path(doc, 0, "data.stage")) : NULL;
	char *detail = doc ? json_string(doc, json_path(doc, 0, "data.detail")) : NULL;
	bool is_login = doc && json_int(doc, json_get(doc, 0, "code"), 0) == AUTH_REQUIRED;
	bool is_ours = code && stage;
	enum doctor_step step =
		!is_ours && is_login ? DOCTOR_LOGIN : step_of(visit, is_ours ? stage : NULL);
	const char *name = is_ours ? code : is_login ? CLIENT_LOGIN_NEEDED : CLIENT_AGENT_ERROR;
	text_format(text, sizeof(text), "%s%s%s", message ? message : "an error without a message",
		detail && *detail ? ": " : "", detail && *detail ? last_words(detail) : "");
	fail(visit, step, name, advice_of(visit, step, name, advice, sizeof(advice)), text);
	free(message);
	free(code);
	free(stage);
	free(detail);
	json_doc_destroy(doc);
}

/* ---- our requests ---- */

static void ask(struct visit *visit, long id, const char *method,
	void (*write)(struct json_writer *writer, const struct visit *visit))
{
	struct buf out;
	struct json_writer writer;
	client_params_begin(&writer, &out);
	write(&writer, visit);
	visit->asked = id;
	client_params_send(visit->client, id, method, &writer);
	wait_for(visit, timeout_of(visit, id));
}

static void write_initialize(struct json_writer *writer, const struct visit *visit)
{
	client_write_initialize(writer, "acp-broker-doctor", false);
}

static void write_new(struct json_writer *writer, const struct visit *visit)
{
	client_write_new(writer, visit->workspace);
}

static void write_nothing(struct json_writer *writer, const struct visit *visit)
{
}

/* ---- the answers ---- */

static void note_logins(struct visit *visit, const struct json_doc *doc)
{
	json_node methods = json_get(doc, 0, "authMethods");
	for (json_node method = json_first(doc, methods); method != JSON_NODE_NONE;
		method = json_next(doc, method)) {
		char *name = json_string(doc, json_get(doc, method, "name"));
		text_append(visit->logins, sizeof(visit->logins), "%s%s",
			*visit->logins ? ", " : "", name ? name : "an unnamed method");
		free(name);
	}
}

/* The agent's own name; NULL if it gives none. */
static char *read_name(const struct visit *visit, const struct json_doc *doc, const char *path)
{
	char *said = json_string(doc, json_path(doc, 0, path));
	char *name = said ? doctor_report_clean(&visit->doctor->report, said) : NULL;
	free(said);
	return name;
}

static void take_initialize(struct visit *visit, const struct json_doc *doc)
{
	struct doctor *doctor = visit->doctor;
	const char *name = profile_of(visit)->agent_name;
	doctor_hand_over_sandbox(doctor);
	doctor->agent_title = read_name(visit, doc, "agentInfo.name");
	doctor->agent_version = read_name(visit, doc, "agentInfo.version");
	note_logins(visit, doc);
	doctor_report_ok(&doctor->report, DOCTOR_AGENT, "%s%s%s",
		doctor->agent_title ? doctor->agent_title : name,
		doctor->agent_version ? " " : ", which does not say its version",
		doctor->agent_version ? doctor->agent_version : "");
	doctor_report_ok(&doctor->report, DOCTOR_INITIALIZE, "it speaks ACP version 1");
	ask(visit, ASK_NEW, "session/new", write_new);
}

static void take_new(struct visit *visit)
{
	doctor_report_ok(&visit->doctor->report, DOCTOR_LOGIN,
		*visit->logins ? "a session needs no login" : "the agent has no login");
	ask(visit, ASK_HEALTH, "_broker/health", write_nothing);
}

/* Checks that the sandbox has room for a copy of the user's workspace. */
static void look_at_room(struct visit *visit, const struct json_doc *doc, json_node agent)
{
	char text[256], needs[DISK_TEXT_SIZE], has[DISK_TEXT_SIZE];
	struct doctor *doctor = visit->doctor;
	long long room = json_int(doc, json_get(doc, agent, "diskFreeBytes"), -1);
	if (!doctor->is_copy || room < 0 || (unsigned long long)room > doctor->workspace_bytes) {
		return;
	}
	text_format(text, sizeof(text), "a copy of the workspace takes %s, the sandbox has %s",
		disk_size_text(needs, (long long)doctor->workspace_bytes),
		disk_size_text(has, room));
	fail(visit, DOCTOR_DISK, "DISK_FULL",
		"free some space there, or leave files out: exclude in the profile, .gitignore",
		text);
}

static void take_health(struct visit *visit, const struct json_doc *doc)
{
	struct doctor *doctor = visit->doctor;
	json_node agent = json_first(doc, json_get(doc, 0, "agents"));
	char *problem = json_string(doc, json_get(doc, agent, "problem"));
	if (problem) {
		fail(visit, DOCTOR_SESSION, "SANDBOX_UNAVAILABLE",
			doctor_advice(doctor, DOCTOR_SESSION, "SANDBOX_UNAVAILABLE"), problem);
	} else {
		doctor_report_ok(&doctor->report, DOCTOR_SESSION,
			"the agent has opened one; another process in the sandbox answers in %lld "
			"us",
			json_int(doc, json_get(doc, agent, "roundTripUs"), 0));
		look_at_room(visit, doc, agent);
	}
	free(problem);
	finish_session(visit);
}

static void take_result(struct visit *visit, const struct message *message)
{
	struct json_doc *doc = json_doc_parse_unchecked(message_place(message, PLACE_RESULT), NULL);
	if (visit->asked == ASK_NEW) {
		take_new(visit); // other messages are for an editor
	} else if (!doc) {
		fail(visit, visit->asked == ASK_INITIALIZE ? DOCTOR_INITIALIZE : DOCTOR_SESSION,
			"MESSAGE_TOO_LONG",
			doctor_advice(visit->doctor, DOCTOR_SESSION, "MESSAGE_TOO_LONG"),
			"the answer has too many values");
	} else if (visit->asked == ASK_INITIALIZE) {
		take_initialize(visit, doc);
	} else {
		take_health(visit, doc);
	}
	json_doc_destroy(doc);
}

static bool on_message(void *data, const struct message *message)
{
	struct visit *visit = data;
	if (message->kind == MESSAGE_REQUEST) {
		client_refuse_method(visit->client, message->id, message->method);
	} else if (message->kind == MESSAGE_RESPONSE && !visit->is_over &&
		   client_id_of(message) == visit->asked) {
		if (message->is_error) {
			take_error(visit, message_place(message, PLACE_ERROR));
		} else {
			take_result(visit, message);
		}
	}
	return true;
}

static void on_ended(void *data, const struct client_end *end)
{
	struct visit *visit = data;
	visit->end = *end;
	if (end->err) {
		visit->error = *end->err;
	}
	ev_break(visit->doctor->means->loop, EVBREAK_ALL);
}

static const struct client_listener listener = {.on_message = on_message, .on_ended = on_ended};

/* ---- the broker ---- */

static void on_signal(struct ev_loop *loop, struct ev_signal *watcher, int events)
{
	struct visit *visit = watcher->data;
	if (visit->doctor->is_interrupted) {
		client_signal(visit->client, SIGTERM);
	}
	visit->doctor->is_interrupted = true;
	finish_session(visit);
}

static char **make_argv(const struct visit *visit)
{
	const struct doctor_means *means = visit->doctor->means;
	struct options options = *means->options;
	char *program = client_own_program();
	char **argv = NULL;
	options.workspace = visit->workspace;
	words_append(&argv, program);
	words_append(&argv, DOCTOR_WORD);
	exec_plan_add_given(&argv, &options);
	if (!options.toolhost && profile_of(visit)->toolhost == TOOLHOST_AUTO) {
		words_append(
			&argv, "--toolhost=broker"); // this client serves no files or terminals
	}
	if (options.agent_argv) {
		words_append(&argv, "--");
		words_append_all(&argv, options.agent_argv);
	}
	free(program);
	return argv;
}

static bool run_broker(struct visit *visit, struct error *err)
{
	const struct doctor_means *means = visit->doctor->means;
	char **argv = make_argv(visit);
	struct client_config config = {
		.loop = means->loop,
		.argv = (const char *const *)argv,
		.environment = means->environment,
		.max_message = profile_of(visit)->max_message + MESSAGE_SLACK,
		.is_quiet = !means->options->log_level,
		.drain_ms = CLIENT_DRAIN_MS,
		.listener = &listener,
		.data = visit,
	};
	visit->client = client_create(&config, err);
	if (visit->client) {
		ev_init(&visit->due, on_due);
		visit->due.data = visit;
		end_signals_start(&visit->signals, means->loop, on_signal, visit);
		ask(visit, ASK_INITIALIZE, "initialize", write_initialize);
		ev_run(means->loop, 0);
		end_signals_stop(&visit->signals);
		ev_timer_stop(means->loop, &visit->due);
		client_destroy(visit->client);
	}
	words_free(argv);
	return visit->client != NULL;
}

/* ---- the end of the broker ---- */

static void judge_end(struct visit *visit)
{
	char text[128];
	struct doctor *doctor = visit->doctor;
	const char *advice = doctor_advice(doctor, DOCTOR_END, "BROKER_FAILED");
	if (visit->has_failed || doctor->is_interrupted) {
		return; // already reported
	}
	if (visit->error.code != ERROR_NONE) {
		doctor_report_fail(
			&doctor->report, DOCTOR_END, "BROKER_FAILED", advice, visit->error.text);
		return;
	}
	if (visit->end.code == 0 && visit->end.signal == 0 && visit->is_over) {
		return;
	}
	text_format(text, sizeof(text), "the broker has ended with %s%d",
		visit->end.signal ? "signal " : "status ",
		visit->end.signal ? visit->end.signal : visit->end.code);
	doctor_report_fail(&doctor->report, DOCTOR_END, "BROKER_FAILED", advice, text);
}

static void visit_finish(struct visit *visit)
{
	struct error err;
	struct doctor *doctor = visit->doctor;
	char *workspace = mem_strdup(visit->workspace);
	doctor_end_sandbox(doctor); // first: doctor_forget removes no sandbox in use
	if (!doctor_forget(doctor->means, workspace, &err)) {
		doctor_fail_with(doctor, DOCTOR_END, &err);
	}
	free(workspace);
	if (visit->scratch.folder[0]) {
		scratch_remove(&visit->scratch);
	}
	if (!visit->has_failed && doctor->report.failed == 0 && !doctor->is_interrupted) {
		doctor_report_ok(&doctor->report, DOCTOR_END,
			"the session has ended, and everything made for it is removed");
	}
}

void doctor_try_session(struct doctor *doctor)
{
	struct error err;
	struct visit visit = {.doctor = doctor,
		.workspace = doctor_workspace(doctor),
		.error = {.code = ERROR_NONE}};
	if (!visit.workspace) {
		if (!scratch_make(&visit.scratch, doctor->means->environment, "doctor", &err)) {
			doctor_fail_with(doctor, DOCTOR_SESSION, &err);
			return;
		}
		visit.workspace = visit.scratch.workspace;
	}
	if (run_broker(&visit, &err)) {
		judge_end(&visit);
	} else {
		doctor_fail_with(doctor, DOCTOR_SESSION, &err);
	}
	visit_finish(&visit);
}
