/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/settings.h"
#include "base/text.h"
#include "broker/cli/command.h"
#include "broker/cli/sessions.h"
#include "broker/cli/stderr_line.h"

/* A member of a record, for programs and for people. */
struct saying {
	const char *key, *label;
	const char *text; // NULL: nothing to show
};

enum { SAYINGS = 13, SAYING_REFERENCE = 8 };

static void read_sayings(const struct record *record, struct saying out[SAYINGS])
{
	const struct saying all[SAYINGS] = {
		{"state", "state", record_state_name(record->state)},
		{"profile", "profile", record->profile},
		{"backend", "backend", record->backend},
		{"agent", "agent", record->agent},
		{"sync", "sync", record->sync},
		{"persistence", "persistence", record->persistence},
		{"localRoot", "workspace", record->local_root},
		{"runtimeRoot", "sandbox", record->runtime_root},
		[SAYING_REFERENCE] = {"reference", "reference", record->reference},
		{"created", "created", record->created},
		{"updated", "updated", record->updated},
		{"collected", "collected", *record->receipt.time ? record->receipt.time : NULL},
		{"error", "error", record->error},
	};
	memcpy(out, all, sizeof(all));
}

/* ---- as JSON ---- */

static void write_record(struct json_writer *writer, const struct session_entry *entry)
{
	const struct record *record = &entry->record;
	struct saying sayings[SAYINGS];
	read_sayings(record, sayings);
	for (size_t i = 0; i < SAYINGS; i++) {
		json_write_member(writer, sayings[i].key, sayings[i].text);
	}
	json_write_key(writer, "sessions");
	json_write_array(writer);
	for (size_t i = 0; i < record->session_count; i++) {
		json_write_text(writer, record->sessions[i]);
	}
	json_write_array_end(writer);
	json_write_member_int(writer, "conflicts", (long long)record->receipt.conflicts);
}

static void write_members(struct json_writer *writer, const void *data)
{
	const struct session_entry *entry = data;
	json_write_member(writer, "id", entry->id);
	json_write_member_bool(writer, "isReadable", entry->is_readable);
	json_write_member_bool(writer, "isPlain", entry->is_plain);
	json_write_member_bool(writer, "isHeld", entry->owner.is_held);
	json_write_key(writer, "process");
	if (entry->owner.pid != 0) {
		json_write_int(writer, entry->owner.pid);
	} else {
		json_write_null(writer);
	}
	if (entry->is_readable) {
		write_record(writer, entry);
	} else {
		json_write_member(writer, "problem", entry->problem.text);
	}
}

static void write_list(struct json_writer *writer, const void *data)
{
	const struct session_entries *entries = data;
	json_write_key(writer, "sessions");
	json_write_array(writer);
	for (size_t i = 0; i < entries->count; i++) {
		json_write_object(writer);
		write_members(writer, &entries->entries[i]);
		json_write_object_end(writer);
	}
	json_write_array_end(writer);
}

/* ---- as text ---- */

/* Which broker has it, and what that means. */
static const char *who_text(const struct session_entry *entry, char *text, size_t size)
{
	const struct record_owner *owner = &entry->owner;
	if (owner->pid != 0) {
		text_format(
			text, size, "%s%d", owner->is_session ? "" : "finishing ", (int)owner->pid);
	} else if (owner->is_held) {
		snprintf(text, size, "running");
	} else {
		text_format(
			text, size, "%s", sessions_is_collected(&entry->record) ? "ended" : "gone");
	}
	return text;
}

static void print_text(struct command_context *context, const char *text)
{
	command_print(context, span_of(text));
}

/* With copy-per = session, several entries may differ only in this. */
static void print_own_copy(struct command_context *context, const struct record *record)
{
	bool is_own = record->reference && record->runtime_root &&
	              strstr(record->runtime_root, record->reference);
	if (!is_own) {
		return;
	}
	printf("%16s  ", "");
	for (size_t i = 0; i < record->session_count; i++) {
		print_text(context, record->sessions[i]);
		putchar(' ');
	}
	print_text(context, "in ");
	command_print_path(record->runtime_root);
	putchar('\n');
}

static void print_entry(struct command_context *context, const struct session_entry *entry)
{
	const struct record *record = &entry->record;
	char who[32];
	if (!entry->is_readable) {
		printf("%s  ", entry->id);
		print_text(context, "cannot be read: ");
		print_text(context, entry->problem.text);
		print_text(context, "; it is not changed\n");
		return;
	}
	printf("%s  %-10s  %-15s  %.19s  ", entry->id, sessions_state_text(entry),
		who_text(entry, who, sizeof(who)), record->updated);
	print_text(context, record->profile);
	print_text(context, "  ");
	print_text(context, record->agent ? record->agent : "-");
	print_text(context, "  ");
	command_print_path(record->local_root);
	putchar('\n');
	print_own_copy(context, record);
	if (record->error && record->state != RECORD_STOPPED) {
		printf("%16s  ", "");
		print_text(context, record->error);
		putchar('\n');
	}
}

static void print_list(struct command_context *context, const struct session_entries *entries)
{
	printf("%-16s  %-10s  %-15s  %-19s  %s\n", "SESSION", "STATE", "BROKER", "UPDATED (UTC)",
		"PROFILE  AGENT  WORKSPACE");
	for (size_t i = 0; i < entries->count; i++) {
		print_entry(context, &entries->entries[i]);
	}
}

static void print_line(struct command_context *context, const char *label, const char *text)
{
	printf("%-12s ", label);
	print_text(context, text);
	putchar('\n');
}

static void print_show(struct command_context *context, const struct session_entry *entry)
{
	const struct record *record = &entry->record;
	char text[64];
	print_line(context, "session", entry->id);
	if (!entry->is_readable) {
		print_line(context, "problem", entry->problem.text);
		return;
	}
	struct saying sayings[SAYINGS];
	print_line(context, "broker", who_text(entry, text, sizeof(text)));
	if (entry->is_plain) {
		print_line(context, "works in", "the workspace itself: nothing to collect");
	}
	read_sayings(record, sayings);
	for (size_t i = 0; i < SAYINGS; i++) {
		const char *said = sayings[i].text;
		if (said || i != SAYING_REFERENCE) { // which only some providers have
			print_line(context, sayings[i].label, said ? said : "-");
		}
	}
	snprintf(text, sizeof(text), "%zu", record->receipt.conflicts);
	print_line(context, "conflicts", text);
	for (size_t i = 0; i < record->session_count; i++) {
		print_line(context, "acp session", record->sessions[i]);
	}
}

/* ---- the commands ---- */

/*
 * list and show load all records. prune leaves out the plain ones, because their brokers remove
 * those.
 */
static bool load_all(const struct options *options, const char *state_folder, int folder_fd,
	struct session_entries *out, struct error *err)
{
	if (!sessions_load(folder_fd, out, err)) {
		return false;
	}
	if (options->command != COMMAND_SESSIONS_PRUNE &&
		!sessions_add_plain(state_folder, out, err)) {
		sessions_finish(out);
		return false;
	}
	return true;
}

static bool list(struct command_context *context, const struct session_entries *entries,
	int folder_fd, struct error *err)
{
	if (context->options->flags & OPTION_JSON) {
		return command_print_json(write_list, entries, err);
	}
	if (entries->count > 0) {
		print_list(context, entries);
	} else {
		stderr_note("there are no sessions");
	}
	return true;
}

static bool show(struct command_context *context, const struct session_entries *entries,
	int folder_fd, struct error *err)
{
	const struct session_entry *entry;
	if (!sessions_find(entries, context->options->words[0], &entry, err)) {
		return false;
	}
	if (context->options->flags & OPTION_JSON) {
		return command_print_json(write_members, entry, err);
	}
	print_show(context, entry);
	return true;
}

/* ---- prune ---- */

static const struct setting_key age_key = {
	.name = "age", .type = SETTING_DURATION, .fallback = "168h", .max = 1LL << 42};

static bool read_age(const struct options *options, long long *out_ms, struct error *err)
{
	struct settings settings;
	const char *word = options->word_count > 0 ? options->words[0] : age_key.fallback;
	if (!setting_check(&age_key, word, err)) {
		return error_prefix(err, "sessions prune: the age of records to remove");
	}
	settings_init(&settings);
	settings_add(&settings, age_key.name, word, "command line");
	*out_ms = settings_number(&settings, &age_key);
	settings_finish(&settings);
	return true;
}

/* The time of "2026-01-31T12:00:00.000Z"; -1 for any other text. */
static time_t time_of(const char *text)
{
	struct tm utc = {0};
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &utc);
	return end ? timegm(&utc) : -1;
}

static bool may_prune(const struct session_entry *entry, long long age_ms)
{
	if (!entry->is_readable || entry->owner.is_held || !sessions_is_collected(&entry->record)) {
		return false;
	}
	time_t updated = time_of(entry->record.updated);
	return updated >= 0 && (long long)(time(NULL) - updated) >= age_ms / 1000;
}

bool sessions_remove(int folder_fd, const char *id, bool *out_removed, struct error *err)
{
	struct record record;
	struct error ignored;
	ATTR_CLEANUP(fd_cleanup) int lock_fd = record_lock(folder_fd, id, &ignored);
	*out_removed = false;
	if (lock_fd < 0 || !record_load(folder_fd, id, &record, &ignored)) {
		return true; // a broker has it by now
	}
	*out_removed = sessions_is_collected(&record);
	record_finish(&record);
	return !*out_removed || record_remove(folder_fd, id, err);
}

static bool prune(struct command_context *context, const struct session_entries *entries,
	int folder_fd, struct error *err)
{
	long long age_ms = 0;
	size_t count = 0;
	if (!read_age(context->options, &age_ms, err)) {
		return false;
	}
	for (size_t i = 0; i < entries->count; i++) {
		bool is_removed = false;
		if (may_prune(&entries->entries[i], age_ms) &&
			!sessions_remove(folder_fd, entries->entries[i].id, &is_removed, err)) {
			return false;
		}
		count += is_removed;
	}
	printf("removed %zu of %zu records\n", count, entries->count);
	return true;
}

static const struct {
	enum command command;
	bool (*run)(struct command_context *context, const struct session_entries *entries,
		int folder_fd, struct error *err);
} looks[] = {
	{COMMAND_SESSIONS_LIST, list},
	{COMMAND_SESSIONS_SHOW, show},
	{COMMAND_SESSIONS_PRUNE, prune},
};

bool sessions_look(const struct options *options, const char *state_folder, struct error *err)
{
	struct session_entries entries;
	struct command_context context = {
		.options = options, .is_terminal = isatty(STDOUT_FILENO) == 1, .lock_fd = -1};
	ATTR_CLEANUP(fd_cleanup)
	int folder_fd = record_folder_open(state_folder ? state_folder : "", err);
	if (folder_fd < 0 || !load_all(options, state_folder, folder_fd, &entries, err)) {
		return false;
	}
	bool ok = false;
	for (size_t i = 0; i < ARRAY_LENGTH(looks); i++) {
		if (looks[i].command == options->command) {
			ok = looks[i].run(&context, &entries, folder_fd, err);
		}
	}
	sessions_finish(&entries);
	return ok;
}
