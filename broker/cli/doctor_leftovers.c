/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "acp/failure.h"
#include "base/fd.h"
#include "base/guard.h"
#include "base/text.h"
#include "base/tree.h"
#include "base/words.h"
#include "broker/cli/doctor_parts.h"
#include "broker/ledger/holdings.h"
#include "broker/ledger/state_folder.h"

/* What dead brokers left: edits in the state folder, and processes. */
enum { NAMED_MAX = 3, ENVIRONMENT_MAX = 128 * 1024 };

struct leftovers {
	size_t count;
	char names[512]; // of the first ones
};

static void add(struct leftovers *leftovers, const char *kind, const char *name)
{
	if (leftovers->count++ < NAMED_MAX) {
		text_append(leftovers->names, sizeof(leftovers->names), "%s%s %s",
			leftovers->count > 1 ? ", " : "", kind, name);
	}
}

static void tell(struct doctor_look *look, const struct leftovers *leftovers, const char *code,
	const char *what)
{
	struct error err;
	if (leftovers->count == 0) {
		return;
	}
	error_set(&err, ERROR_UNAVAILABLE, "dead brokers have left %zu %s: %s%s", leftovers->count,
		what, leftovers->names, leftovers->count > NAMED_MAX ? ", …" : "");
	doctor_look_warn(look, DOCTOR_LEFTOVERS, code, &err);
}

/* ---- edits ---- */

/* Nobody knows to which sandbox such a record belongs, so nothing may be removed. */
static void tell_unreadable(struct doctor_look *look, const struct holding *holding)
{
	struct error err;
	error_set(&err, ERROR_UNAVAILABLE, "the record of session %s: %s (%s)", holding->record,
		holding->why, holding->path);
	doctor_look_warn(look, DOCTOR_LEFTOVERS, "RECORD_UNREADABLE", &err);
}

static bool find_edits(
	struct doctor_look *look, struct leftovers *leftovers, size_t *out_unreadable)
{
	struct error err;
	struct holdings holdings;
	if (!holdings_find(&holdings, look->state_folder, false, &err)) {
		doctor_look_fail(look, DOCTOR_LEFTOVERS, failure_code_of(&err), &err);
		return false;
	}
	for (size_t i = 0; i < holdings.count; i++) {
		const struct holding *holding = &holdings.list[i];
		bool is_unreadable = holding->kind == HOLDING_RECORD && !holding->workspace;
		*out_unreadable += is_unreadable;
		if (is_unreadable && *out_unreadable <= NAMED_MAX) {
			tell_unreadable(look, holding);
		} else if (holding->state == HOLDING_UNCOLLECTED) {
			add(leftovers, holding_kind_name(holding->kind),
				*holding->record ? holding->record : holding->path);
		}
	}
	holdings_finish(&holdings);
	return true;
}

/* ---- processes ---- */

static char **environment_of(int proc_fd)
{
	char **words = NULL;
	char *text = mem_alloc(ENVIRONMENT_MAX);
	ATTR_CLEANUP(fd_cleanup) int fd = openat(proc_fd, "environ", O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t count = 1;
	while (fd >= 0 && count > 0 && len + 1 < ENVIRONMENT_MAX) {
		count = read(fd, text + len, ENVIRONMENT_MAX - 1 - len);
		len += count > 0 ? (size_t)count : 0;
	}
	text[len] = '\0';
	for (size_t at = 0; at < len; at += strlen(text + at) + 1) {
		words_append(&words, text + at);
	}
	memset(text, 0, ENVIRONMENT_MAX); // it may contain secrets
	free(text);
	return words;
}

/* Whether the broker that forked it keeps its records in our state folder. */
static bool is_of_this_state(pid_t pid, const char *state_folder)
{
	char path[64];
	struct stat status;
	text_whole(path, sizeof(path), "/proc/%d", (int)pid);
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status) != 0 || status.st_uid != geteuid()) {
		return false;
	}
	char **environment = environment_of(fd);
	char *folder = environment ? state_folder_name((const char *const *)environment) : NULL;
	bool is_same = folder && strcmp(folder, state_folder) == 0;
	free(folder);
	words_wipe_free(environment);
	return is_same;
}

/* The topmost process of a dead broker: it cleans up after the broker, and should have ended. */
static bool is_orphan(const struct tree_process *process)
{
	char name[32], above[32];
	tree_read_name(process->pid, name, sizeof(name));
	if (strcmp(name, GUARD_NAME) != 0) {
		return false;
	}
	tree_read_name(process->parent, above, sizeof(above));
	return strcmp(above, GUARD_NAME) != 0 && strncmp(above, "acp-broker", 10) != 0;
}

static void find_processes(const struct doctor_look *look, struct leftovers *leftovers)
{
	char number[32];
	struct tree tree = {0};
	struct error ignored; // without /proc it finds nothing
	bool is_read = tree_scan(&tree, &ignored);
	for (size_t i = 0; is_read && i < tree.count; i++) {
		const struct tree_process *process = &tree.items[i];
		if (is_orphan(process) && is_of_this_state(process->pid, look->state_folder)) {
			text_whole(number, sizeof(number), "%d", (int)process->pid);
			add(leftovers, "process", number);
		}
	}
	tree_finish(&tree);
}

void doctor_look_for_leftovers(struct doctor_look *look)
{
	struct leftovers edits = {.count = 0};
	struct leftovers processes = {.count = 0};
	size_t unreadable = 0;
	if (!find_edits(look, &edits, &unreadable)) {
		return;
	}
	find_processes(look, &processes);
	tell(look, &edits, "LEFTOVERS", "sessions with edits that are not in their workspaces");
	tell(look, &processes, "ORPHANS", "processes that have not ended");
	if (edits.count + processes.count + unreadable == 0) {
		doctor_report_ok(
			&look->report, DOCTOR_LEFTOVERS, "dead brokers have left nothing behind");
	}
}
