/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "broker/cli/command.h"
#include "broker/cli/sandboxes.h"

enum { NAME_WIDTH = 28, STATE_WIDTH = 12, SIZES_WIDTH = 16 };

/* ---- as JSON ---- */

/* Unknown values are null. */
static void write_known(struct json_writer *writer, const char *key, const char *text)
{
	json_write_member(writer, key, *text ? text : NULL);
}

static void write_known_int(struct json_writer *writer, const char *key, int number)
{
	if (number > 0) {
		json_write_member_int(writer, key, number);
	} else {
		json_write_member(writer, key, NULL);
	}
}

static void write_entry(struct json_writer *writer, const struct sandbox_entry *entry)
{
	json_write_object(writer);
	json_write_member(writer, "name", entry->name);
	json_write_member(writer, "id", entry->id);
	json_write_member(writer, "backend", entry->found_by->backend);
	json_write_member(writer, "state", entry->state);
	json_write_member_bool(writer, "isInUse", entry->is_in_use);
	write_known(writer, "profile", entry->profile);
	json_write_member(writer, "foundBy", entry->found_by->name);
	write_known(writer, "workspace", entry->workspace);
	write_known(writer, "created", entry->created);
	write_known(writer, "problem", entry->why);
	write_known_int(writer, "cpu", entry->cpu);
	write_known_int(writer, "memoryGib", entry->memory_gib);
	write_known_int(writer, "diskGib", entry->disk_gib);
	json_write_member_words(writer, "uncollected", (const char *const *)entry->sessions);
	json_write_object_end(writer);
}

static void write_entries(struct json_writer *writer, const void *data)
{
	const struct sandbox_entries *entries = data;
	json_write_key(writer, "sandboxes");
	json_write_array(writer);
	for (size_t i = 0; i < entries->count; i++) {
		write_entry(writer, &entries->entries[i]);
	}
	json_write_array_end(writer);
	json_write_key(writer, "problems");
	json_write_array(writer);
	for (size_t i = 0; i < entries->problem_count; i++) {
		json_write_object(writer);
		json_write_member(writer, "profile", entries->problems[i].profile->name);
		json_write_member(writer, "error", entries->problems[i].err.text);
		json_write_object_end(writer);
	}
	json_write_array_end(writer);
}

bool sandboxes_print_json(const struct sandbox_entries *entries, struct error *err)
{
	return command_print_json(write_entries, entries, err);
}

/* ---- as text ---- */

static void print_column(struct command_context *context, const char *text, size_t width)
{
	size_t len = strlen(text);
	command_print(context, span_of(*text ? text : "-"));
	printf("%*s  ", (int)(len < width ? width - (len ? len : 1) : 0), "");
}

static void print_below(struct command_context *context, const char *label, const char *text)
{
	printf("%*s  %s", NAME_WIDTH, "", label);
	command_print(context, span_of(text));
	putchar('\n');
}

static void print_entry(struct command_context *context, const struct sandbox_entry *entry)
{
	char created[20];
	char size[48] = "";
	text_format(created, sizeof(created), "%.19s", entry->created);
	if (entry->cpu > 0) {
		text_format(size, sizeof(size), "%d/%d/%d", entry->cpu, entry->memory_gib,
			entry->disk_gib);
	}
	print_column(context, entry->name, NAME_WIDTH);
	print_column(context, entry->state, STATE_WIDTH);
	print_column(context, entry->is_in_use ? "running" : "", sizeof("running") - 1);
	print_column(context, created, sizeof(created) - 1);
	print_column(context, size, SIZES_WIDTH);
	print_column(context, entry->profile, 0);
	if (*entry->workspace) {
		command_print_path(entry->workspace);
	} else {
		putchar('-');
	}
	putchar('\n');
	if (*entry->why) {
		print_below(context, "", entry->why);
	}
	for (char **session = entry->sessions; session && *session; session++) {
		print_below(context, "not collected: session ", *session);
	}
}

void sandboxes_print(const struct options *options, const struct sandbox_entries *entries)
{
	struct command_context context = {
		.options = options, .is_terminal = isatty(STDOUT_FILENO) == 1, .lock_fd = -1};
	printf("%-*s  %-*s  %-7s  %-19s  %-*s  %s\n", NAME_WIDTH, "SANDBOX", STATE_WIDTH, "STATE",
		"BROKER", "CREATED (UTC)", SIZES_WIDTH, "VCPU/GIB/DISK", "PROFILE  WORKSPACE");
	for (size_t i = 0; i < entries->count; i++) {
		print_entry(&context, &entries->entries[i]);
	}
}
