/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/json_doc.h"
#include "base/text.h"
#include "broker/chat/chat_parts.h"

/*
 * /undo: the broker lists the checkpoints of the workspace, oldest first, and the chat chooses the
 * one before the last turn that was not undone yet. A rollback adds checkpoints of its own, so that
 * "the one before the last" would bring back what the /undo before has undone.
 */
enum { COMMAND_SIZE = 64 };

struct checkpoint {
	long long number;
	char *tree; // owned
};

/* A turn that changed something, and the checkpoint before it. */
struct undoable {
	long long number;
	long long before;
};

struct history {
	struct undoable *turns; // owned; those that were not undone, oldest first
	size_t count;
	struct checkpoint last;
};

void chat_undo(struct chat *chat)
{
	struct buf out;
	struct json_writer writer;
	client_params_begin(&writer, &out);
	json_write_member_raw(&writer, "sessionId", span_of(chat->session_id));
	chat->stage = STAGE_COMMAND;
	chat_request(chat, ASK_CHECKPOINTS, "_broker/checkpoint/list", &writer);
}

/* Turns after the checkpoint that a rollback went to are undone (broker/cli/command_rollback.c). */
static void note_rollback(struct history *history, const char *reason)
{
	static const char lead[] = "after rollback to ";
	if (strncmp(reason, lead, strlen(lead)) != 0) {
		return;
	}
	long long number = strtoll(reason + strlen(lead), NULL, 10);
	while (history->count > 0 && history->turns[history->count - 1].number > number) {
		history->count--;
	}
}

static void note(struct history *history, const struct json_doc *doc, json_node entry)
{
	char *reason = json_string(doc, json_get(doc, entry, "reason"));
	char *tree = json_string(doc, json_get(doc, entry, "tree"));
	long long number = json_int(doc, json_get(doc, entry, "checkpoint"), 0);
	const struct checkpoint *last = &history->last;
	bool is_turn = json_int(doc, json_get(doc, entry, "turn"), 0) > 0;
	if (is_turn && last->tree && tree && strcmp(tree, last->tree) != 0) {
		history->turns =
			mem_realloc(history->turns, (history->count + 1) * sizeof(*history->turns));
		history->turns[history->count++] =
			(struct undoable){.number = number, .before = last->number};
	} else if (!is_turn && reason) {
		note_rollback(history, reason);
	}
	free(history->last.tree);
	history->last = (struct checkpoint){number, tree};
	free(reason);
}

void chat_take_checkpoints(struct chat *chat, const struct message *message)
{
	char command[COMMAND_SIZE];
	struct history history = {.turns = NULL};
	struct json_doc *doc = json_doc_parse_unchecked(message_place(message, PLACE_RESULT), NULL);
	json_node entries = doc ? json_get(doc, 0, "checkpoints") : JSON_NODE_NONE;
	for (json_node entry = doc ? json_first(doc, entries) : JSON_NODE_NONE;
		entry != JSON_NODE_NONE; entry = json_next(doc, entry)) {
		note(&history, doc, entry);
	}
	if (history.count > 0) {
		text_format(command, sizeof(command), "checkpoints rollback %lld",
			history.turns[history.count - 1].before);
		chat_run_program(chat, command);
	} else {
		chat_print_line(chat, SHOW_DIM, "-",
			"no turn is left to undo; acp-broker checkpoints list shows what there is");
	}
	free(history.turns);
	free(history.last.tree);
	json_doc_destroy(doc);
}
