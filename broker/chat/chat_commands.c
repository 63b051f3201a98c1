/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/text.h"
#include "base/words.h"
#include "broker/chat/chat_parts.h"
#include "broker/chat/diff.h"

/*
 * The commands of lines that begin with a slash. For those on the workspace's store, chat runs this
 * program again (`acp-broker checkpoints show -1`) and prints its output.
 */
enum { TOLD_LINE_MAX = 64 * 1024 };

/* ---- commands of the program ---- */

static void print_told(struct chat *chat, struct span line)
{
	struct buf out;
	bool is_log = line.len > 3 && line.data[0] == '<' && line.data[2] == '>';
	line = is_log ? (struct span){line.data + 3, line.len - 3} : line; // without its level
	char first = line.len > 0 ? line.data[0] : '\0';
	chat_print_begin(chat, &out);
	show_line(&chat->show,
		first == '+'   ? SHOW_GOOD
		: first == '-' ? SHOW_BAD
			       : SHOW_PLAIN,
		" ", line, false, &out);
	chat_print_end(chat, &out);
}

static void end_command(struct chat *chat)
{
	ev_io_stop(chat->means.loop, &chat->told);
	fd_close(&chat->told.fd);
	if (chat->command) {
		while (waitpid(chat->command, NULL, 0) == -1 && errno == EINTR) {
		}
	}
	chat->command = 0;
	chat->stage = chat->stage == STAGE_COMMAND ? STAGE_IDLE : chat->stage;
}

static void on_told(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct chat *chat = io->data;
	char bytes[4096];
	if (output_is_over(&chat->output)) {
		ev_io_stop(loop, io); // chat_settle starts it again
		return;
	}
	ssize_t count = read(io->fd, bytes, sizeof(bytes));
	if (count < 0 && io_is_transient(errno)) {
		return;
	}
	bool is_end = count <= 0;
	bool ok = is_end || buf_append(&chat->told_text, (struct span){bytes, (size_t)count}, NULL);
	(void)ok; // the loop below takes lines out of it before it is full
	struct span text = buf_span(&chat->told_text);
	while (text.len > 0 && (memchr(text.data, '\n', text.len) || is_end ||
				       text.len + sizeof(bytes) > chat->told_text.max)) {
		print_told(chat, diff_take_line(&text));
	}
	buf_consume(&chat->told_text, chat->told_text.len - text.len);
	if (is_end) {
		end_command(chat);
	}
	chat_settle(chat);
}

static int spawn_command(struct chat *chat, const char *const *argv, int out)
{
	posix_spawnattr_t attributes;
	posix_spawn_file_actions_t actions;
	sigset_t signals;
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_init(&actions);
	sigfillset(&signals);
	posix_spawnattr_setsigdefault(&attributes, &signals);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF);
	int errnum =
		posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	for (int fd = STDOUT_FILENO; errnum == 0 && fd <= STDERR_FILENO; fd++) {
		errnum = posix_spawn_file_actions_adddup2(&actions, out, fd);
	}
	if (errnum == 0) {
		errnum = posix_spawn(&chat->command, argv[0], &actions, &attributes,
			(char *const *)argv, (char *const *)chat->means.environment);
	}
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return errnum;
}

static bool start_command(struct chat *chat, const char *const *argv, struct error *err)
{
	int told[2] = {-1, -1};
	if (!fd_pipe(told, err) || !fd_set_nonblock(told[0], true, err)) {
		fd_close(&told[0]);
		fd_close(&told[1]);
		return false;
	}
	int errnum = spawn_command(chat, argv, told[1]);
	fd_close(&told[1]);
	if (errnum != 0) {
		chat->command = 0;
		fd_close(&told[0]);
		return error_set_errno(err, errnum, "starting %s", argv[0]);
	}
	ev_io_set(&chat->told, told[0], EV_READ);
	ev_io_start(chat->means.loop, &chat->told);
	chat->stage = STAGE_COMMAND;
	return true;
}

/* Runs the program with the words of `command`, the typed words and the options of the chat. */
static void run_program(struct chat *chat, const char *command, struct span rest, bool is_store)
{
	struct error err;
	char **argv = NULL;
	struct span words = span_of(command);
	words_append(&argv, chat->means.argv[0]);
	for (int i = 0; i < 2; i++) {
		struct span from = i == 0 ? words : rest;
		struct span word;
		while ((word = span_take_word(&from, " \t\r\n")).len > 0) {
			char *copy = mem_strndup(word);
			words_append(&argv, copy);
			free(copy);
		}
	}
	if (is_store && chat->means.options) {
		words_append_all(&argv, chat->means.options);
	}
	if (!start_command(chat, (const char *const *)argv, &err)) {
		chat_print_line(chat, SHOW_BAD, "!", err.text);
	}
	words_free(argv);
}

void chat_run_program(struct chat *chat, const char *command)
{
	run_program(chat, command, SPAN_LITERAL(""), true);
}

void chat_stop_command(struct chat *chat)
{
	if (chat->command) {
		kill(chat->command, SIGTERM);
	}
}

/* ---- the table ---- */

static void run_help(struct chat *chat, struct span rest);

static void run_mode(struct chat *chat, struct span rest)
{
	chat_choose(chat, "mode", rest);
}

static void run_model(struct chat *chat, struct span rest)
{
	chat_choose(chat, "model", rest);
}

/* Without an id it loads the latest session of the workspace. */
static void run_load(struct chat *chat, struct span rest)
{
	char *id = mem_strndup(span_take_word(&rest, " \t\r\n"));
	chat_resume(chat, id);
	free(id);
}

static void run_undo(struct chat *chat, struct span rest)
{
	chat_undo(chat);
}

static void run_quit(struct chat *chat, struct span rest)
{
	chat_close(chat);
}

static const struct command {
	const char *name;
	void (*run)(struct chat *chat, struct span rest); // NULL: `program` alone
	const char *program;   // words of a command of the program; with `run`: for typed words
	const char *otherwise; // the words after them if the user typed none
	bool is_store;
	const char *help;
} commands[] = {
	{"/help", run_help, NULL, NULL, false, "print this"},
	{"/quit", run_quit, NULL, NULL, false, "end the session; so does Ctrl-D"},
	{"/mode", run_mode, NULL, NULL, false, "list the agent's modes, or set one"},
	{"/model", run_model, NULL, NULL, false, "list the agent's models, or set one"},
	{"/load", run_load, NULL, NULL, false,
		"go on with session ID, or with the latest one of this folder"},
	{"/diff", NULL, "checkpoints show", "-1", true, "show what the last turn changed"},
	{"/undo", run_undo, "checkpoints rollback", "", true,
		"undo the last turn; again: the turn before it"},
	{"/conflicts", NULL, "conflicts list", "", true,
		"list what you and the agent both changed"},
	{"/commits", NULL, "commits list", "", true, "list the agent's commits"},
	{"/sessions", NULL, "sessions list", "", false, "list sessions and their states"},
};

enum { HELP_NAME_SIZE = 16 };

static void run_help(struct chat *chat, struct span rest)
{
	for (size_t i = 0; i < ARRAY_LENGTH(commands); i++) {
		char name[HELP_NAME_SIZE];
		text_format(name, sizeof(name), "%-10s", commands[i].name);
		chat_print_line(chat, SHOW_PLAIN, name, commands[i].help);
	}
	chat_print_line(chat, SHOW_DIM, "-", "any other line that begins with / goes to the agent");
	chat_print_line(
		chat, SHOW_DIM, "-", "Ctrl-C cancels a turn; a second one ends the session");
}

bool chat_run_command(struct chat *chat, struct span word, struct span rest)
{
	for (size_t i = 0; i < ARRAY_LENGTH(commands); i++) {
		const struct command *command = &commands[i];
		if (!span_is(word, command->name)) {
			continue;
		}
		struct span typed = rest;
		bool is_bare = span_take_word(&typed, " \t\r\n").len == 0;
		if (command->run && (is_bare || !command->program)) {
			command->run(chat, rest);
		} else {
			run_program(chat, command->program,
				is_bare ? span_of(command->otherwise) : rest, command->is_store);
		}
		return true;
	}
	return false;
}

void chat_commands_init(struct chat *chat)
{
	buf_init(&chat->told_text, TOLD_LINE_MAX);
	ev_io_init(&chat->told, on_told, -1, EV_READ);
	chat->told.data = chat;
}

void chat_commands_finish(struct chat *chat)
{
	chat_stop_command(chat);
	end_command(chat);
	buf_finish(&chat->told_text);
}
