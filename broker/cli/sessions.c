/* SPDX-License-Identifier: MIT */
#include "broker/cli/sessions.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "broker/ledger/plain_record.h"

enum { NAME_MIN = 4 }; // digits of an abbreviated name

struct loading {
	int folder_fd;
	struct session_entries *entries;
	bool is_plain;
	size_t ended; // plain records whose broker has ended
};

static void load(void *data, const char *id)
{
	struct loading *loading = data;
	struct session_entries *entries = loading->entries;
	struct session_entry entry = {.owner = {.pid_fd = -1}, .is_plain = loading->is_plain};
	memcpy(entry.id, id, RECORD_ID_SIZE);
	entry.is_readable = record_load(loading->folder_fd, id, &entry.record, &entry.problem);
	if (!entry.is_readable && entry.problem.code == ERROR_NOT_FOUND) {
		return; // somebody has removed it meanwhile
	}
	record_owner_find(loading->folder_fd, id, &entry.owner);
	if (entry.is_plain && !entry.owner.is_held) {
		loading->ended++;
		record_finish(&entry.record);
		record_owner_finish(&entry.owner);
		return;
	}
	entries->entries =
		mem_realloc(entries->entries, (entries->count + 1) * sizeof(*entries->entries));
	entries->entries[entries->count++] = entry;
}

/* Unreadable records come last. */
static int compare(const void *a, const void *b)
{
	const struct session_entry *x = a;
	const struct session_entry *y = b;
	if (x->is_readable != y->is_readable) {
		return x->is_readable ? -1 : 1;
	}
	int order = x->is_readable ? strcmp(y->record.updated, x->record.updated) : 0;
	return order != 0 ? order : strcmp(x->id, y->id);
}

static void sort(struct session_entries *entries)
{
	if (entries->count > 1) {
		qsort(entries->entries, entries->count, sizeof(*entries->entries), compare);
	}
}

bool sessions_load(int folder_fd, struct session_entries *out, struct error *err)
{
	struct session_entries entries = {NULL, 0};
	struct loading loading = {.folder_fd = folder_fd, .entries = &entries};
	if (!record_visit(folder_fd, load, &loading, err)) {
		sessions_finish(&entries);
		return false;
	}
	sort(&entries);
	*out = entries;
	return true;
}

bool sessions_add_plain(
	const char *state_folder, struct session_entries *entries, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup) int folder_fd = plain_folder_open(state_folder, err);
	struct loading loading = {.folder_fd = folder_fd, .entries = entries, .is_plain = true};
	if (folder_fd < 0 || !record_visit(folder_fd, load, &loading, err)) {
		return false;
	}
	sort(entries);
	struct error ignored; // the next command that looks removes them
	/*
	 * Sweeps only then, because a sweep writes, and `status --watch` looks again after each
	 * write.
	 */
	(void)!(loading.ended > 0 && plain_folder_sweep(folder_fd, &ignored));
	return true;
}

void sessions_finish(struct session_entries *entries)
{
	for (size_t i = 0; i < entries->count; i++) {
		record_finish(&entries->entries[i].record);
		record_owner_finish(&entries->entries[i].owner);
	}
	free(entries->entries);
	*entries = (struct session_entries){NULL, 0};
}

const char *sessions_state_text(const struct session_entry *entry)
{
	return entry->is_plain ? "plain" : record_state_name(entry->record.state);
}

bool sessions_is_collected(const struct record *record)
{
	return record->state == RECORD_STOPPED;
}

bool sessions_find(const struct session_entries *entries, const char *word,
	const struct session_entry **out_entry, struct error *err)
{
	size_t len = strlen(word);
	const struct session_entry *found = NULL;
	if (len < NAME_MIN || len >= RECORD_ID_SIZE || strspn(word, "0123456789abcdef") != len) {
		return error_set(err, ERROR_CONFIG,
			"expected the name of a session (16 digits 0-9a-f, or the first %d or more "
			"of them), got \"%s\": acp-broker sessions list prints the names",
			NAME_MIN, word);
	}
	for (size_t i = 0; i < entries->count; i++) {
		const struct session_entry *entry = &entries->entries[i];
		if (strncmp(entry->id, word, len) != 0) {
			continue;
		}
		if (found) {
			return error_set(err, ERROR_CONFIG,
				"several sessions begin with %s, %s and %s among them: give more "
				"digits",
				word, found->id, entry->id);
		}
		found = entry;
	}
	if (!found) {
		return error_set(err, ERROR_NOT_FOUND,
			"there is no session %s: acp-broker sessions list prints all sessions",
			word);
	}
	*out_entry = found;
	return true;
}
