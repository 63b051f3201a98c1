/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHAT_SHOW_H
#define BROKER_CHAT_SHOW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/json_doc.h"
#include "base/span.h"
#include "broker/chat/style.h"

/*
 * What a chat prints of a session: the agent's text as it arrives, and lines for tool calls, plans
 * and diffs. All of it is appended to a buffer without a maximum. The only control sequences in it
 * are our own colours (style.h).
 */
enum { SHOW_CALLS = 64, SHOW_DIFF_LINES = 40, SHOW_KEPT_MAX = 256 * 1024, SHOW_ROOTS = 2 };

enum show_color { SHOW_PLAIN, SHOW_DIM, SHOW_GOOD, SHOW_BAD, SHOW_ASK };

struct show_call {
	char *id;       // owned; NULL: this entry is free
	char *title;    // owned
	char *diffs;    // owned; JSON: the last content with a diff that was not shown; or NULL
	bool has_begun; // the line of its start was printed
	bool has_ended;
	bool has_shown_diffs; // with the question about it
};

struct show {
	bool is_colored;
	bool has_progress; // the caller shows own_title while the broker's own call runs
	char *own_title;   // owned; NULL: none runs
	size_t columns;    // of the terminal; the caller keeps it up to date
	const char *block; // the kind of the text that is arriving ("message", "thought"); "": none
	struct style style;
	bool is_inside;                     // a line of that text has begun
	struct show_call calls[SHOW_CALLS]; // a ring: a new call replaces the oldest
	size_t next_call;
	char *roots[SHOW_ROOTS]; // owned; each may be NULL
};

void show_init(struct show *show, bool is_colored);
void show_finish(struct show *show);

/*
 * Sets the workspace's path on this machine (0) or in the sandbox (1). Titles and diffs then show
 * paths below it relative to it. NULL: the path is not known.
 */
void show_set_root(struct show *show, size_t number, const char *path);

void show_update(struct show *show, struct span params, struct buf *out); // of session/update

/* Ends the arriving text, if there is any. The next output begins a line. */
void show_end_text(struct show *show, struct buf *out);

/* Prints a line. With is_cut the text is shortened to the columns of the terminal. */
void show_line(struct show *show, enum show_color color, const char *mark, struct span text,
	bool is_cut, struct buf *out);

/* The line of a question. */
void show_asked_title(struct show *show, struct span text, struct buf *out);

/* Prints all texts and diffs of the tool call that a question is about. */
void show_asked_call(
	struct show *show, const struct json_doc *doc, json_node call, struct buf *out);

#endif
