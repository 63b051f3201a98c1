/* SPDX-License-Identifier: MIT */
#include "base/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/text.h"

enum {
	FREEZE_PASSES_MAX = 8,
	STAT_TEXT_MAX = 1024, // a stat line is some 300 bytes
	/* Fields of a stat line, counted from the state, which is the third. */
	FIELD_PARENT = 1,
	FIELD_GROUP = 2,
	FIELD_SESSION = 3,
	FIELD_THREADS = 17,
	FIELD_START = 19,
};

void tree_finish(struct tree *tree)
{
	free(tree->items);
	*tree = (struct tree){0};
}

/* The command's name may contain anything, even ')' and spaces: the last ')' ends it. */
static bool stat_parse(const char *text, struct tree_process *process)
{
	const char *at = strrchr(text, ')');
	if (!at || at[1] != ' ' || !at[2]) {
		return false;
	}
	process->state = at[2];
	char *cursor = (char *)at + 3;
	for (int field = FIELD_PARENT; field <= FIELD_START; field++) {
		char *end;
		long long value = strtoll(cursor, &end, 10);
		if (end == cursor) {
			return false;
		}
		cursor = end;
		if (field == FIELD_PARENT) {
			process->parent = (pid_t)value;
		} else if (field == FIELD_GROUP) {
			process->group = (pid_t)value;
		} else if (field == FIELD_SESSION) {
			process->session = (pid_t)value;
		} else if (field == FIELD_THREADS) {
			process->threads = (int)value;
		} else if (field == FIELD_START) {
			process->start_ticks = (unsigned long long)value;
		}
	}
	return true;
}

static bool stat_read(int proc_fd, const char *name, struct tree_process *process)
{
	char path[64];
	text_whole(path, sizeof(path), "%s/stat", name);
	ATTR_CLEANUP(fd_cleanup) int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return false; // the process has ended since the folder was read
	}
	char text[STAT_TEXT_MAX];
	ssize_t count = read(fd, text, sizeof(text) - 1);
	if (count <= 0) {
		return false;
	}
	text[count] = '\0';
	return stat_parse(text, process);
}

void tree_add(struct tree *tree, const struct tree_process *process)
{
	if (tree->count == tree->capacity) {
		tree->capacity = tree->capacity ? tree->capacity * 2 : 256;
		tree->items = mem_realloc(tree->items, tree->capacity * sizeof(*tree->items));
	}
	tree->items[tree->count++] = *process;
}

static int compare_pids(const void *a, const void *b)
{
	pid_t left = ((const struct tree_process *)a)->pid;
	pid_t right = ((const struct tree_process *)b)->pid;
	return (left > right) - (left < right);
}

bool tree_scan(struct tree *tree, struct error *err)
{
	tree->count = 0;
	DIR *proc = opendir("/proc");
	if (!proc) {
		int errnum = errno;
		return error_set_errno(err, errnum, "reading /proc");
	}
	struct dirent *entry;
	while ((entry = readdir(proc)) != NULL) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);
		struct tree_process process = {.pid = (pid_t)pid};
		if (pid > 0 && *end == '\0' && stat_read(dirfd(proc), entry->d_name, &process)) {
			tree_add(tree, &process);
		}
	}
	closedir(proc);
	if (tree->count > 0) {
		qsort(tree->items, tree->count, sizeof(*tree->items), compare_pids);
	}
	return true;
}

struct tree_process *tree_find(const struct tree *tree, pid_t pid)
{
	struct tree_process key = {.pid = pid};
	if (tree->count == 0) {
		return NULL;
	}
	return bsearch(&key, tree->items, tree->count, sizeof(*tree->items), compare_pids);
}

static bool is_gone(const struct tree_process *process)
{
	return (process->state == 'Z' && process->threads <= 1) || process->state == 'X';
}

static bool is_spared(pid_t pid, const pid_t *spared, size_t spared_count)
{
	for (size_t i = 0; i < spared_count; i++) {
		if (spared[i] == pid) {
			return true;
		}
	}
	return false;
}

/*
 * Parents usually have the smaller pid, so that one pass over ascending pids finds nearly
 * everything; after the pids have wrapped, it takes some more. A zombie has no children: they have
 * gone to their subreaper.
 */
size_t tree_mark_below(struct tree *tree, pid_t root, const pid_t *spared, size_t spared_count)
{
	size_t marked = 0;
	size_t marked_before;
	for (size_t i = 0; i < tree->count; i++) {
		struct tree_process *process = &tree->items[i];
		process->is_below = process->parent == root && !is_gone(process) &&
		                    !is_spared(process->pid, spared, spared_count);
		marked += process->is_below;
	}
	do {
		marked_before = marked;
		for (size_t i = 0; i < tree->count; i++) {
			struct tree_process *process = &tree->items[i];
			if (process->is_below || is_gone(process) || process->pid == root) {
				continue;
			}
			const struct tree_process *parent = tree_find(tree, process->parent);
			process->is_below = parent && parent->is_below;
			marked += process->is_below;
		}
	} while (marked > marked_before);
	return marked;
}

/* Signals the marked processes; a group that was signalled as a whole needs no second signal. */
static void signal_marked(const struct tree *tree, int signal)
{
	pid_t own_session = getsid(0);
	pid_t last_group = 0;
	for (size_t i = 0; i < tree->count; i++) {
		const struct tree_process *process = &tree->items[i];
		if (!process->is_below) {
			continue;
		}
		if (process->session == own_session || process->group <= 1) {
			kill(process->pid, signal);
		} else if (process->group != last_group) {
			kill(-process->group, signal);
			last_group = process->group;
		}
	}
}

static bool has_new(const struct tree *now, const struct tree *before)
{
	for (size_t i = 0; i < now->count; i++) {
		if (!now->items[i].is_below) {
			continue;
		}
		const struct tree_process *known = tree_find(before, now->items[i].pid);
		if (!known || !known->is_below) {
			return true;
		}
	}
	return false;
}

size_t tree_kill(pid_t root, const pid_t *spared, size_t spared_count)
{
	struct tree trees[2] = {{0}, {0}};
	size_t met = 0;
	for (int pass = 0; pass < FREEZE_PASSES_MAX; pass++) {
		struct tree *now = &trees[pass % 2];
		if (!tree_scan(now, NULL)) {
			break;
		}
		size_t count = tree_mark_below(now, root, spared, spared_count);
		met = count > met ? count : met;
		/*
		 * One scan proves nothing: a process whose parent ends meanwhile may be listed
		 * before it.
		 */
		bool is_frozen = pass > 0 && !has_new(now, &trees[(pass + 1) % 2]);
		if (is_frozen || pass == FREEZE_PASSES_MAX - 1) {
			signal_marked(now, SIGKILL);
			break;
		}
		signal_marked(now, SIGSTOP);
	}
	tree_finish(&trees[0]);
	tree_finish(&trees[1]);
	return met;
}

void tree_read_name(pid_t pid, char *name, size_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t count = fd < 0 ? -1 : read(fd, name, size - 1);
	name[count > 0 ? count : 0] = '\0';
	name[strcspn(name, "\n")] = '\0';
	for (char *at = name; *at; at++) {
		*at = *at < ' ' || *at > '~' ? '?' : *at; // the name may contain anything
	}
}

size_t tree_signal_children(int signal, const pid_t *spared, size_t spared_count)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[4096]; // further children come with the next call
	ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (count <= 0) {
		return 0;
	}
	text[count] = '\0';
	size_t met = 0;
	char *end;
	char *at = text;
	for (pid_t pid; (pid = (pid_t)strtol(at, &end, 10)) > 0 && *end == ' '; at = end) {
		if (!is_spared(pid, spared, spared_count)) {
			kill(pid, signal);
			met++;
		}
	}
	return met;
}
