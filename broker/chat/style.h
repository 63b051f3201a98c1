/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHAT_STYLE_H
#define BROKER_CHAT_STYLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/span.h"

/*
 * Colours Markdown for a terminal while the text arrives: headings, fences, `code` and **bold**.
 * Every character is shown, also the marks of Markdown, and nothing is printed twice. Whatever the
 * text contains, the output has only our own escape sequences: control characters, invisible
 * characters and those that reorder others become marks such as "^[" or "<U+202E>".
 *
 * A style ends at the end of its line, so an unmatched mark does no harm. The output does not
 * depend on how the text is split into pieces: bytes whose style is not known yet wait for the next
 * piece.
 */
enum { STYLE_HELD_MAX = 64, STYLE_MARK_SIZE = 16 };

struct style {
	bool is_colored;  // false: no escape sequences at all
	const char *base; // the SGR parameters of plain text; "": none; static
	char held[STYLE_HELD_MAX];
	size_t held_len;
	bool is_inside;    // a line has begun
	bool is_heading;   // this line is a heading
	bool is_escaped;   // a backslash came before: the next character is not a mark
	bool is_bold;      // a "**" of this line is open
	size_t code;       // the number of backquotes that opened the code; 0: no code
	char fence;        // the character of the open fence; 0: none is open
	size_t fence_len;  // how many of them opened it
	bool is_fence;     // this line opens or closes a fence
	bool has_info;     // other text followed the marks of that line
	bool may_close;    // this line closes the fence if only blanks follow
	const char *shown; // the SGR parameters that were sent last
};

void style_init(struct style *style, bool is_colored, const char *base);

/* Appends the text whose style is known to `out`, which has no maximum. */
void style_text(struct style *style, struct span text, struct buf *out);

/* Ends the text: appends the bytes that waited, and ends the colours. Adds no line end. */
void style_end(struct style *style, struct buf *out);

/*
 * Removes the first character from *text, which must not be empty. Returns the character, or, if it
 * may not be printed, its mark, which is written to `room`.
 */
struct span style_mark(struct span *text, char room[STYLE_MARK_SIZE]);

/* Appends text with marks and without colours; with is_line all of it on one line. */
void style_plain(struct span text, bool is_line, struct buf *out);

/* The same on one line of at most `columns`; a longer text is cut and ends with "…". */
void style_cut(struct span text, size_t columns, struct buf *out);

/* How many columns a character that style_mark returned takes. */
size_t style_columns(struct span character);

#endif
