/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHAT_CHAT_PARTS_H
#define BROKER_CHAT_CHAT_PARTS_H

#include <ev.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json_writer.h"
#include "base/span.h"
#include "broker/chat/ask.h"
#include "broker/chat/chat.h"
#include "broker/chat/keys.h"
#include "broker/chat/line.h"
#include "broker/chat/show.h"
#include "broker/client/client.h"
#include "broker/client/methods.h"
#include "broker/client/output.h"

/* What the .c files of a chat share: chat.c speaks with the broker, chat_typed.c with the user. */

/* The kinds of our requests. */
enum { ASK_INITIALIZE, ASK_NEW, ASK_PROMPT, ASK_LIST, ASK_LOAD, ASK_CHOICE, ASK_CHECKPOINTS };

enum { STATUS_ID = 0 }; // id of the request that asks where the workspace is

enum stage {
	STAGE_STARTING,
	STAGE_IDLE, // a prompt is being typed
	STAGE_TURN,
	STAGE_COMMAND, // a command of the program runs, or a request other than a prompt is open
	STAGE_ENDING,
};

enum { CHAT_SIGNALS = 6, CHOICE_KINDS = 2 };

enum { PROGRESS_TEXT_MAX = 256 };

struct progress {
	struct ev_timer timer; // active: the user waits for something
	char text[PROGRESS_TEXT_MAX];
	double since; // ev_now
	bool is_shown;
};

struct chat {
	struct chat_means means;
	struct client *client;
	struct output output;
	struct show show;
	struct progress progress;
	struct ask ask;
	struct keys keys;  // used with a line editor
	struct line *line; // the line editor; NULL: whole lines are read from stdin
	struct buf typed;  // used without a line editor
	struct ev_io in;
	struct ev_io log; // the broker's stderr
	struct buf log_text;
	struct ev_io told; // the output of a command of the program
	struct buf told_text;
	pid_t command; // the process of that command; 0: none runs
	struct ev_signal signals[CHAT_SIGNALS];
	enum stage stage;
	char *session_id; // owned; JSON
	char *loading;    // owned; JSON: the id of the session that is being loaded
	char *choices;    // owned; JSON: the result that began the session; it has the modes
	char *current[CHOICE_KINDS]; // owned; the id chosen since then; or NULL
	char *choosing;              // owned; the id of the choice that the agent was asked to make
	size_t choosing_kind;
	char *agent;    // owned; its name for itself, one line without controls
	long asked;     // the kind of the last request
	long asked_id;  // its id
	int interrupts; // Ctrl-C since the last key
	int status;
	bool is_person;    // stdin is a terminal: a user can answer questions
	bool is_settling;  // chat_settle is running
	bool in_has_ended; // stdin is at its end
	bool has_ended;    // the broker has ended
	struct error failure;
};

/* ---- chat.c ---- */

/* Prints what the caller appends to the buffer between the two calls. */
void chat_print_begin(struct chat *chat, struct buf *out);
void chat_print_end(struct chat *chat, struct buf *out);
void chat_print_line(struct chat *chat, enum show_color color, const char *mark, const char *text);

void chat_send_prompt(struct chat *chat, struct span text);

/* Sends a request that client_params_begin began. Its kind says who takes the answer. */
void chat_request(struct chat *chat, long kind, const char *method, struct json_writer *writer);

/* A session has begun. Takes over its id (JSON); `message` is the answer that began it. */
void chat_begin_session(struct chat *chat, char *session_id, const struct message *message);

void chat_fail(struct chat *chat, const struct error *err);

/* Answers the open question and closes it (option -1: cancelled); reads on from the broker. */
void chat_answer(struct chat *chat, int option);

/* Ends the session and reads no more keys. Idempotent. */
void chat_close(struct chat *chat);

/* ---- chat_progress.c ---- */

void chat_progress_init(struct chat *chat);

/* From now on the progress line says that the user waits for this. */
void chat_progress_begin(struct chat *chat, const char *text);
void chat_progress_end(struct chat *chat);

/* Removes the progress line before something else is printed; it is drawn again later. */
void chat_progress_hide(struct chat *chat);

/* Call it after an update: a sync of the broker, or the turn, may have begun or ended. */
void chat_progress_note(struct chat *chat);
void chat_progress_take_state(struct chat *chat, struct span params); // _broker/session/state

/* ---- chat_typed.c ---- */

/*
 * Every event handler calls this last. It takes the typed keys for which the chat is ready, and
 * shows the line again if a prompt can be typed.
 */
void chat_settle(struct chat *chat);
void chat_on_input(struct ev_loop *loop, struct ev_io *io, int events);

/* ---- chat_commands.c ---- */

/* Runs the command of this name with the words after it; false: chat has no such command. */
bool chat_run_command(struct chat *chat, struct span word, struct span rest);

void chat_commands_init(struct chat *chat);
void chat_commands_finish(struct chat *chat);

/* Runs a command of the program on the workspace's store and prints what that prints. */
void chat_run_program(struct chat *chat, const char *command);

/* Ends a running command of the program (SIGTERM). */
void chat_stop_command(struct chat *chat);

/* ---- chat_choices.c ---- */

/* Loads the session with this id; "": the latest session of the workspace. */
void chat_resume(struct chat *chat, const char *id);
void chat_take_list(struct chat *chat, const struct message *message);
void chat_take_load(struct chat *chat, const struct message *message);

/* Lists the agent's modes or models (`what`), or chooses the one that `rest` names. */
void chat_choose(struct chat *chat, const char *what, struct span rest);
void chat_take_choice(struct chat *chat, const struct message *message);

/* An update of the session: another mode or option may be the current one now. */
void chat_note_choice(struct chat *chat, struct span params);
void chat_forget_choices(struct chat *chat);

/* ---- chat_undo.c ---- */

/* Restores the workspace as it was before the last turn that is not undone yet. */
void chat_undo(struct chat *chat);
void chat_take_checkpoints(struct chat *chat, const struct message *message);

/* ---- chat_files.c ---- */

/* Completes the name of a file after "@" at the cursor (Tab). The line must be shown. */
void chat_complete(struct chat *chat);

#endif
