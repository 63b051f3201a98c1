/* SPDX-License-Identifier: MIT */
#ifndef BROKER_TOOLHOST_TOOLHOST_INTERNAL_H
#define BROKER_TOOLHOST_TOOLHOST_INTERNAL_H

#include "base/buf.h"
#include "base/json_doc.h"
#include "base/json_writer.h"
#include "base/list.h"
#include "base/soon.h"
#include "broker/toolhost/quirks.h"
#include "broker/toolhost/terminal.h"
#include "broker/toolhost/toolhost.h"

/* Shared by the ToolHost's own files; nobody else includes this. */

enum {
	TOOL_CALLS_MAX = 4096,            // in progress, per agent
	TOOL_HELD_MIN = 64 * 1024 * 1024, // bytes of content waiting to be written, at least
	TOOL_READS_MAX = 8,               // files being read at once; each is in memory twice
};

struct toolhost {
	struct toolhost_config config;
	const struct quirks *quirks;
	struct list calls; // of struct tool_call, unanswered
	size_t call_count;
	struct list answers; // of struct tool_call, to be answered in the next loop iteration
	struct soon answering;
	bool is_calling; // inside toolhost_call: no callbacks
	bool is_ending;  // inside toolhost_destroy: nothing new begins

	struct list held;  // of struct tool_call from `calls` (toolhost_hold.c)
	size_t held_count; // of that list
	int read_count;    // files being read

	struct list files; // of struct file_call, in the order of the calls
	size_t held_bytes; // bytes of content to be written

	struct list terminals; // of struct tool_terminal, including released ones that still run
	int terminal_count;    // of the list
	int open_terminals;    // not released
	unsigned int own_last_terminal; // used if the configuration has no last_terminal
	char *read_buffer;              // owned; TERMINAL_READ_SIZE

	struct list displays; // of struct display
	struct list past;     // of struct past_terminal, oldest first
	size_t past_count;
};

/* ---- toolhost.c: calls and their answers ---- */

/* What a held call waits for: that the agent reads its answers, and */
enum tool_hold {
	TOOL_HOLD_OUTPUT, // nothing else
	TOOL_HOLD_READ,   // a free place of TOOL_READS_MAX
};

struct tool_call {
	struct list link; // toolhost.calls or .answers
	struct toolhost *toolhost;
	char *id;         // owned, raw
	char *session_id; // owned
	struct buf result;
	struct error *failure; // owned; NULL: the result is the answer
	char *failure_path;    // owned; NULL: none
	struct list held_link; // toolhost.held
	enum tool_hold hold;
	void (*go_on)(struct tool_call *call); // NULL: not held
	/* Frees the call's own data and stops what it waits for. */
	void (*release)(struct tool_call *call);
};

struct tool_params {
	const struct message *message;
	const struct json_doc *doc; // of its params; NULL if the method needs none
	const char *const *roots;
	const char *resolved; // a file's path without links; NULL: not checked
};

struct tool_method {
	const char *name;
	size_t size;    // of the struct that begins with struct tool_call
	bool needs_doc; // reads members beyond the places of acp/places.h
	void (*serve)(struct tool_call *call, const struct tool_params *params);
};

extern const struct tool_method file_methods[];
extern const size_t file_method_count;
extern const struct tool_method terminal_methods[];
extern const size_t terminal_method_count;

/* Answers a call and frees it. call->result is the result, JSON. */
void tool_call_answer(struct tool_call *call);
void tool_call_answer_empty(struct tool_call *call); // {}
void tool_call_fail(struct tool_call *call, const char *code, const char *format, ...)
	ATTR_PRINTF(3, 4);
void tool_call_fail_with(
	struct tool_call *call, const struct error *err); // with the error as it is

/* Reads a member that must be a string. NULL if it is not one; then the call was answered. */
char *tool_string(struct tool_call *call, const struct tool_params *params, const char *name);
char *tool_string_at(struct tool_call *call, const struct tool_params *params, enum place place,
	const char *name);

/*
 * Reads an optional whole number, 0 or more. If the member is missing, *out_number stays as it is.
 * False if it is something else; then the call was answered.
 */
bool tool_number(struct tool_call *call, const struct tool_params *params, const char *name,
	unsigned long long *out_number);

/*
 * The part of a path after the root, name by name, if the path is the root or below it; else NULL.
 */
const char *tool_path_below(const char *path, const char *root);

/* Whether a path is one of the roots or below one. */
bool tool_is_below(const char *path, const char *const *roots);

/* Whether the roots include everything that the sandbox would allow. */
bool tool_covers_sandbox(const struct toolhost *toolhost, const char *const *roots);

/* ---- toolhost_hold.c ---- */

/* True if the call must wait; then go_on follows, unless the call is answered first. */
bool tool_call_hold(
	struct tool_call *call, enum tool_hold kind, void (*go_on)(struct tool_call *call));

/* The call no longer waits. */
void tool_call_let_go(struct tool_call *call);

/* ---- toolhost_terminals.c, toolhost_create.c ---- */

enum { TOOL_TERMINAL_ID_MAX = 32 };

struct tool_terminal {
	struct list link; // toolhost.terminals
	struct toolhost *toolhost;
	char id[TOOL_TERMINAL_ID_MAX];
	char *session_id;          // owned
	char *cwd;                 // owned; first as requested, later resolved
	struct terminal *process;  // owned; NULL until it has started
	struct tool_call *create;  // unanswered; may be NULL
	struct list waiting;       // of struct exit_call
	struct login_scan *logins; // owned; NULL: nobody looks for them
	bool is_released;
	bool is_emptied;

	int display_count; // displays that still follow it
	bool was_shown;    // by any display
	bool is_known;     // the editor has made a terminal of its own for it, because a tool_call
	                   // announced it
	bool is_announced; // _meta.terminal_info was sent
	bool end_was_told; // _meta.terminal_exit was sent
	uint64_t told;     // bytes of output sent so far in _meta.terminal_output
};

/* A terminal/create until its answer. */
struct create_call {
	struct tool_call call;
	struct tool_terminal *terminal; // NULL before params are read, and once created
	struct file_op *op;             // resolving its cwd
	ev_timer due;                   // file-timeout for that
	long long away_ms;              // sandbox_extend_timer
	char **argv;                    // owned
	char **env;                     // owned
	char **roots;                   // owned; the session's
	size_t cwd_root;                // of its cwd, as in struct exec_spec
	size_t output_limit;
};
void terminal_serve_create(struct tool_call *call, const struct tool_params *params);

/* The command has ended: answers the calls that wait for that. May free the terminal. */
void tool_terminal_exited(struct tool_terminal *terminal);

/* A terminal that the agent may name: started, of this session, not released. */
struct tool_terminal *tool_terminal_find(
	struct toolhost *toolhost, const char *session_id, const char *id);

/* Whether this ToolHost has created a terminal with this id. */
bool tool_terminal_was_minted(const struct toolhost *toolhost, const char *id);

/* Call it when a display no longer follows the terminal: frees it if nothing else needs it. */
void tool_terminal_settle(struct tool_terminal *terminal);

void tool_terminals_note(struct toolhost *toolhost); // some have begun, ended, or begun to end
void tool_terminal_destroy(struct tool_terminal *terminal);

/* Writes how its command ended, as two members of the open object: code and signal. */
void tool_write_exit(struct json_writer *writer, const struct tool_terminal *terminal,
	const char *const keys[2]);

/* ---- toolhost_display.c, toolhost_show.c, toolhost_edit.c ---- */

/* One item of a tool call's content, or a terminal alone. */
struct display_item {
	struct tool_terminal *terminal; // ours, or NULL
	char *raw;                      // owned; any other item as the editor got it; or NULL
};

/* A tool call that shows terminals of ours. */
struct display {
	struct list link; // toolhost.displays
	struct toolhost *toolhost;
	char *session_id;           // owned
	char *tool_call_id;         // owned
	char *session_raw;          // owned, JSON; as the editor knows it
	char *tool_call_raw;        // owned; JSON
	struct display_item *items; // owned; its content; empty if it shows no terminal as text
	size_t item_count;
	struct display_item *told; // owned; terminals that are sent by _meta
	size_t told_count;
	uint64_t sent_hash; // of the content that the editor has
	ev_timer timer;     // runs while there is something new
	double sent_at;     // ev_now
};

/* The text of a terminal that was shown and no longer exists, for updates that show it again. */
struct past_terminal {
	struct list link; // toolhost.past
	char *id;         // owned
	char *session_id; // owned
	bool is_known;
	char *item; // owned, JSON
};

/* Appends the content item that shows a terminal as text, `whole` or its last lines. */
void display_write_text(struct buf *out, const struct tool_terminal *terminal, bool whole);

/*
 * The occasion for which content is built. It decides how much of a terminal's output the content
 * contains.
 */
enum display_turn {
	DISPLAY_SHOWN, // shown by the agent itself: the last lines
	DISPLAY_NOW,   // the last lines; everything kept if the terminal is final
	DISPLAY_LAST,  // everything kept: the session ends
};

/* Sends what is new; false if the editor takes nothing now. */
bool display_send(struct display *display, enum display_turn turn);

/* The agent's own message has just shown the content. */
void display_note_shown(struct display *display);

/* Whether the terminal will produce nothing new. */
bool display_is_final(const struct tool_terminal *terminal);

void displays_finish(struct toolhost *toolhost);

/* A terminal has new output, or has ended. */
void displays_note(struct tool_terminal *terminal);

/* Sends a session's new content now; with a tool call's id, only that call's last state. */
void displays_flush(
	struct toolhost *toolhost, const char *session_id, const char *last_of_tool_call);

/*
 * Sends the last state of everything that a session shows (NULL: all sessions), and stops following
 * it.
 */
void displays_end(struct toolhost *toolhost, const char *session_id);

/* Call it before a terminal is freed: remembers for a while what it showed. */
void displays_remember(struct tool_terminal *terminal);

struct display *display_find(
	struct toolhost *toolhost, const char *session_id, const char *tool_call_id);
struct display *display_create(
	struct toolhost *toolhost, const char *session_id, const char *tool_call_id);
void display_destroy(struct display *display);

/*
 * The agent has replaced the content of the tool call. Takes its items; terminals in _meta follow
 * with display_tell.
 */
void display_set_items(struct display *display, struct display_item *items, size_t count);
void display_tell(struct display *display, struct tool_terminal *terminal);

/*
 * The present content was just sent; later content follows. Destroys the display if none can
 * follow.
 */
void display_shown(struct display *display);

struct past_terminal *past_find(struct toolhost *toolhost, const char *session_id, const char *id);

#endif
