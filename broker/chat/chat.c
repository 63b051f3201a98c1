/* SPDX-License-Identifier: MIT */
#include "broker/chat/chat.h"

#include <assert.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/json_doc.h"
#include "base/json_writer.h"
#include "base/libc.h"
#include "base/signals.h"
#include "base/text.h"
#include "base/utf8.h"
#include "broker/chat/chat_parts.h"
#include "broker/chat/links.h"
#include "broker/chat/tty.h"
#include "broker/client/methods.h"

enum { LOG_LINE_MAX = 64 * 1024, NAME_COLUMNS = 40 };

static const int watched_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
static_assert(ARRAY_LENGTH(watched_signals) == CHAT_SIGNALS, "one watcher each");

/* ---- printing ---- */

void chat_print_begin(struct chat *chat, struct buf *out)
{
	if (chat->line) {
		line_hide(chat->line);
	}
	chat_progress_hide(chat);
	chat->show.columns = isatty(STDERR_FILENO) || chat->is_person
	                             ? tty_columns(chat->output.out.fd)
	                             : SIZE_MAX;
	buf_init(out, SIZE_MAX / 2);
}

void chat_print_end(struct chat *chat, struct buf *out)
{
	output_print(&chat->output, buf_span(out));
	buf_finish(out);
}

void chat_print_line(struct chat *chat, enum show_color color, const char *mark, const char *text)
{
	struct buf out;
	chat_print_begin(chat, &out);
	show_line(&chat->show, color, mark, span_of(text), false, &out);
	chat_print_end(chat, &out);
}

/* ---- the end ---- */

static void check_ended(struct chat *chat)
{
	if (chat->has_ended && output_is_idle(&chat->output)) {
		ev_break(chat->means.loop, EVBREAK_ALL);
	}
}

void chat_close(struct chat *chat)
{
	if (chat->stage == STAGE_ENDING) {
		return;
	}
	chat->stage = STAGE_ENDING;
	ev_io_stop(chat->means.loop, &chat->in);
	if (chat->line) {
		line_hide(chat->line);
	}
	tty_leave(); // no more keys are read
	chat_progress_begin(chat, "ending the session");
	if (chat->ask.request) {
		chat_answer(chat, -1);
	}
	client_close(chat->client);
}

void chat_fail(struct chat *chat, const struct error *err)
{
	if (chat->failure.code == ERROR_NONE) {
		chat->failure = *err;
	}
	chat_close(chat);
}

static void on_ended(void *data, const struct client_end *end)
{
	struct chat *chat = data;
	struct error err;
	bool is_early = chat->stage != STAGE_ENDING;
	chat->has_ended = true;
	if (end->err) {
		chat_fail(chat, end->err);
	} else if (end->signal && chat->status != CHAT_INTERRUPTED) {
		error_set(&err, ERROR_SYSTEM, "chat: the broker was killed by SIG%s",
			libc_signal_name(end->signal));
		chat_fail(chat, &err);
	} else if (is_early || end->code != 0) {
		chat->status = chat->status ? chat->status : end->code ? end->code : EXIT_FAILURE;
	}
	chat_close(chat);
	chat_progress_end(chat);
	check_ended(chat);
}

/* ---- requests ---- */

void chat_request(struct chat *chat, long kind, const char *method, struct json_writer *writer)
{
	chat->asked = kind;
	chat->asked_id++;
	client_params_send(chat->client, chat->asked_id, method, writer);
}

static void request_initialize(struct chat *chat)
{
	struct buf out;
	struct json_writer writer;
	client_params_begin(&writer, &out);
	client_write_initialize(&writer, "acp-broker-chat", true);
	chat_request(chat, ASK_INITIALIZE, "initialize", &writer);
}

static void request_new(struct chat *chat)
{
	struct buf out;
	struct json_writer writer;
	client_params_begin(&writer, &out);
	client_write_new(&writer, chat->means.cwd);
	chat_request(chat, ASK_NEW, "session/new", &writer);
}

void chat_send_prompt(struct chat *chat, struct span text)
{
	struct buf out;
	struct json_writer writer;
	client_params_begin(&writer, &out);
	json_write_member_raw(&writer, "sessionId", span_of(chat->session_id));
	json_write_key(&writer, "prompt");
	json_write_array(&writer);
	links_write(&writer, chat->means.cwd, text);
	json_write_array_end(&writer);
	chat->stage = STAGE_TURN;
	chat->interrupts = 0;
	chat_request(chat, ASK_PROMPT, "session/prompt", &writer);
}

/* ---- answers ---- */

static void keep_agent(struct chat *chat, const struct json_doc *doc)
{
	struct buf name;
	char *title = json_string(doc, json_path(doc, 0, "agentInfo.title"));
	char *given = title && title[0] ? mem_strdup(title)
	                                : json_string(doc, json_path(doc, 0, "agentInfo.name"));
	buf_init(&name, SIZE_MAX / 2);
	style_cut(span_of(given ? given : ""), NAME_COLUMNS, &name);
	free(chat->agent);
	chat->agent = mem_strndup(buf_span(&name));
	buf_finish(&name);
	free(given);
	free(title);
}

/* Where the agent has the workspace: titles of tool calls name it. */
static void request_status(struct chat *chat)
{
	struct buf out;
	struct json_writer writer;
	client_params_begin(&writer, &out);
	json_write_member_raw(&writer, "sessionId", span_of(chat->session_id));
	client_params_send(chat->client, STATUS_ID, "_broker/session/status", &writer);
}

static void take_status(struct chat *chat, const struct message *message)
{
	struct json_doc *doc = json_doc_parse_unchecked(message_place(message, PLACE_RESULT), NULL);
	char *root = doc ? json_string(doc, json_get(doc, 0, "runtimeRoot")) : NULL;
	show_set_root(&chat->show, 1, root);
	free(root);
	json_doc_destroy(doc);
}

void chat_begin_session(struct chat *chat, char *session_id, const struct message *message)
{
	char text[256];
	struct buf out;
	free(chat->session_id);
	free(chat->choices);
	chat->session_id = session_id;
	chat->choices = mem_strndup(message_place(message, PLACE_RESULT));
	chat->stage = STAGE_IDLE;
	chat_progress_end(chat);
	chat_forget_choices(chat);
	request_status(chat);
	chat_print_begin(chat, &out);
	show_end_text(&chat->show, &out); // a load prints the earlier conversation
	chat_print_end(chat, &out);
	if (chat->is_person) {
		text_format(text, sizeof(text), "%s in %s. /help lists the commands.",
			chat->agent[0] ? chat->agent : "The agent", chat->means.cwd);
		chat_print_line(chat, SHOW_DIM, "-", text);
	}
}

static void keep_session(struct chat *chat, const struct message *message)
{
	struct error err;
	char *session_id = client_take_session_id(message, &err);
	if (!session_id) {
		error_prefix(&err, "chat");
		chat_fail(chat, &err);
		return;
	}
	chat_begin_session(chat, session_id, message);
}

/* Says how the turn ended, unless it ended as usual. */
static void take_stop(struct chat *chat, const struct message *message)
{
	struct buf out;
	struct json_doc *doc = json_doc_parse_unchecked(message_place(message, PLACE_RESULT), NULL);
	char *reason = doc ? json_string(doc, json_get(doc, 0, "stopReason")) : NULL;
	chat_print_begin(chat, &out);
	show_end_text(&chat->show, &out);
	chat_print_end(chat, &out);
	if (!reason || strcmp(reason, "end_turn") != 0) {
		char text[TEXT_SHORT_SIZE + 32];
		char name[TEXT_SHORT_SIZE];
		text_format(text, sizeof(text), "the turn ended: %s",
			reason ? text_short(name, reason) : "no reason is given");
		chat_print_line(chat, SHOW_ASK, "!", text);
	}
	free(reason);
	json_doc_destroy(doc);
}

static void take_initialize(struct chat *chat, const struct message *message)
{
	struct json_doc *doc = json_doc_parse_unchecked(message_place(message, PLACE_RESULT), NULL);
	if (doc) {
		keep_agent(chat, doc);
	}
	json_doc_destroy(doc);
	if (chat->means.resume) {
		chat_resume(chat, chat->means.resume);
	} else {
		request_new(chat);
	}
}

static const struct {
	const char *method;
	void (*take)(struct chat *chat, const struct message *message);
} requests[] = {
	[ASK_INITIALIZE] = {"initialize", take_initialize},
	[ASK_NEW] = {"session/new", keep_session},
	[ASK_PROMPT] = {"session/prompt", take_stop},
	[ASK_LIST] = {"session/list", chat_take_list},
	[ASK_LOAD] = {"session/load", chat_take_load},
	[ASK_CHOICE] = {"the choice", chat_take_choice},
	[ASK_CHECKPOINTS] = {"/undo", chat_take_checkpoints},
};

/* Prints the error. If no session has begun yet, the chat ends with it. */
static void take_error(struct chat *chat, struct span error)
{
	struct error err;
	client_error_read(&err, error, chat->means.reasons, chat->means.reason_count);
	error_prefix(&err, "chat: %s", requests[chat->asked].method);
	if (!chat->session_id) {
		chat_fail(chat, &err);
		return;
	}
	chat_print_line(chat, SHOW_BAD, "!", err.text);
	chat->status = chat->is_person ? chat->status : EXIT_FAILURE;
}

static void take_answer(struct chat *chat, const struct message *message)
{
	if (client_id_of(message) == STATUS_ID && !message->is_error) {
		take_status(chat, message);
		return;
	}
	if (client_id_of(message) != chat->asked_id || chat->stage == STAGE_ENDING) {
		return;
	}
	if (chat->session_id) {
		chat->stage = STAGE_IDLE;
		chat_progress_end(chat);
		chat->interrupts = 0; // the Ctrl-C that cancelled the turn does not count
	}
	if (message->is_error) {
		take_error(chat, message_place(message, PLACE_ERROR));
	} else {
		requests[chat->asked].take(chat, message);
	}
}

/* ---- what the agent asks ---- */

void chat_answer(struct chat *chat, int option)
{
	struct buf result;
	buf_init(&result, SIZE_MAX / 2);
	ask_write(&chat->ask, option, &result);
	client_answer(chat->client, span_of(chat->ask.request), buf_span(&result));
	buf_finish(&result);
	if (option >= 0) {
		const char *name = chat->ask.options[option].name;
		chat_print_line(chat, SHOW_DIM, "  ->", name ? name : chat->ask.options[option].id);
	}
	ask_close(&chat->ask);
	client_resume(chat->client);
}

/* Drops keys that the user typed before the question was on the screen. */
static void forget_typed(struct chat *chat)
{
	keys_forget(&chat->keys);
	tty_flush_input();
	if (chat->is_person) {
		buf_clear(&chat->typed);
	}
}

static void take_question(struct chat *chat, const struct message *message)
{
	struct buf out;
	chat_print_begin(chat, &out);
	bool ok = ask_open(&chat->ask, message, chat->agent, &chat->show, &out);
	chat_print_end(chat, &out);
	if (!ok) {
		chat_print_line(chat, SHOW_BAD, "!",
			"the agent asked a question that chat cannot show; chat cancelled it");
		client_answer(chat->client, message->id,
			SPAN_LITERAL("{\"outcome\":{\"outcome\":\"cancelled\"}}"));
	} else if (chat->stage == STAGE_ENDING) {
		chat_answer(chat, -1);
	} else if (!chat->is_person) {
		chat_answer(chat, ask_find_refusal(&chat->ask));
	} else {
		forget_typed(chat);
	}
}

static bool on_message(void *data, const struct message *message)
{
	struct chat *chat = data;
	struct buf out;
	if (output_is_over(&chat->output) || chat->ask.request) {
		return false;
	}
	if (message->kind == MESSAGE_RESPONSE) {
		take_answer(chat, message);
	} else if (message->kind == MESSAGE_REQUEST) {
		if (strcmp(message->method, "session/request_permission") == 0) {
			take_question(chat, message);
		} else {
			client_refuse_method(chat->client, message->id, message->method);
		}
	} else if (strcmp(message->method, "session/update") == 0) {
		chat_print_begin(chat, &out);
		chat_note_choice(chat, message_place(message, PLACE_PARAMS));
		show_update(&chat->show, message_place(message, PLACE_PARAMS), &out);
		chat_print_end(chat, &out);
		chat_progress_note(chat);
	} else if (strcmp(message->method, "_broker/session/state") == 0) {
		chat_progress_take_state(chat, message_place(message, PLACE_PARAMS));
	}
	chat_settle(chat);
	return true;
}

static const struct client_listener client_listener = {
	.on_message = on_message,
	.on_ended = on_ended,
};

/* ---- the broker's log ---- */

static void print_log_line(struct chat *chat, struct span line)
{
	struct buf out;
	if (line.len > 3 && line.data[0] == '<' && line.data[2] == '>') { // without its level
		line = (struct span){line.data + 3, line.len - 3};
	}
	chat_print_begin(chat, &out);
	show_line(&chat->show, SHOW_DIM, "!", line, false, &out);
	chat_print_end(chat, &out);
}

static void on_log(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct chat *chat = io->data;
	char bytes[4096];
	ssize_t count = read(io->fd, bytes, sizeof(bytes));
	if (count < 0 && io_is_transient(errno)) {
		return;
	}
	bool is_end = count <= 0;
	bool is_full =
		!is_end && !buf_append(&chat->log_text, (struct span){bytes, (size_t)count}, NULL);
	struct span text = buf_span(&chat->log_text);
	const char *end;
	while (text.len > 0 && ((end = memchr(text.data, '\n', text.len)) || is_end || is_full)) {
		size_t len = end ? (size_t)(end - text.data) : text.len;
		print_log_line(chat, (struct span){text.data, len});
		text = (struct span){
			text.data + len + (end != NULL), text.len - len - (end != NULL)};
	}
	buf_consume(&chat->log_text, chat->log_text.len - text.len);
	if (is_end) {
		ev_io_stop(loop, io);
	}
	chat_settle(chat);
}

/* ---- stdout ---- */

static void on_drained(void *data)
{
	struct chat *chat = data;
	client_resume(chat->client);
}

static void on_flushed(void *data)
{
	chat_settle(data);
	check_ended(data);
}

static void on_broken(void *data, const struct error *err)
{
	struct chat *chat = data;
	chat->status = CHAT_INTERRUPTED;
	chat_close(chat);
	client_resume(chat->client);
	check_ended(chat);
}

static const struct output_listener output_listener = {
	.on_drained = on_drained,
	.on_flushed = on_flushed,
	.on_broken = on_broken,
};

/* ---- signals ---- */

static void cancel(struct chat *chat)
{
	struct buf params;
	buf_init(&params, SIZE_MAX / 2);
	if (buf_append_format(&params, NULL, "{\"sessionId\":%s}", chat->session_id)) {
		client_notify(chat->client, "session/cancel", buf_span(&params));
	}
	buf_finish(&params);
	chat_print_line(chat, SHOW_DIM, "-", "cancelling; Ctrl-C again ends the session");
	if (chat->ask.request) {
		chat_answer(chat, -1);
	}
}

/*
 * Ctrl-C: the first cancels the turn or clears the line, the second ends the session, the third
 * sends SIGTERM to the broker, which then waits for nothing.
 */
static void interrupt(struct chat *chat)
{
	chat->interrupts++;
	if (chat->stage == STAGE_COMMAND && chat->command) {
		chat_stop_command(chat);
	} else if (chat->stage == STAGE_TURN && chat->interrupts == 1) {
		forget_typed(chat);
		cancel(chat);
	} else if (chat->stage == STAGE_IDLE && chat->interrupts == 1) {
		if (chat->line) {
			line_hide(chat->line);
			line_clear(chat->line);
		}
		chat_print_line(chat, SHOW_DIM, "-", "Ctrl-C again, or Ctrl-D, ends the session");
	} else if (chat->stage != STAGE_ENDING) {
		chat->status = CHAT_INTERRUPTED;
		chat_close(chat);
	} else {
		chat->status = CHAT_INTERRUPTED;
		output_drop(&chat->output);
		client_signal(chat->client, SIGTERM);
		client_resume(chat->client);
		check_ended(chat);
	}
}

/* Ctrl-Z: gives the terminal back to the shell, and stops. The broker goes on. */
static void stop(struct chat *chat)
{
	if (chat->line) {
		line_hide(chat->line);
	}
	chat_progress_hide(chat);
	tty_leave();
	raise(SIGSTOP);
	if (chat->line && chat->stage != STAGE_ENDING) {
		tty_enter();
	}
}

static void on_signal(struct ev_loop *loop, struct ev_signal *watcher, int events)
{
	struct chat *chat = watcher->data;
	switch (watcher->signum) {
	case SIGWINCH:
		if (chat->line) {
			line_resize(chat->line);
		}
		break;
	case SIGTSTP:
		stop(chat);
		break;
	case SIGINT:
		interrupt(chat);
		break;
	default:
		chat->interrupts++;
		interrupt(chat);
		break;
	}
	chat_settle(chat);
}

static void watch_signals(struct chat *chat)
{
	for (size_t i = 0; i < ARRAY_LENGTH(watched_signals); i++) {
		ev_signal_init(&chat->signals[i], on_signal, watched_signals[i]);
		chat->signals[i].data = chat;
		if (!signal_is_ignored(watched_signals[i])) {
			ev_signal_start(chat->means.loop, &chat->signals[i]);
		}
	}
}

/* ---- the run ---- */

/* libedit uses the encoding of the locale; ours is always UTF-8. */
static void set_locale(void)
{
	if (!setlocale(LC_CTYPE, "") || strcmp(nl_langinfo(CODESET), "UTF-8") != 0) {
		setlocale(LC_CTYPE, "C.UTF-8");
	}
}

static void start_line(struct chat *chat, const char *term)
{
	struct error err;
	struct line_config config = {
		.fd = STDIN_FILENO, .term = term, .is_colored = chat->show.is_colored};
	chat->line = line_create(&config, &err);
	if (chat->line && !tty_begin(STDIN_FILENO, &err)) {
		line_destroy(chat->line);
		chat->line = NULL;
	}
	if (chat->line) {
		tty_enter();
		chat->show.has_progress = true;
	} else {
		chat_print_line(chat, SHOW_DIM, "!", err.text);
	}
}

static bool start_client(struct chat *chat, int log_fd, struct error *err)
{
	struct client_config config = {
		.loop = chat->means.loop,
		.argv = chat->means.argv,
		.environment = chat->means.environment,
		.max_message = chat->means.max_message,
		.stderr_fd = log_fd,
		.drain_ms = CLIENT_DRAIN_MS,
		.listener = &client_listener,
		.data = chat,
	};
	chat->client = client_create(&config, err);
	return chat->client != NULL;
}

static void init(struct chat *chat, const struct chat_means *means, bool is_colored)
{
	*chat = (struct chat){.means = *means, .agent = mem_strdup("")};
	show_init(&chat->show, is_colored);
	show_set_root(&chat->show, 0, means->cwd);
	keys_init(&chat->keys);
	buf_init(&chat->typed, CHAT_PROMPT_MAX + 1);
	buf_init(&chat->log_text, LOG_LINE_MAX);
	ev_io_init(&chat->in, chat_on_input, STDIN_FILENO, EV_READ);
	chat->in.data = chat;
	chat->is_person = isatty(STDIN_FILENO) == 1;
	chat_commands_init(chat);
	chat_progress_init(chat);
}

static void finish(struct chat *chat)
{
	ev_io_stop(chat->means.loop, &chat->in);
	chat_progress_end(chat);
	chat_commands_finish(chat);
	line_destroy(chat->line);
	tty_end();
	ask_close(&chat->ask);
	chat_forget_choices(chat);
	show_finish(&chat->show);
	keys_finish(&chat->keys);
	buf_finish(&chat->typed);
	buf_finish(&chat->log_text);
	output_finish(&chat->output);
	free(chat->session_id);
	free(chat->loading);
	free(chat->choices);
	free(chat->agent);
}

static bool run(struct chat *chat, struct error *err)
{
	int log_fds[2] = {-1, -1};
	bool has_log = chat->line != NULL; // else the broker writes to our stderr
	if (has_log && !(fd_pipe(log_fds, err) && fd_set_nonblock(log_fds[0], true, err))) {
		fd_close(&log_fds[0]);
		fd_close(&log_fds[1]);
		return false;
	}
	bool ok = start_client(chat, has_log ? log_fds[1] : 0, err);
	fd_close(&log_fds[1]);
	ev_io_init(&chat->log, on_log, log_fds[0], EV_READ);
	chat->log.data = chat;
	if (ok) {
		if (has_log) {
			ev_io_start(chat->means.loop, &chat->log);
		}
		watch_signals(chat);
		request_initialize(chat);
		chat_progress_begin(chat, "starting the agent");
		ev_run(chat->means.loop, 0);
		for (size_t i = 0; i < ARRAY_LENGTH(watched_signals); i++) {
			ev_signal_stop(chat->means.loop, &chat->signals[i]);
		}
		client_destroy(chat->client);
	}
	ev_io_stop(chat->means.loop, &chat->log);
	fd_close(&log_fds[0]);
	return ok;
}

bool chat_run(const struct chat_means *means, int *out_status, struct error *err)
{
	struct chat chat;
	const char *term = environment_get(means->environment, "TERM");
	const char *no_color = environment_get(means->environment, "NO_COLOR");
	bool is_capable = isatty(STDOUT_FILENO) && term && term[0] && strcmp(term, "dumb") != 0;
	set_locale();
	init(&chat, means, is_capable && !(no_color && no_color[0]));
	if (!output_init(&chat.output, means->loop, STDOUT_FILENO, &output_listener, &chat, err)) {
		finish(&chat);
		return error_prefix(err, "stdout");
	}
	chat.output.is_terminal = false; // style.h masks control characters already
	if (is_capable && chat.is_person) {
		start_line(&chat, term);
	}
	bool ok = run(&chat, err);
	if (ok && chat.failure.code != ERROR_NONE && chat.status != CHAT_INTERRUPTED) {
		*err = chat.failure;
		ok = false;
	}
	*out_status = chat.status;
	finish(&chat);
	return ok;
}
