/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHAT_STYLE_H
#define BROKER_CHAT_STYLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/span.h"

/*
 * Markdown on its way to a terminal, as it streams in: headings, fences, `code` and **bold** get
 * colours, and every character is shown, the marks of Markdown too. Nothing that was printed is
 * printed again. Whatever the text holds, only our own escape sequences come out: controls and
 * characters that are not seen, or that reorder others, become "^[" or "<U+202E>".
 *
 * A style ends with its line, so that a mark without its other half does no harm. How the text is
 * cut into pieces changes nothing: what cannot be decided yet waits for the next piece.
 */
enum { STYLE_HELD_MAX = 64, STYLE_MARK_SIZE = 16 };

struct style {
	bool is_colored;  // without, no escape sequence comes out at all
	const char *base; // numbers of SGR for plain text, "" for none; static
	char held[STYLE_HELD_MAX];
	size_t held_len;
	bool is_inside;    // not at the beginning of a line
	bool is_heading;   // this line
	bool is_escaped;   // the next character is no mark
	bool is_bold;      // since a "**" of this line
	size_t code;       // the number of backquotes that began the code, or 0
	char fence;        // the character of the fence that is open, or 0
	size_t fence_len;  // of its first line
	bool is_fence;     // this line is the first or the last of a fence
	bool has_info;     // something else followed the marks of that line
	bool may_close;    // it is the last, unless something but blanks follows
	const char *shown; // what the terminal was told last
};

void style_init(struct style *style, bool is_colored, const char *base);

/* Appends to `out`, which has no maximum, what is decided. */
void style_text(struct style *style, struct span text, struct buf *out);

/* The text is at its end: what was held comes out, and the colours end. No line end is added. */
void style_end(struct style *style, struct buf *out);

/*
 * Takes the first character out of *text, which is not empty, and returns it, or its mark in
 * `room`.
 */
struct span style_mark(struct span *text, char room[STYLE_MARK_SIZE]);

/* Appends text with marks and no colours; with is_line as one line. */
void style_plain(struct span text, bool is_line, struct buf *out);

/* The same on one line of at most `columns`: what is longer ends with "…". */
void style_cut(struct span text, size_t columns, struct buf *out);

/* How many columns a character takes, after style_mark. */
size_t style_columns(struct span character);

#endif
