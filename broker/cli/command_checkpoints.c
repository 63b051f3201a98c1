/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/utf8.h"
#include "broker/cli/command.h"
#include "broker/cli/stderr_line.h"

/* ---- list ---- */

static const size_t UNKNOWN = SIZE_MAX; // one of the two trees cannot be read

struct listed {
	struct checkpoint *checkpoints; // owned
	size_t *changed; // owned; files that differ from the one before; 0 for the first; or
	                 // UNKNOWN
	size_t count;
	struct checkpoint_damage damage;
};

static void listed_finish(struct listed *listed)
{
	free(listed->checkpoints);
	free(listed->changed);
}

static bool listed_load(struct listed *listed, struct store *store, struct error *err)
{
	*listed = (struct listed){.count = 0};
	if (!checkpoint_list(store, &listed->checkpoints, &listed->count, &listed->damage, err)) {
		return false;
	}
	listed->changed = mem_alloc_zero((listed->count + 1) * sizeof(*listed->changed));
	for (size_t i = 1; i < listed->count; i++) {
		struct error unknown;
		if (!checkpoint_count_changed(store, &listed->checkpoints[i - 1].tree,
			    &listed->checkpoints[i].tree, &listed->changed[i], &unknown)) {
			listed->changed[i] = UNKNOWN;
		}
	}
	return true;
}

static bool is_counted(const struct listed *listed, size_t index)
{
	return index > 0 && listed->changed[index] != UNKNOWN;
}

/* The members as in _broker/checkpoint/list, and the number of changed files. */
static void write_one(struct json_writer *writer, const struct listed *listed, size_t index)
{
	const struct checkpoint *checkpoint = &listed->checkpoints[index];
	json_write_object(writer);
	checkpoint_write(writer, checkpoint);
	json_write_key(writer, "changed");
	if (is_counted(listed, index)) {
		json_write_int(writer, (long long)listed->changed[index]);
	} else {
		json_write_null(writer);
	}
	json_write_object_end(writer);
}

static void write_listed(struct json_writer *writer, const void *data)
{
	const struct listed *listed = data;
	json_write_key(writer, "checkpoints");
	json_write_array(writer);
	for (size_t i = 0; i < listed->count; i++) {
		write_one(writer, listed, i);
	}
	json_write_array_end(writer);
	char text[CHECKPOINT_DAMAGE_MAX];
	json_write_member(writer, "damaged", checkpoint_damage_text(&listed->damage, text));
}

/* Characters; each byte that is not UTF-8 counts as one. */
static size_t width_of(const char *text)
{
	size_t width = 0;
	for (struct span rest = span_of(text); rest.len > 0; width++) {
		size_t len = utf8_char_length(rest);
		len = len > 0 ? len : 1;
		rest = (struct span){rest.data + len, rest.len - len};
	}
	return width;
}

static int column_width(const struct listed *listed, size_t offset, const char *title)
{
	size_t width = strlen(title);
	for (size_t i = 0; i < listed->count; i++) {
		size_t len = width_of((const char *)&listed->checkpoints[i] + offset);
		width = len > width ? len : width;
	}
	return (int)width;
}

static void print_table(struct command_context *context, const struct listed *listed)
{
	int reason = column_width(listed, offsetof(struct checkpoint, reason), "REASON");
	int session = column_width(listed, offsetof(struct checkpoint, session), "SESSION");
	printf("%6s  %-19s  %-*s  %-*s  %s\n", "NUMBER", "TIME", reason, "REASON", session,
		"SESSION", "CHANGED");
	for (size_t i = 0; i < listed->count; i++) {
		const struct checkpoint *checkpoint = &listed->checkpoints[i];
		char time[COMMAND_TIME_SIZE];
		char cells[CHECKPOINT_REASON_MAX + 2 * CHECKPOINT_SESSION_MAX];
		printf("%6u  %-19s  ", checkpoint->number, command_time(time, checkpoint->time));
		int missing = reason - (int)width_of(checkpoint->reason);
		text_format(cells, sizeof(cells), "%s%*s  %-*s", checkpoint->reason, missing, "",
			session, *checkpoint->session ? checkpoint->session : "-");
		command_print(context, span_of(cells));
		if (is_counted(listed, i)) {
			printf("  %7zu\n", listed->changed[i]);
		} else {
			printf("  %7s\n", "-");
		}
	}
}

bool command_checkpoints_list(struct command_context *context, struct error *err)
{
	struct listed listed;
	bool ok = listed_load(&listed, &context->store, err);
	if (ok && context->options->flags & OPTION_JSON) {
		ok = command_print_json(write_listed, &listed, err);
	} else if (ok && listed.count > 0) {
		print_table(context, &listed);
	} else if (ok && listed.damage.count == 0) {
		stderr_note("there are no checkpoints yet");
	}
	char text[CHECKPOINT_DAMAGE_MAX];
	const char *damage = checkpoint_damage_text(&listed.damage, text);
	if (ok && damage) {
		stderr_note("%s", damage);
	}
	listed_finish(&listed);
	return ok;
}

/* ---- show, diff ---- */

static bool print_diff(
	struct command_context *context, const git_oid *from, const git_oid *to, struct error *err)
{
	bool wants_stat = context->options->flags & OPTION_STAT;
	struct checkpoint_reader reader = {command_print, context};
	return checkpoint_diff(&context->store, from, to,
		wants_stat ? CHECKPOINT_STAT : CHECKPOINT_PATCH, &reader, err);
}

static void print_head(struct command_context *context, const struct checkpoint *checkpoint)
{
	char time[COMMAND_TIME_SIZE];
	char text[CHECKPOINT_REASON_MAX + CHECKPOINT_SESSION_MAX + 64];
	printf("checkpoint %u\nTime:    %s\n", checkpoint->number,
		command_time(time, checkpoint->time));
	text_format(text, sizeof(text), "Reason:  %s\n%s%s%s", checkpoint->reason,
		*checkpoint->session ? "Session: " : "", checkpoint->session,
		*checkpoint->session ? "\n" : "");
	command_print(context, span_of(text));
	putchar('\n');
}

/* The tree of the checkpoint before; the empty tree if this is the oldest one kept. */
static bool find_before(struct store *store, const struct checkpoint *checkpoint, git_oid *out_tree,
	struct error *err)
{
	struct checkpoint *list;
	struct checkpoint_damage damage;
	size_t count;
	if (!checkpoint_list(store, &list, &count, &damage, err)) {
		return false;
	}
	*out_tree = store_empty_tree;
	for (size_t i = 0; i < count && list[i].number < checkpoint->number; i++) {
		*out_tree = list[i].tree;
	}
	free(list);
	return true;
}

bool command_checkpoints_show(struct command_context *context, struct error *err)
{
	struct checkpoint checkpoint;
	git_oid before;
	if (!checkpoint_find(&context->store, context->options->words[0], &checkpoint, err) ||
		!find_before(&context->store, &checkpoint, &before, err)) {
		return false;
	}
	print_head(context, &checkpoint);
	return print_diff(context, &before, &checkpoint.tree, err);
}

/* Releases the lock before the diff is printed, because a pager may read it slowly. */
static bool find_now(struct command_context *context, git_oid *out_tree, struct error *err)
{
	bool ok = command_lock(context, err) && command_snapshot(context, out_tree, err);
	command_unlock(context);
	return ok;
}

bool command_checkpoints_diff(struct command_context *context, struct error *err)
{
	const struct options *options = context->options;
	struct checkpoint from;
	struct checkpoint to;
	if (!checkpoint_find(&context->store, options->words[0], &from, err)) {
		return false;
	}
	bool found = options->word_count == 2
	                     ? checkpoint_find(&context->store, options->words[1], &to, err)
	                     : find_now(context, &to.tree, err);
	return found && print_diff(context, &from.tree, &to.tree, err);
}
