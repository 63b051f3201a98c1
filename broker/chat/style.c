/* SPDX-License-Identifier: MIT */
#include "broker/chat/style.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <wchar.h>

#include "base/attr.h"
#include "base/mask.h"
#include "base/text.h"
#include "base/utf8.h"

enum { RUN_MAX = 16, INDENT_MAX = 3, HEADING_MAX = 6, FENCE_MIN = 3 };

static const char bold_numbers[] = "1";
static const char code_numbers[] = "36";
static const char mark_numbers[] = "2";

void style_init(struct style *style, bool is_colored, const char *base)
{
	*style = (struct style){.is_colored = is_colored, .base = base, .shown = ""};
}

/* ---- characters ---- */

/* Invisible characters that texts need: blanks, joiners and variation selectors of emoji. */
static bool is_wanted(uint32_t character)
{
	return character == 0xa0 || (character >= 0x2000 && character <= 0x200a) ||
	       character == 0x200c || character == 0x200d || character == 0x202f ||
	       character == 0x205f || character == 0x3000 ||
	       (character >= 0xfe00 && character <= 0xfe0f);
}

struct span style_mark(struct span *text, char room[STYLE_MARK_SIZE])
{
	static_assert((int)STYLE_MARK_SIZE >= (int)MASK_SIZE, "mask_next writes into it");
	size_t length = utf8_char_length(*text);
	uint32_t character = length > 1 ? utf8_code_point(*text) : 0;
	if (character >= 0xa0 && utf8_is_hidden(*text) && !is_wanted(character)) {
		text_whole(room, STYLE_MARK_SIZE, "<U+%04X>", (unsigned)character);
		*text = (struct span){text->data + length, text->len - length};
		return span_of(room);
	}
	return mask_next(text, room);
}

void style_plain(struct span text, bool is_line, struct buf *out)
{
	char room[STYLE_MARK_SIZE];
	while (text.len > 0) {
		struct span shown = style_mark(&text, room);
		bool is_blank = shown.data[0] == '\n' || shown.data[0] == '\t';
		buf_add(out, is_line && is_blank ? SPAN_LITERAL(" ") : shown);
	}
}

size_t style_columns(struct span character)
{
	if (character.len != utf8_char_length(character)) {
		return character.len; // a mark
	}
	int columns = wcwidth((wchar_t)utf8_code_point(character));
	return columns < 0 ? 1 : (size_t)columns;
}

void style_cut(struct span text, size_t columns, struct buf *out)
{
	char room[STYLE_MARK_SIZE];
	size_t used = 0;
	size_t fits = out->len; // the length up to which "…" still fits
	while (text.len > 0) {
		struct span shown = style_mark(&text, room);
		if (shown.data[0] == '\n' || shown.data[0] == '\t') {
			shown = SPAN_LITERAL(" ");
		}
		used += style_columns(shown);
		if (used > columns) {
			out->len = fits;
			buf_add(out, columns > 0 ? SPAN_LITERAL(TEXT_CUT) : (struct span){0});
			return;
		}
		buf_add(out, shown);
		fits = used < columns ? out->len : fits;
	}
}

/* ---- colours ---- */

static const char *wanted(const struct style *style)
{
	return style->is_fence                       ? mark_numbers
	       : style->fence || style->code         ? code_numbers
	       : style->is_heading || style->is_bold ? bold_numbers
	                                             : style->base;
}

static void show(struct style *style, const char *numbers, struct buf *out)
{
	if (!style->is_colored || strcmp(style->shown, numbers) == 0) {
		return;
	}
	bool ok = buf_append_format(out, NULL, numbers[0] ? "\033[0;%sm" : "\033[0%sm", numbers);
	assert(ok);
	(void)ok;
	style->shown = numbers;
}

static void emit(struct style *style, struct span text, struct buf *out)
{
	char room[STYLE_MARK_SIZE];
	show(style, wanted(style), out);
	while (text.len > 0) {
		buf_add(out, style_mark(&text, room));
	}
}

/* ---- lines ---- */

static void end_line(struct style *style)
{
	if (style->is_fence && style->may_close) {
		style->fence = 0;
	}
	style->is_fence = style->may_close = style->is_heading = style->is_escaped = false;
	style->is_inside = style->is_bold = style->has_info = false;
	style->code = 0;
}

static size_t count_run(struct span text, char character, size_t most)
{
	size_t count = 0;
	while (count < text.len && count < most && text.data[count] == character) {
		count++;
	}
	return count;
}

/* A run of marks at the end of the text may continue in the next piece, up to its maximum. */
static bool is_open(struct span text, size_t run, size_t most)
{
	return run == text.len && run < most;
}

/* Recognises what a line is by its beginning; false: more text is needed. Removes nothing. */
static bool begin_line(struct style *style, struct span text, bool is_end)
{
	size_t indent = count_run(text, ' ', INDENT_MAX);
	struct span rest = {text.data + indent, text.len - indent};
	if (rest.len == 0) {
		style->is_inside = is_end;
		return is_end;
	}
	char first = rest.data[0];
	size_t run = count_run(rest, first, RUN_MAX);
	bool is_mark = first == '`' || first == '~' || first == '#';
	if (is_mark && !is_end && is_open(rest, run, RUN_MAX)) {
		return false;
	}
	style->is_inside = true;
	if (style->fence) {
		style->is_fence = style->may_close =
			first == style->fence && run >= style->fence_len;
	} else if ((first == '`' || first == '~') && run >= FENCE_MIN) {
		style->fence = first;
		style->fence_len = run;
		style->is_fence = true;
	} else if (first == '#' && run <= HEADING_MAX) {
		style->is_heading = run == rest.len || strchr(" \t\n", rest.data[run]);
	}
	return true;
}

/* ---- marks inside of a line ---- */

static size_t take_code(struct style *style, struct span text, bool is_end, struct buf *out)
{
	size_t run = count_run(text, '`', RUN_MAX);
	if (!is_end && is_open(text, run, RUN_MAX)) {
		return 0;
	}
	bool closes = style->code == run;
	if (style->code == 0) {
		style->code = run;
	}
	emit(style, (struct span){text.data, run}, out);
	style->code = closes ? 0 : style->code;
	return run;
}

/* Two or more stars begin bold text before a letter, and end it. */
static size_t take_stars(struct style *style, struct span text, bool is_end, struct buf *out)
{
	size_t run = count_run(text, '*', RUN_MAX);
	if (!is_end && run == text.len) {
		return 0; // the next character decides
	}
	bool was_bold = style->is_bold;
	bool begins = run < text.len && !strchr(" \t\n", text.data[run]);
	style->is_bold = was_bold || (run >= 2 && begins);
	emit(style, (struct span){text.data, run}, out);
	style->is_bold = was_bold ? run < 2 : style->is_bold;
	return run;
}

/* Only blanks follow the marks that close a fence; no backquote follows those that open one. */
static void look_at_fence(struct style *style, char character)
{
	bool is_blank = character == ' ' || character == '\t' || character == '\r';
	if (!style->is_fence || is_blank) {
		return;
	}
	if (style->may_close && character != style->fence) {
		style->is_fence = style->may_close = false;
	} else if (!style->may_close && style->has_info && character == '`' &&
		   style->fence == '`') {
		style->is_fence = false; // it was code within a line
		style->fence = 0;
	}
	style->has_info = style->has_info || character != style->fence;
}

/* Prints the next part whose style is known; 0: more text is needed. The text is not empty. */
static size_t take(struct style *style, struct span text, bool is_end, struct buf *out)
{
	char first = text.data[0];
	if (first == '\n') {
		end_line(style);
		show(style, "", out);
		buf_add(out, SPAN_LITERAL("\n"));
		return 1;
	}
	if (!style->is_inside && !begin_line(style, text, is_end)) {
		return 0;
	}
	bool has_marks = !style->fence && !style->is_escaped;
	if (has_marks && first == '`') {
		return take_code(style, text, is_end, out);
	}
	if (has_marks && !style->code && first == '*') {
		return take_stars(style, text, is_end, out);
	}
	size_t length = utf8_char_length(text);
	if (length == 0 && !is_end && utf8_whole_length(text) == 0) {
		return 0; // the character is not whole yet
	}
	look_at_fence(style, first);
	style->is_escaped = !style->fence && !style->is_escaped && !style->code && first == '\\';
	length = length > 0 ? length : 1;
	emit(style, (struct span){text.data, length}, out);
	return length;
}

static struct span take_all(struct style *style, struct span text, bool is_end, struct buf *out)
{
	while (text.len > 0) {
		size_t taken = take(style, text, is_end, out);
		if (taken == 0) {
			break;
		}
		text = (struct span){text.data + taken, text.len - taken};
	}
	return text;
}

void style_text(struct style *style, struct span text, struct buf *out)
{
	struct buf joined;
	buf_init(&joined, SIZE_MAX / 2);
	buf_add(&joined, (struct span){style->held, style->held_len});
	buf_add(&joined, text);
	struct span rest = take_all(style, buf_span(&joined), false, out);
	assert(rest.len <= STYLE_HELD_MAX); // an indentation and a run, or a part of a character
	memcpy(style->held, rest.data, rest.len);
	style->held_len = rest.len;
	buf_finish(&joined);
}

void style_end(struct style *style, struct buf *out)
{
	take_all(style, (struct span){style->held, style->held_len}, true, out);
	style->held_len = 0;
	end_line(style);
	style->fence = 0;
	show(style, "", out);
}
