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

/* What a request of ours is. */
enum { ASK_INITIALIZE, ASK_NEW, ASK_PROMPT, ASK_LIST, ASK_LOAD, ASK_CHOICE, ASK_CHECKPOINTS };

enum { STATUS_ID = 0 }; // of the request that asks where the workspace is; no other has it

enum stage {
	STAGE_STARTING,
	STAGE_IDLE, // a prompt is being typed
	STAGE_TURN,
	STAGE_COMMAND, // a command of the program runs, or the broker is asked something
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
	struct keys keys;  // with a line
	struct line *line; // NULL: lines are read as they are
	struct buf typed;  // without a line
	struct ev_io in;
	struct ev_io log; // what the broker writes to its stderr
	struct buf log_text;
	struct ev_io told; // what a command of the program prints
	struct buf told_text;
	pid_t command; // 0: none runs
	struct ev_signal signals[CHAT_SIGNALS];
	enum stage stage;
	char *session_id; // owned; JSON
	char *loading;    // owned; JSON: the session that was asked for
	char *choices;    // owned; JSON: the answer that began the session, with its modes
	char *current[CHOICE_KINDS]; // owned; the id chosen since then; or NULL
	char *choosing;              // owned; the id that the agent was asked to take
	size_t choosing_kind;
	char *agent;    // owned; its name for itself, one line without controls
	long asked;     // what the request that is not answered is
	long asked_id;  // its id
	int interrupts; // Ctrl-C since the last key
	int status;
	bool is_person; // stdin is a terminal: someone can be asked
	bool is_settling;
	bool in_has_ended;
	bool has_ended; // the broker
	struct error failure;
};

/* ---- chat.c ---- */

/* What is appended to the buffer in between is printed. */
void chat_print_begin(struct chat *chat, struct buf *out);
void chat_print_end(struct chat *chat, struct buf *out);
void chat_print_line(struct chat *chat, enum show_color color, const char *mark, const char *text);

void chat_send_prompt(struct chat *chat, struct span text);

/* Sends a request that client_params_begin began. Its kind says who takes the answer. */
void chat_request(struct chat *chat, long kind, const char *method, struct json_writer *writer);

/* The session is there: its id (JSON), which is taken over, and the answer that says so. */
void chat_begin_session(struct chat *chat, char *session_id, const struct message *message);

void chat_fail(struct chat *chat, const struct error *err);

/* To the open question; -1: cancelled. It is closed then, and the broker is read on from. */
void chat_answer(struct chat *chat, int option);

/* Ends the session: nothing is typed any more. Idempotent. */
void chat_close(struct chat *chat);

/* ---- chat_progress.c ---- */

void chat_progress_init(struct chat *chat);

/* The user waits for this from now on, or goes on to wait, now for this. */
void chat_progress_begin(struct chat *chat, const char *text);
void chat_progress_end(struct chat *chat);

/* Takes the line away until it is drawn again: something else is printed. */
void chat_progress_hide(struct chat *chat);

/* After an update: a sync of the broker's has begun or ended, or the turn has. */
void chat_progress_note(struct chat *chat);
void chat_progress_take_state(struct chat *chat, struct span params); // _broker/session/state

/* ---- chat_typed.c ---- */

/*
 * After each event: takes what was typed, as far as somebody wants it now, and shows the line
 * again.
 */
void chat_settle(struct chat *chat);
void chat_on_input(struct ev_loop *loop, struct ev_io *io, int events);

/* ---- chat_commands.c ---- */

/* Runs what begins with this word; false: it is none of our commands. */
bool chat_run_command(struct chat *chat, struct span word, struct span rest);

void chat_commands_init(struct chat *chat);
void chat_commands_finish(struct chat *chat);

/* Runs a command of the program on the workspace's store and prints what that prints. */
void chat_run_program(struct chat *chat, const char *command);

/* Ctrl-C while a command of the program runs. */
void chat_stop_command(struct chat *chat);

/* ---- chat_choices.c ---- */

/* Loads a session by its id; "": the workspace's latest. */
void chat_resume(struct chat *chat, const char *id);
void chat_take_list(struct chat *chat, const struct message *message);
void chat_take_load(struct chat *chat, const struct message *message);

/* Prints what there is to choose (modes, models), or chooses the one that is named. */
void chat_choose(struct chat *chat, const char *what, struct span rest);
void chat_take_choice(struct chat *chat, const struct message *message);

/* An update of the session: another mode or option may be the current one now. */
void chat_note_choice(struct chat *chat, struct span params);
void chat_forget_choices(struct chat *chat);

/* ---- chat_undo.c ---- */

/* Goes back to what the workspace was before the last turn that was not undone. */
void chat_undo(struct chat *chat);
void chat_take_checkpoints(struct chat *chat, const struct message *message);

/* ---- chat_files.c ---- */

/* Tab: completes the name of a file after "@", while the line is shown. */
void chat_complete(struct chat *chat);

#endif
