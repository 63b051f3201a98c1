/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHAT_LINE_H
#define BROKER_CHAT_LINE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "broker/chat/keys.h"

/*
 * The line that is being typed, by libedit's unbuffered mode (what its callback interface is made
 * of): it gets one key at a time and shows what becomes of it. It is on the screen between
 * line_show and line_hide; nobody else writes to the terminal then. A line may have several rows,
 * and line ends that were pasted. The history lives as long as the program.
 */
struct line;

enum line_event {
	LINE_MORE,
	LINE_DONE,     // Enter: line_text is whole, and the line is no longer shown
	LINE_END,      // Ctrl-D with an empty line
	LINE_COMPLETE, // Tab
};

struct line_config {
	int fd;           // of the terminal, for reading and writing; stays the caller's
	const char *term; // the terminal's type (TERM)
	bool is_colored;
};

/* ERROR_UNAVAILABLE without libedit. */
struct line *line_create(const struct line_config *config, struct error *err) ATTR_NODISCARD;
void line_destroy(struct line *line); // hides it

void line_show(struct line *line);
bool line_is_shown(const struct line *line);

/* Takes it off the screen; its text is kept for the next line_show. */
void line_hide(struct line *line);

/* While it is shown. */
enum line_event line_key(struct line *line, const struct key *key);

/* What is typed, up to the cursor and as a whole; valid until the next key. */
const char *line_text(struct line *line, size_t *out_cursor);

/* Adds text at the cursor; while it is shown. */
void line_insert(struct line *line, const char *text);

/* Forgets what is typed; while it is hidden. */
void line_clear(struct line *line);

/* For the arrow keys. */
void line_remember(struct line *line, const char *text);

/* The terminal has another size. */
void line_resize(struct line *line);

#endif
