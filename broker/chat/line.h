/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHAT_LINE_H
#define BROKER_CHAT_LINE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "broker/chat/keys.h"

/*
 * The line editor: libedit in its unbuffered mode, on which its callback interface is built. It
 * gets one key at a time and draws the line. The line is on the screen between line_show and
 * line_hide; nobody else may write to the terminal meanwhile. A line can have several rows and,
 * after a paste, line ends. The history ends with the program.
 */
struct line;

enum line_event {
	LINE_MORE,
	LINE_DONE,     // Enter: line_text is the whole line, which is no longer shown
	LINE_END,      // Ctrl-D in an empty line
	LINE_COMPLETE, // Tab
};

struct line_config {
	int fd;           // of the terminal, for reading and writing; the caller closes it
	const char *term; // the terminal's type (TERM)
	bool is_colored;
};

/* Fails with ERROR_UNAVAILABLE if libedit is not installed. */
struct line *line_create(const struct line_config *config, struct error *err) ATTR_NODISCARD;
void line_destroy(struct line *line); // hides it

void line_show(struct line *line);
bool line_is_shown(const struct line *line);

/* Removes the line from the screen. The next line_show shows the same text. */
void line_hide(struct line *line);

/* Only while the line is shown. */
enum line_event line_key(struct line *line, const struct key *key);

/* The typed text, and how many bytes of it are before the cursor. Valid until the next key. */
const char *line_text(struct line *line, size_t *out_cursor);

/* Inserts text at the cursor; only while the line is shown. */
void line_insert(struct line *line, const char *text);

/* Drops the typed text; only while the line is hidden. */
void line_clear(struct line *line);

/* Adds the text to the history, for the arrow keys. */
void line_remember(struct line *line, const char *text);

/* The size of the terminal has changed (SIGWINCH). */
void line_resize(struct line *line);

#endif
