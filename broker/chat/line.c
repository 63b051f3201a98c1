/* SPDX-License-Identifier: MIT */
#include "broker/chat/line.h"

#include <assert.h>
#include <fcntl.h>
#include <histedit.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/library.h"
#include "base/utf8.h"
#include "broker/chat/style.h"
#include "broker/chat/tty.h"

enum { HISTORY_MAX = 500, QUEUE_MAX = 8 };

/* A key that line_key never passes on; it makes libedit draw the line again. */
static const wchar_t refresh_key = 0x1d;
static const wchar_t end_key = L'\5';

struct edit_functions {
	EditLine *(*init)(const char *, FILE *, FILE *, FILE *);
	void (*end)(EditLine *);
	int (*set)(EditLine *, int, ...);
	int (*set_wide)(EditLine *, int, ...);
	int (*get)(EditLine *, int, ...);
	const char *(*take)(EditLine *, int *);
	const LineInfo *(*line)(EditLine *);
	int (*insert)(EditLine *, const char *);
	void (*resize)(EditLine *);
	History *(*history_init)(void);
	void (*history_end)(History *);
	int (*history)(History *, HistEvent *, int, ...);
};

static struct edit_functions edit;
static const char *const names[] = {"el_init", "el_end", "el_set", "el_wset", "el_get", "el_gets",
	"el_line", "el_insertstr", "el_resize", "history_init", "history_end", "history"};
static_assert(sizeof(edit) == sizeof(names), "a name for each function");

static struct library_use the_edit = {
	.library = &libraries[LIBRARY_EDIT],
	.alternative = "with TERM=dumb, chat does not need it",
	.names = names,
	.count = ARRAY_LENGTH(names),
	.functions = &edit,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

struct line {
	struct line_config config;
	FILE *in;
	FILE *out;
	EditLine *el;
	History *history;
	char *text;    // owned; of a hidden line, and what line_text returned; NULL: none
	size_t cursor; // in text
	wchar_t queue[QUEUE_MAX];
	size_t queue_len;
	bool is_shown;
};

/* ---- what libedit calls ---- */

static char *on_prompt(EditLine *el)
{
	static char plain[] = "> ";
	static char colored[] = "\1\033[1;32m\1> \1\033[0m\1";
	struct line *line = NULL;
	edit.get(el, EL_CLIENTDATA, &line);
	return line->config.is_colored ? colored : plain;
}

/* Gives libedit the queued keys; without one it returns at once. */
static int on_read(EditLine *el, wchar_t *out)
{
	struct line *line = NULL;
	edit.get(el, EL_CLIENTDATA, &line);
	if (line->queue_len == 0) {
		return 0;
	}
	*out = line->queue[0];
	line->queue_len--;
	memmove(line->queue, line->queue + 1, line->queue_len * sizeof(line->queue[0]));
	return 1;
}

static unsigned char on_refresh(EditLine *el, int key)
{
	return CC_REFRESH;
}

/* ---- life ---- */

static void bind(struct line *line)
{
	static const char *const keys[][2] = {
		{"^D", "ed-delete-next-char"},
		{"^W", "ed-delete-prev-word"},
		{"^P", "ed-prev-history"},
		{"^N", "ed-next-history"},
		{"\\e[3~", "ed-delete-next-char"},
		{"\\e[1~", "ed-move-to-beg"},
		{"\\e[7~", "ed-move-to-beg"},
		{"\\e[4~", "ed-move-to-end"},
		{"\\e[8~", "ed-move-to-end"},
		{"^]", "chat-refresh"},
	};
	edit.set(line->el, EL_EDITOR, "emacs");
	/* el_set would not free its copies of the names. */
	edit.set_wide(line->el, EL_ADDFN, L"chat-refresh", L"Show what was changed", on_refresh);
	for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
		edit.set(line->el, EL_BIND, keys[i][0], keys[i][1], NULL);
	}
}

static FILE *open_file(int fd, const char *mode)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	FILE *file = copy >= 0 ? fdopen(copy, mode) : NULL;
	if (!file) {
		fd_close(&copy);
	}
	return file;
}

struct line *line_create(const struct line_config *config, struct error *err)
{
	if (!library_open(&the_edit, err)) {
		return NULL;
	}
	struct line *line = mem_alloc_zero(sizeof(*line));
	HistEvent event;
	line->config = *config;
	line->in = open_file(config->fd, "r");
	line->out = open_file(config->fd, "w");
	line->el = line->in && line->out ? edit.init("acp-broker", line->in, line->out, line->out)
	                                 : NULL;
	line->history = edit.history_init();
	if (!line->el || !line->history) {
		line_destroy(line);
		error_set(err, ERROR_SYSTEM,
			"libedit could not be started on this terminal: TERM=dumb avoids it");
		return NULL;
	}
	edit.history(line->history, &event, H_SETSIZE, HISTORY_MAX);
	edit.history(line->history, &event, H_SETUNIQUE, 1);
	edit.set(line->el, EL_CLIENTDATA, line);
	edit.set(line->el, EL_TERMINAL, config->term);
	edit.set(line->el, EL_SIGNAL, 0);
	edit.set(line->el, EL_PROMPT_ESC, on_prompt, '\1');
	edit.set(line->el, EL_GETCFN, on_read);
	edit.set(line->el, EL_HIST, edit.history, line->history);
	bind(line);
	return line;
}

void line_destroy(struct line *line)
{
	if (!line) {
		return;
	}
	line_hide(line);
	if (line->el) {
		edit.end(line->el);
	}
	if (line->history) {
		edit.history_end(line->history);
	}
	if (line->in) {
		fclose(line->in);
	}
	if (line->out) {
		fclose(line->out);
	}
	free(line->text);
	free(line);
}

/* ---- the screen ---- */

bool line_is_shown(const struct line *line)
{
	return line->is_shown;
}

static void press(struct line *line, const wchar_t *keys, size_t count)
{
	int ignored;
	assert(count <= QUEUE_MAX);
	memcpy(line->queue, keys, count * sizeof(*keys));
	line->queue_len = count;
	while (line->queue_len > 0) {
		size_t before = line->queue_len;
		edit.take(line->el, &ignored);
		if (line->queue_len == before) {
			break; // libedit does not take the key
		}
	}
	line->queue_len = 0;
}

static void refresh(struct line *line)
{
	press(line, &refresh_key, 1);
}

void line_show(struct line *line)
{
	if (line->is_shown) {
		return;
	}
	line->is_shown = true;
	edit.set(line->el, EL_UNBUFFERED, 1);
	if (line->text && line->text[0]) {
		edit.insert(line->el, line->text);
		refresh(line);
	}
}

/* Hands the terminal back. libedit restores the modes that it found, so ours are set again. */
static void stop(struct line *line)
{
	line->is_shown = false;
	edit.set(line->el, EL_UNBUFFERED, 0);
	tty_enter();
}

static void keep_text(struct line *line)
{
	const LineInfo *info = edit.line(line->el);
	free(line->text);
	line->text =
		mem_strndup((struct span){info->buffer, (size_t)(info->lastchar - info->buffer)});
	line->cursor = (size_t)(info->cursor - info->buffer);
}

/* The columns of the prompt and the text; SIZE_MAX if the text has line ends. */
static size_t columns_of(const struct line *line)
{
	struct span rest = span_of(line->text);
	size_t columns = 2;
	while (rest.len > 0) {
		size_t length = utf8_char_length(rest);
		struct span character = {rest.data, length ? length : 1};
		unsigned char first = (unsigned char)character.data[0];
		if (first == '\n') {
			return SIZE_MAX;
		}
		columns += first == '\t' ? 8 : first < ' ' ? 2 : style_columns(character);
		rest = (struct span){rest.data + character.len, rest.len - character.len};
	}
	return columns;
}

void line_hide(struct line *line)
{
	static const char clear[] = "\r\033[K";
	if (!line->is_shown) {
		return;
	}
	keep_text(line);
	bool has_one_row = columns_of(line) < tty_columns(line->config.fd);
	if (!has_one_row) {
		press(line, &end_key, 1); // later output goes below the last row
	}
	stop(line);
	fputs(has_one_row ? clear : "\n", line->out);
	fflush(line->out);
}

/* ---- keys ---- */

/*
 * Whether libedit gets this key. Other keys are bound to functions that wait for a second key, or
 * print to stdout.
 */
static bool is_known(struct span key)
{
	static const char controls[] = "\1\2\4\5\6\b\13\16\20\24\25\27\31\37\177";
	static const char *const sequences[] = {"\033[A", "\033[B", "\033[C", "\033[D", "\033[H",
		"\033[F", "\033OA", "\033OB", "\033OC", "\033OD", "\033OH", "\033OF", "\033[3~",
		"\033[1~", "\033[4~", "\033[7~", "\033[8~", "\033b", "\033f", "\033d", "\033\177"};
	if (key.len == 1 && (unsigned char)key.data[0] < 0x80) {
		bool is_control = key.data[0] < ' ' || key.data[0] == 0x7f;
		return !is_control || (key.data[0] && strchr(controls, key.data[0]));
	}
	for (size_t i = 0; i < ARRAY_LENGTH(sequences); i++) {
		if (span_is(key, sequences[i])) {
			return true;
		}
	}
	return key.data[0] != '\033' && utf8_char_length(key) == key.len;
}

static enum line_event enter(struct line *line)
{
	press(line, &end_key, 1); // the next line begins below the last row
	keep_text(line);
	stop(line);
	fputs("\n", line->out);
	fflush(line->out);
	return LINE_DONE;
}

enum line_event line_key(struct line *line, const struct key *key)
{
	struct span text = key->text;
	wchar_t wide[QUEUE_MAX];
	size_t count = 0;
	if (key->kind == KEY_PASTE) {
		char *pasted = mem_strndup(text);
		line_insert(line, pasted);
		free(pasted);
		return LINE_MORE;
	}
	if (text.len == 1 && (text.data[0] == '\r' || text.data[0] == '\n')) {
		return enter(line);
	}
	if (text.len == 1 && text.data[0] == '\t') {
		return LINE_COMPLETE;
	}
	keep_text(line);
	if (text.len == 1 && text.data[0] == '\4' && !line->text[0]) {
		return LINE_END;
	}
	if (!is_known(text)) {
		return LINE_MORE;
	}
	while (text.len > 0 && count < QUEUE_MAX) {
		size_t length = utf8_char_length(text);
		wide[count++] = (wchar_t)utf8_code_point(text);
		text = (struct span){text.data + length, text.len - length};
	}
	press(line, wide, count);
	return LINE_MORE;
}

const char *line_text(struct line *line, size_t *out_cursor)
{
	if (line->is_shown) {
		keep_text(line);
	}
	*out_cursor = line->text ? line->cursor : 0;
	return line->text ? line->text : "";
}

void line_insert(struct line *line, const char *text)
{
	edit.insert(line->el, text);
	refresh(line);
}

void line_clear(struct line *line)
{
	free(line->text);
	line->text = NULL;
}

void line_remember(struct line *line, const char *text)
{
	HistEvent event;
	edit.history(line->history, &event, H_ENTER, text);
}

void line_resize(struct line *line)
{
	edit.resize(line->el);
	if (line->is_shown) {
		refresh(line);
	}
}
