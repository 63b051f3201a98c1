/* SPDX-License-Identifier: MIT */
#include "broker/cli/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path_quote.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "broker/cli/command.h"
#include "broker/cli/stderr_line.h"

struct status {
	const struct session_entries *entries;
	int folder_fd;
};

static const char *const turn_words[] = {
	[TURN_IDLE] = "idle", [TURN_OPEN] = "open", [TURN_UNKNOWN] = "unknown"};

struct status_view status_view_of(int folder_fd, const struct session_entry *entry)
{
	struct status_view view = {.entry = entry, .turn = TURN_IDLE};
	if (entry->is_plain) {
		view.turn = TURN_UNKNOWN; // not recorded, because such a workspace has no rollback
	} else if (entry->owner.is_held) {
		view.turn = turn_lock_look(folder_fd, entry->id, &entry->owner, view.in_flight);
	}
	return view;
}

/* When the process took the session; "" if unknown. */
static const char *since_text(const struct status_view *view, char text[TIMESTAMP_SIZE])
{
	long long ms = view->entry->owner.noted_ms;
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	text[0] = '\0';
	return ms > 0 ? timestamp_text(text, &time) : text;
}

/* ---- as JSON ---- */

static void write_pid(struct json_writer *writer, const struct session_entry *entry)
{
	json_write_key(writer, "process");
	if (entry->owner.pid != 0) {
		json_write_int(writer, entry->owner.pid);
	} else {
		json_write_null(writer);
	}
}

static void write_record(struct json_writer *writer, const struct session_entry *entry)
{
	const struct record *record = &entry->record; // all NULL if it is unreadable
	json_write_member(
		writer, "state", entry->is_readable ? record_state_name(record->state) : NULL);
	json_write_member(writer, "profile", record->profile);
	json_write_member(writer, "backend", record->backend);
	json_write_member(writer, "agent", record->agent);
	json_write_member(writer, "localRoot", record->local_root);
	json_write_member(writer, "runtimeRoot", record->runtime_root);
	json_write_member(writer, "reference", record->reference);
	json_write_member(writer, "persistence", record->persistence);
	json_write_key(writer, "sessions");
	json_write_array(writer);
	for (size_t i = 0; i < record->session_count; i++) {
		json_write_text(writer, record->sessions[i]);
	}
	json_write_array_end(writer);
}

void status_write(struct json_writer *writer, const struct status_view *view)
{
	const struct session_entry *entry = view->entry;
	char since[TIMESTAMP_SIZE];
	json_write_object(writer);
	json_write_member(writer, "id", entry->id);
	json_write_member_bool(writer, "isPlain", entry->is_plain);
	write_pid(writer, entry);
	json_write_member_bool(writer, "isHeld", entry->owner.is_held);
	json_write_member_bool(
		writer, "isFinishing", entry->owner.pid != 0 && !entry->owner.is_session);
	json_write_member(writer, "since", *since_text(view, since) ? since : NULL);
	json_write_member(writer, "turn", turn_words[view->turn]);
	json_write_member(writer, "inFlight", *view->in_flight ? view->in_flight : NULL);
	json_write_member(writer, "problem", entry->is_readable ? NULL : entry->problem.text);
	write_record(writer, entry);
	json_write_object_end(writer);
}

/* A process that is not visible from here may have several sessions; each is shown alone. */
static bool is_same_broker(const struct session_entry *a, const struct session_entry *b)
{
	return a == b || (a->owner.is_held && a->owner.pid != 0 && a->owner.pid == b->owner.pid);
}

static bool is_first(const struct session_entries *entries, size_t index)
{
	for (size_t i = 0; i < index; i++) {
		if (is_same_broker(&entries->entries[i], &entries->entries[index])) {
			return false;
		}
	}
	return entries->entries[index].owner.is_held;
}

static void write_broker(
	struct json_writer *writer, const struct status *status, const struct session_entry *first)
{
	json_write_object(writer);
	write_pid(writer, first);
	json_write_key(writer, "sessions");
	json_write_array(writer);
	for (size_t i = 0; i < status->entries->count; i++) {
		const struct session_entry *entry = &status->entries->entries[i];
		if (is_same_broker(entry, first)) {
			struct status_view view = status_view_of(status->folder_fd, entry);
			status_write(writer, &view);
		}
	}
	json_write_array_end(writer);
	json_write_object_end(writer);
}

static void write_brokers(struct json_writer *writer, const void *data)
{
	const struct status *status = data;
	json_write_key(writer, "brokers");
	json_write_array(writer);
	for (size_t i = 0; i < status->entries->count; i++) {
		if (is_first(status->entries, i)) {
			write_broker(writer, status, &status->entries->entries[i]);
		}
	}
	json_write_array_end(writer);
}

/* ---- as text ---- */

static const char *state_text(const struct session_entry *entry)
{
	if (!entry->is_readable) {
		return "unreadable";
	}
	bool is_finishing = entry->owner.pid != 0 && !entry->owner.is_session;
	return is_finishing ? "finishing" : sessions_state_text(entry);
}

/* Prints others' text on one line, without control characters. */
static void print_quoted(const char *text)
{
	char *quoted = path_quote(span_of(text));
	fputs(quoted, stdout);
	free(quoted);
}

void status_print(const struct status_view *view)
{
	const struct session_entry *entry = view->entry;
	const struct record *record = &entry->record;
	char since[TIMESTAMP_SIZE];
	char pid[16] = "-";
	if (entry->owner.pid != 0) {
		text_format(pid, sizeof(pid), "%d", (int)entry->owner.pid);
	}
	printf("%-8s %s  %-10s  %-7s  %-19.19s  ", pid, entry->id, state_text(entry),
		turn_words[view->turn], *since_text(view, since) ? since : "-");
	if (!entry->is_readable) {
		print_quoted(entry->problem.text);
		return;
	}
	print_quoted(record->profile);
	fputs("  ", stdout);
	print_quoted(record->backend);
	fputs("  ", stdout);
	print_quoted(record->agent ? record->agent : "-");
	fputs("  ", stdout);
	command_print_path(record->local_root);
	if (record->reference) {
		printf("  %s", record->reference);
	}
	if (*view->in_flight) {
		fputs("  ", stdout);
		print_quoted(view->in_flight);
	}
}

static void print_all(const struct status *status)
{
	size_t count = 0;
	for (size_t i = 0; i < status->entries->count; i++) {
		const struct session_entry *entry = &status->entries->entries[i];
		if (!entry->owner.is_held) {
			continue;
		}
		if (count++ == 0) {
			printf("%-8s %-16s  %-10s  %-7s  %-19s  %s\n", "BROKER", "SESSION", "STATE",
				"TURN", "SINCE (UTC)", "PROFILE  BACKEND  AGENT  WORKSPACE");
		}
		struct status_view view = status_view_of(status->folder_fd, entry);
		status_print(&view);
		putchar('\n');
	}
	if (count == 0) {
		stderr_note("no broker of this user has a session open");
	}
}

/* ---- the command ---- */

bool status_load(
	int folder_fd, const char *state_folder, struct session_entries *out, struct error *err)
{
	if (!sessions_load(folder_fd, out, err)) {
		return false;
	}
	if (!sessions_add_plain(state_folder, out, err)) {
		sessions_finish(out);
		return false;
	}
	return true;
}

static bool look(int folder_fd, const char *state_folder, bool is_json, struct error *err)
{
	struct session_entries entries;
	if (!status_load(folder_fd, state_folder, &entries, err)) {
		return false;
	}
	struct status status = {&entries, folder_fd};
	bool ok = true;
	if (is_json) {
		ok = command_print_json(write_brokers, &status, err);
	} else {
		print_all(&status);
	}
	sessions_finish(&entries);
	return ok;
}

bool status_run(const struct options *options, const char *state_folder, struct error *err)
{
	bool is_json = options->flags & OPTION_JSON;
	ATTR_CLEANUP(fd_cleanup)
	int folder_fd = record_folder_open(state_folder ? state_folder : "", err);
	if (folder_fd < 0) {
		return false;
	}
	return options->flags & OPTION_WATCH ? status_watch(folder_fd, state_folder, is_json, err)
	                                     : look(folder_fd, state_folder, is_json, err);
}
