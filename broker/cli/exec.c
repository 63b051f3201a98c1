/* SPDX-License-Identifier: MIT */
#include "broker/cli/exec.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json_doc.h"
#include "base/json_writer.h"
#include "base/libc.h"
#include "base/log.h"
#include "base/mask.h"
#include "base/text.h"
#include "broker/cli/end_signals.h"
#include "broker/cli/exec_plan.h"
#include "broker/cli/exec_show.h"
#include "broker/client/client.h"
#include "broker/client/methods.h"

enum {
	ASK_INITIALIZE = 1, // ids of our requests
	ASK_NEW,
	ASK_PROMPT,
};

static const struct {
	const char *reason;
	enum exec_status status;
} stop_reasons[] = {
	{"end_turn", EXEC_END_TURN},
	{"max_tokens", EXEC_MAX_TOKENS},
	{"max_turn_requests", EXEC_MAX_TURN_REQUESTS},
	{"refusal", EXEC_REFUSAL},
	{"cancelled", EXEC_CANCELLED},
};

struct exec {
	struct ev_loop *loop;
	struct client *client;
	struct output output;
	struct exec_show show;
	struct end_signals signals;
	struct ev_timer cancel_due;
	struct exec_plan plan;
	char *session_id;   // owned, JSON; NULL: no session
	long asked;         // the id of the unanswered request
	bool has_stopped;   // the prompt was answered
	bool was_cancelled; // by a signal, or by the reader of stdout
	bool has_ended;     // the broker has
	int signal_count;
	int status; // from the stop reason, or from the broker's end
	struct error failure;
};

/* ---- the end ---- */

static void check_ended(struct exec *exec)
{
	if (exec->has_ended && output_is_idle(&exec->output)) {
		ev_break(exec->loop, EVBREAK_ALL);
	}
}

static void close_session(struct exec *exec)
{
	ev_timer_stop(exec->loop, &exec->cancel_due);
	client_close(exec->client);
}

static void fail(struct exec *exec, const struct error *err)
{
	if (exec->failure.code == ERROR_NONE) {
		exec->failure = *err;
	}
	close_session(exec);
}

/* The broker ended without an answer. It has reported a failure of its own itself. */
static void judge_early_end(struct exec *exec, const struct client_end *end)
{
	struct error err;
	if (end->signal) {
		error_set(&err, ERROR_SYSTEM, "exec: the broker was killed by SIG%s",
			libc_signal_name(end->signal));
		fail(exec, &err);
	} else if (end->code == 0) {
		error_set(&err, ERROR_SYSTEM, "exec: the broker ended before the answer");
		fail(exec, &err);
	} else {
		exec->status = end->code;
	}
}

static void on_ended(void *data, const struct client_end *end)
{
	struct exec *exec = data;
	char text[128];
	exec->has_ended = true;
	if (end->err) {
		fail(exec, end->err);
	} else if (!exec->has_stopped && !exec->was_cancelled && exec->failure.code == ERROR_NONE) {
		judge_early_end(exec, end);
	} else if (exec->status == EXEC_END_TURN && (end->code || end->signal)) {
		exec->status = end->code ? end->code : EXIT_FAILURE;
	}
	if (exec->was_cancelled) {
		exec_show_result(&exec->show, "cancelled", (struct span){0});
	} else {
		text_format(text, sizeof(text), "the broker ended with status %d", end->code);
		exec_show_failure(&exec->show, exec->failure.code ? exec->failure.text : text);
	}
	check_ended(exec);
}

/* ---- the agent's requests ---- */

/* The option that refuses; there may be none. */
static struct span find_refusal(const struct json_doc *doc)
{
	static const char *const kinds[] = {"reject_once", "reject_always"};
	json_node options = json_get(doc, 0, "options");
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
		for (json_node option = json_first(doc, options); option != JSON_NODE_NONE;
			option = json_next(doc, option)) {
			if (json_string_is(doc, json_get(doc, option, "kind"), kinds[i])) {
				return json_raw(doc, json_get(doc, option, "optionId"));
			}
		}
	}
	return (struct span){0};
}

static void refuse(struct exec *exec, const struct message *message)
{
	struct buf out;
	struct json_writer writer;
	struct span params = message_place(message, PLACE_PARAMS);
	struct json_doc *doc = json_doc_parse_unchecked(params, NULL);
	struct span option = doc ? find_refusal(doc) : (struct span){0};
	bool selects = option.len > 0 && !exec->was_cancelled;
	buf_init(&out, SIZE_MAX / 2);
	json_write_begin(&writer, &out);
	json_write_object(&writer);
	json_write_key(&writer, "outcome");
	json_write_object(&writer);
	json_write_member(&writer, "outcome", selects ? "selected" : "cancelled");
	if (selects) {
		json_write_member_raw(&writer, "optionId", option);
	}
	json_write_object_end(&writer);
	json_write_object_end(&writer);
	if (json_write_end(&writer, NULL)) {
		exec_show_question(&exec->show, params, buf_span(&out));
		client_answer(exec->client, message->id, buf_span(&out));
	}
	buf_finish(&out);
	json_doc_destroy(doc);
}

/* ---- our requests ---- */

static void ask(struct exec *exec, long id, const char *method,
	void (*write)(struct json_writer *writer, const struct exec *exec))
{
	struct buf out;
	struct json_writer writer;
	client_params_begin(&writer, &out);
	write(&writer, exec);
	exec->asked = id;
	client_params_send(exec->client, id, method, &writer);
}

static void write_initialize(struct json_writer *writer, const struct exec *exec)
{
	client_write_initialize(writer, "acp-broker-exec", false);
}

static void write_new(struct json_writer *writer, const struct exec *exec)
{
	client_write_new(writer, exec->plan.cwd);
}

static void write_prompt(struct json_writer *writer, const struct exec *exec)
{
	client_write_prompt(writer, exec->session_id, buf_span(&exec->plan.prompt));
}

static bool keep_session(struct exec *exec, const struct message *message)
{
	struct error err;
	exec->session_id = client_take_session_id(message, &err);
	if (!exec->session_id) {
		error_prefix(&err, "exec");
		fail(exec, &err);
	}
	return exec->session_id != NULL;
}

static void take_stop(struct exec *exec, struct span result)
{
	struct json_doc *doc = json_doc_parse_unchecked(result, NULL);
	char *reason = doc ? json_string(doc, json_get(doc, 0, "stopReason")) : NULL;
	size_t i = 0;
	while (i < ARRAY_LENGTH(stop_reasons) &&
		!(reason && strcmp(stop_reasons[i].reason, reason) == 0)) {
		i++;
	}
	exec->has_stopped = true;
	exec_show_result(&exec->show, reason, result);
	if (i < ARRAY_LENGTH(stop_reasons)) {
		exec->status = stop_reasons[i].status;
	} else {
		struct error err;
		char name[TEXT_SHORT_SIZE];
		char *line = reason ? mask_line(span_of(reason)) : NULL;
		error_set(&err, ERROR_PROTOCOL, "exec: the turn ended for an unknown reason: %s",
			line ? text_short(name, line) : "no stop reason was given");
		free(line);
		fail(exec, &err);
	}
	free(reason);
	json_doc_destroy(doc);
	close_session(exec);
}

static void take_error(struct exec *exec, struct span error)
{
	static const char *const methods[] = {
		[ASK_INITIALIZE] = "initialize",
		[ASK_NEW] = "session/new",
		[ASK_PROMPT] = "session/prompt",
	};
	struct error err;
	client_error_read(&err, error, exec->plan.reasons, exec->plan.reason_count);
	error_prefix(&err, "exec: %s", methods[exec->asked]);
	exec_show_error(&exec->show, error);
	fail(exec, &err);
}

static void take_answer(struct exec *exec, const struct message *message)
{
	if (client_id_of(message) != exec->asked) {
		return;
	}
	if (message->is_error) {
		take_error(exec, message_place(message, PLACE_ERROR));
	} else if (exec->asked == ASK_PROMPT) {
		take_stop(exec, message_place(message, PLACE_RESULT));
	} else if (exec->was_cancelled) {
		close_session(exec);
	} else if (exec->asked == ASK_INITIALIZE) {
		ask(exec, ASK_NEW, "session/new", write_new);
	} else if (keep_session(exec, message)) {
		ask(exec, ASK_PROMPT, "session/prompt", write_prompt);
	}
}

static bool on_message(void *data, const struct message *message)
{
	struct exec *exec = data;
	if (output_is_over(&exec->output)) {
		return false;
	}
	if (message->kind == MESSAGE_RESPONSE) {
		take_answer(exec, message);
	} else if (message->kind == MESSAGE_NOTIFICATION) {
		if (strcmp(message->method, "session/update") == 0) {
			exec_show_update(&exec->show, message_place(message, PLACE_PARAMS));
		}
	} else if (strcmp(message->method, "session/request_permission") == 0) {
		refuse(exec, message);
	} else {
		client_refuse_method(exec->client, message->id, message->method);
	}
	return true;
}

static const struct client_listener client_listener = {
	.on_message = on_message,
	.on_ended = on_ended,
};

/* ---- stdout ---- */

static void on_drained(void *data)
{
	struct exec *exec = data;
	client_resume(exec->client);
}

static void on_flushed(void *data)
{
	check_ended(data);
}

static void on_broken(void *data, const struct error *err)
{
	struct exec *exec = data;
	if (err->code == ERROR_UNAVAILABLE) {
		exec->was_cancelled = true;
		close_session(exec);
	} else {
		fail(exec, err);
	}
	client_resume(exec->client);
	check_ended(exec);
}

static const struct output_listener output_listener = {
	.on_drained = on_drained,
	.on_flushed = on_flushed,
	.on_broken = on_broken,
};

/* ---- signals ---- */

static void on_cancel_due(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	close_session(timer->data);
}

static void cancel(struct exec *exec)
{
	struct buf params;
	buf_init(&params, SIZE_MAX / 2);
	if (buf_append_format(&params, NULL, "{\"sessionId\":%s}", exec->session_id)) {
		client_notify(exec->client, "session/cancel", buf_span(&params));
	}
	buf_finish(&params);
	ev_timer_start(exec->loop, &exec->cancel_due);
}

/* The first signal cancels the prompt, the second ends the session, further ones hurry that end. */
static void on_signal(struct ev_loop *loop, struct ev_signal *watcher, int events)
{
	struct exec *exec = watcher->data;
	exec->signal_count++;
	exec->was_cancelled = exec->was_cancelled || !exec->has_stopped;
	if (exec->signal_count == 1 && exec->asked == ASK_PROMPT && !exec->has_stopped) {
		log_info("exec: SIG%s, cancelling the prompt; a second one ends the session",
			libc_signal_name(watcher->signum));
		cancel(exec);
		return;
	}
	close_session(exec);
	if (exec->signal_count > 1 || exec->has_ended) {
		output_drop(&exec->output); // a slow reader must not delay the end
		client_signal(exec->client, SIGTERM);
		client_resume(exec->client);
		check_ended(exec);
	}
}

/* ---- the run ---- */

static const char allows_nothing[] =
	"exec: there is no policy, so the agent may do nothing through the broker; --approve reads "
	"or --approve all allows more";

static bool run(struct exec *exec, const struct exec_means *means, struct error *err)
{
	char *program = client_own_program();
	free(exec->plan.argv[0]);
	exec->plan.argv[0] = program;
	struct client_config config = {
		.loop = exec->loop,
		.argv = (const char *const *)exec->plan.argv,
		.environment = means->environment,
		.max_message = exec->plan.max_message,
		.drain_ms = CLIENT_DRAIN_MS,
		.listener = &client_listener,
		.data = exec,
	};
	if (!output_init(&exec->output, exec->loop, STDOUT_FILENO, &output_listener, exec, err)) {
		return error_prefix(err, "stdout");
	}
	exec_show_init(&exec->show, &exec->output, exec->plan.is_json);
	exec->show.hint = exec->plan.allows_nothing ? allows_nothing : NULL;
	ev_timer_init(&exec->cancel_due, on_cancel_due, EXEC_CANCEL_MS / 1000.0, 0);
	exec->cancel_due.data = exec;
	exec->client = client_create(&config, err);
	bool ok = exec->client != NULL;
	if (ok) {
		end_signals_start(&exec->signals, exec->loop, on_signal, exec);
		ask(exec, ASK_INITIALIZE, "initialize", write_initialize);
		ev_run(exec->loop, 0);
		end_signals_stop(&exec->signals);
		ev_timer_stop(exec->loop, &exec->cancel_due);
		client_destroy(exec->client);
	}
	exec_show_finish(&exec->show);
	output_finish(&exec->output);
	return ok;
}

bool exec_run(const struct exec_means *means, int *out_status, struct error *err)
{
	struct exec exec = {.loop = means->loop, .failure = {.code = ERROR_NONE}};
	if (!exec_plan_make(&exec.plan, means->options, means->registry, means->environment, err)) {
		return false;
	}
	bool ok = run(&exec, means, err);
	if (ok && exec.was_cancelled) {
		*out_status = EXEC_CANCELLED;
	} else if (ok && exec.failure.code != ERROR_NONE) {
		*err = exec.failure;
		ok = false;
	} else {
		*out_status = exec.status;
	}
	exec_plan_finish(&exec.plan);
	free(exec.session_id);
	return ok;
}
