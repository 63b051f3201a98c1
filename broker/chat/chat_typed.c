/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "broker/chat/chat_parts.h"

/* Runs a command of ours, or sends the text as a prompt: it may be a command of the agent's. */
static void take_prompt(struct chat *chat, struct span text)
{
	struct span rest = text;
	struct span word = span_take_word(&rest, " \t\r\n");
	if (chat_run_command(chat, word, rest)) {
		return;
	}
	if (text.len > CHAT_PROMPT_MAX) {
		char line[128];
		text_format(line, sizeof(line),
			"the prompt was not sent: it is longer than %d bytes", CHAT_PROMPT_MAX);
		chat_print_line(chat, SHOW_BAD, "!", line);
	} else if (word.len > 0) {
		chat_send_prompt(chat, text);
	}
}

/* ---- what is typed ---- */

static void take_line(struct chat *chat, struct span text)
{
	char *copy = mem_strndup(text);
	take_prompt(chat, span_of(copy));
	free(copy);
}

static void take_key(struct chat *chat, const struct key *key)
{
	size_t cursor;
	chat->interrupts = 0;
	if (chat->ask.request) {
		bool is_one = key->kind == KEY_CHARACTER && key->text.len == 1;
		int option = is_one ? ask_find(&chat->ask, key->text.data[0]) : -1;
		if (option >= 0) {
			chat_answer(chat, option);
		}
		return;
	}
	line_show(chat->line);
	if (key->is_cut) {
		chat_print_line(
			chat, SHOW_BAD, "!", "the paste was cut: it is longer than 512 KiB");
		line_show(chat->line);
	}
	switch (line_key(chat->line, key)) {
	case LINE_DONE: {
		char *text = mem_strdup(line_text(chat->line, &cursor));
		line_clear(chat->line);
		if (text[0]) {
			line_remember(chat->line, text);
		}
		take_line(chat, span_of(text));
		free(text);
		break;
	}
	case LINE_END:
		chat_print_line(chat, SHOW_DIM, "-", "ending the session");
		chat_close(chat);
		break;
	case LINE_COMPLETE:
		chat_complete(chat);
		break;
	case LINE_MORE:
		break;
	}
}

/* A prompt can be typed, and all our output has reached the terminal. */
static bool is_free(const struct chat *chat)
{
	return chat->stage == STAGE_IDLE && output_is_idle(&chat->output) && !chat->ask.request;
}

static void settle_line(struct chat *chat)
{
	struct key key;
	while ((chat->ask.request || is_free(chat)) && keys_next(&chat->keys, &key)) {
		take_key(chat, &key);
	}
	if (is_free(chat)) {
		line_show(chat->line);
	}
	if (chat->stage != STAGE_ENDING && keys_has_room(&chat->keys)) {
		ev_io_start(chat->means.loop, &chat->in);
	}
}

/* Handles one line of stdin: a prompt, or the key that answers a question. */
static bool take_typed(struct chat *chat)
{
	struct span text = buf_span(&chat->typed);
	const char *end = text.len > 0 ? memchr(text.data, '\n', text.len) : NULL;
	bool is_full = text.len == chat->typed.max;
	if (!end && !is_full && !(chat->in_has_ended && text.len > 0)) {
		return false;
	}
	size_t len = end ? (size_t)(end - text.data) : text.len;
	char *line = mem_strndup((struct span){text.data, len});
	buf_consume(&chat->typed, len + (end != NULL));
	if (chat->ask.request) {
		int option = ask_find(&chat->ask, line[0]);
		if (option >= 0) {
			chat_answer(chat, option);
		}
	} else {
		take_prompt(chat, span_of(line));
	}
	free(line);
	return true;
}

static void settle_lines(struct chat *chat)
{
	while ((chat->ask.request || chat->stage == STAGE_IDLE) && take_typed(chat)) {
	}
	bool wants = chat->ask.request || chat->stage == STAGE_IDLE;
	if (wants && chat->in_has_ended) {
		chat_close(chat);
	} else if (wants && chat->typed.len < chat->typed.max) {
		if (chat->is_person && !chat->ask.request && !ev_is_active(&chat->in)) {
			output_print(&chat->output, SPAN_LITERAL("> "));
		}
		ev_io_start(chat->means.loop, &chat->in);
	} else {
		ev_io_stop(chat->means.loop, &chat->in);
	}
}

void chat_settle(struct chat *chat)
{
	if (chat->is_settling || chat->stage == STAGE_ENDING) {
		return; // the outer call of this function goes on
	}
	chat->is_settling = true;
	if (chat->command && !output_is_over(&chat->output)) {
		ev_io_start(chat->means.loop, &chat->told);
	}
	if (chat->line) {
		settle_line(chat);
	} else {
		settle_lines(chat);
	}
	chat->is_settling = false;
}

void chat_on_input(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct chat *chat = io->data;
	char bytes[KEYS_READ_MAX];
	size_t room = chat->line ? sizeof(bytes) : chat->typed.max - chat->typed.len;
	ssize_t count = read(io->fd, bytes, room < sizeof(bytes) ? room : sizeof(bytes));
	if (count < 0 && io_is_transient(errno)) {
		return;
	}
	if (count > 0 && chat->line) {
		keys_add(&chat->keys, (struct span){bytes, (size_t)count});
	} else if (count > 0) {
		bool ok = buf_append(&chat->typed, (struct span){bytes, (size_t)count}, NULL);
		(void)ok; // there was room
	} else {
		chat->in_has_ended = true;
	}
	if (!chat->line || chat->in_has_ended || !keys_has_room(&chat->keys)) {
		ev_io_stop(loop, io); // chat_settle starts it again
	}
	if (chat->in_has_ended && chat->line) { // the terminal is gone
		chat_close(chat);
	}
	chat_settle(chat);
}
