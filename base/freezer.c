/* SPDX-License-Identifier: MIT */
#include "base/freezer.h"

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
	ROUND_MS = 2,
	SLOW_ROUND_MS = 20,
	FAST_ROUNDS = 20,
	GROWTHS_MAX = 6,   // above this, also chase processes that fork all the time, and stop
	                   // children even if a running parent notices
	CHASE_TURNS = 500, // some 5 ms together
};

void freezer_finish(struct freezer *freezer)
{
	tree_finish(&freezer->looks[0]);
	tree_finish(&freezer->looks[1]);
	tree_finish(&freezer->before);
	struct freeze_group group = freezer->group;
	*freezer = (struct freezer){.group = group};
}

void freezer_close(struct freezer *freezer)
{
	freezer_finish(freezer);
	freeze_group_close(&freezer->group);
}

/* The processes in the cgroup stay there, and are stopped by signals like the others. */
static void turn_to_signals(struct freezer *freezer, const struct error *why)
{
	freeze_group_thaw(&freezer->group);
	tree_finish(&freezer->looks[0]);
	tree_finish(&freezer->looks[1]);
	freezer->is_by_signals = true;
	text_format(freezer->why_signals, sizeof(freezer->why_signals), "%s", why->text);
	freezer->rounds = 0;
	freezer->growths = 0;
	freezer->is_quiet = false;
	freezer->until_ms = clock_now_ms() + FREEZE_MAX_MS - FREEZE_GROUP_MAX_MS;
}

void freezer_start(struct freezer *freezer)
{
	if (freezer->state == FREEZER_OFF || freezer->state == FREEZER_FAILED) {
		freezer_finish(freezer);
		freezer->state = FREEZER_STOPPING;
		freezer->until_ms = clock_now_ms() + FREEZE_GROUP_MAX_MS;
		struct error err;
		if (!freeze_group_open(&freezer->group, &err) ||
			!freeze_group_set(&freezer->group, true, &err)) {
			turn_to_signals(freezer, &err);
		}
	}
}

void freezer_note_end(struct freezer *freezer)
{
	freezer->has_changed = true;
}

/* ---- which processes still run ---- */

static bool is_same(const struct tree *tree, const struct tree_process *process)
{
	const struct tree_process *known = tree_find(tree, process->pid);
	return known && known->start_ticks == process->start_ticks;
}

static bool is_still_state(char state)
{
	return state == 'T' || state == 't' || state == 'Z' || state == 'X';
}

/* The first thread has ended, and others may run: only their own stat files show that. */
static bool threads_are_still(pid_t pid)
{
	char path[64];
	bool is_still = true;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *folder = opendir(path);
	struct dirent *entry;
	while (folder && (entry = readdir(folder)) != NULL) {
		char text[512] = "";
		text_whole(path, sizeof(path), "%s/stat", entry->d_name);
		ATTR_CLEANUP(fd_cleanup)
		int fd = openat(dirfd(folder), path, O_RDONLY | O_CLOEXEC);
		ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
		const char *at = count > 0 ? strrchr(text, ')') : NULL;
		is_still = is_still && (!at || is_still_state(at[2]));
	}
	if (folder) {
		closedir(folder);
	}
	return is_still;
}

/*
 * Whether the process runs no more code of its program. A process that sleeps in the kernel ('D'),
 * like the parent of a vfork, receives the signal before it returns from there.
 */
static bool is_still(const struct tree_process *process, const struct tree *last)
{
	if (process->state == 'Z') {
		return threads_are_still(process->pid);
	}
	return is_still_state(process->state) || (process->state == 'D' && is_same(last, process));
}

/*
 * Zombies count too: if one came and went between two scans, a running process must have started
 * it.
 */
static bool is_member(const struct tree *tree, const struct tree_process *process)
{
	if (process->is_below || process->parent == getpid()) {
		return true;
	}
	const struct tree_process *parent = tree_find(tree, process->parent);
	return parent && parent->is_below;
}

static bool has_news(const struct tree *now, const struct tree *last)
{
	for (size_t i = 0; i < now->count; i++) {
		if (is_member(now, &now->items[i]) && !is_same(last, &now->items[i])) {
			return true;
		}
	}
	return false;
}

static void note_stopped(struct freezer *freezer, const struct tree *now)
{
	for (size_t i = 0; i < now->count; i++) {
		if (now->items[i].is_below && now->items[i].state == 'T') {
			tree_add(&freezer->before, &now->items[i]);
		}
	}
}

/* ---- rounds ---- */

/* A running shell notices when its child is stopped, so parents are stopped first. */
static bool is_early(const struct tree *now, const struct tree *last, pid_t parent)
{
	const struct tree_process *process = tree_find(now, parent);
	return process && process->is_below && !is_still(process, last);
}

static bool stop_runners(struct freezer *freezer, const struct tree *now, const struct tree *last)
{
	bool has_runner = false;
	for (size_t i = 0; i < now->count; i++) {
		const struct tree_process *process = &now->items[i];
		if (!process->is_below || is_still(process, last)) {
			continue;
		}
		has_runner = true;
		if (freezer->growths <= GROWTHS_MAX && is_early(now, last, process->parent)) {
			continue;
		}
		if (kill(process->pid, SIGSTOP) != 0 && errno != ESRCH) {
			int errnum = errno;
			error_set_errno(
				&freezer->err, errnum, "stopping process %d", (int)process->pid);
		}
	}
	return has_runner;
}

/*
 * A program that forks and ends all the time becomes our child again and again, with another pid at
 * each scan.
 */
static void chase(const struct killer_ground *ground)
{
	for (int i = 0; i < CHASE_TURNS && ground->reap(ground->data); i++) {
		tree_signal_children(SIGSTOP, NULL, 0);
	}
}

static void fail(struct freezer *freezer)
{
	struct error err = freezer->err;
	freezer_thaw(freezer);
	freezer->state = FREEZER_FAILED;
	freezer->err = err;
	if (err.code == ERROR_NONE) {
		error_set(&freezer->err, ERROR_TIMEOUT,
			"processes start others faster than they can be stopped");
	}
}

/*
 * Done if two scans found no process outside of the group, none came or went between them (a new
 * one would have been started outside), and the kernel says that all processes inside are frozen.
 */
static void make_group_round(struct freezer *freezer)
{
	struct error err;
	size_t taken = 0;
	struct tree *now = &freezer->looks[freezer->rounds % 2];
	const struct tree *last = &freezer->looks[(freezer->rounds + 1) % 2];
	bool has_ended = freezer->has_changed;
	freezer->has_changed = false;
	bool is_fine = tree_scan(now, &err);
	if (is_fine) {
		tree_mark_below(now, getpid(), NULL, 0);
		is_fine = freeze_group_take(&freezer->group, now, &taken, &err);
	}
	bool has_grown = is_fine && has_news(now, last);
	freezer->growths += freezer->rounds > 0 && has_grown && taken == 0 ? 1 : 0;
	freezer->rounds++;
	bool was_quiet = freezer->is_quiet;
	freezer->is_quiet = is_fine && taken == 0 && freeze_group_is_frozen(&freezer->group);
	if (freezer->is_quiet && was_quiet && !has_ended && !has_grown) {
		freezer->state = FREEZER_FROZEN;
	} else if (is_fine && freezer->growths > GROWTHS_MAX) {
		is_fine = error_set(&err, ERROR_TIMEOUT,
			"processes start others faster than they can be moved to a cgroup");
	} else if (is_fine && clock_now_ms() >= freezer->until_ms) {
		is_fine = error_set(&err, ERROR_TIMEOUT, "the cgroup %s was not frozen in time",
			freezer->group.name);
	}
	if (!is_fine) {
		turn_to_signals(freezer, &err);
	}
}

static void make_round(struct freezer *freezer, const struct killer_ground *ground)
{
	if (!freezer->is_by_signals) {
		make_group_round(freezer);
		return;
	}
	struct tree *now = &freezer->looks[freezer->rounds % 2];
	const struct tree *last = &freezer->looks[(freezer->rounds + 1) % 2];
	bool has_ended = freezer->has_changed;
	freezer->has_changed = false;
	freezer->err = (struct error){0};
	if (!tree_scan(now, &freezer->err)) {
		fail(freezer);
		return;
	}
	tree_mark_below(now, getpid(), NULL, 0);
	if (freezer->rounds == 0) {
		note_stopped(freezer, now);
	}
	bool has_grown = has_news(now, last);
	freezer->growths += freezer->rounds > 0 && has_grown ? 1 : 0;
	freezer->rounds++;
	bool was_quiet = freezer->is_quiet;
	freezer->is_quiet = !stop_runners(freezer, now, last);
	if (freezer->is_quiet && was_quiet && !has_ended && !has_grown) {
		freezer->state = FREEZER_FROZEN;
	} else if (clock_now_ms() >= freezer->until_ms) {
		fail(freezer);
	} else if (freezer->growths > GROWTHS_MAX) {
		chase(ground);
	}
}

int freezer_step(struct freezer *freezer, const struct killer_ground *ground)
{
	if (freezer->state != FREEZER_STOPPING) {
		return -1;
	}
	if (clock_now_ms() >= freezer->next_ms) {
		make_round(freezer, ground);
		freezer->next_ms =
			clock_now_ms() + (freezer->rounds < FAST_ROUNDS ? ROUND_MS : SLOW_ROUND_MS);
	}
	long long sleep_ms = freezer->next_ms - clock_now_ms();
	return freezer->state != FREEZER_STOPPING ? -1 : sleep_ms > 0 ? (int)sleep_ms : 0;
}

/* ---- continuing ---- */

static int depth_of(const struct tree *tree, const struct tree_process *process)
{
	int depth = 0;
	while (process && process->is_below && depth < (int)tree->count) {
		process = tree_find(tree, process->parent);
		depth++;
	}
	return depth;
}

struct rank {
	pid_t pid;
	int depth;
};

static int compare_deepest(const void *a, const void *b)
{
	return ((const struct rank *)b)->depth - ((const struct rank *)a)->depth;
}

static void let_go_on(const struct tree *tree, const struct tree *before)
{
	struct rank *ranks = mem_alloc((tree->count + 1) * sizeof(*ranks));
	size_t count = 0;
	for (size_t i = 0; i < tree->count; i++) {
		const struct tree_process *process = &tree->items[i];
		if (process->is_below && !is_same(before, process)) {
			ranks[count++] = (struct rank){process->pid, depth_of(tree, process)};
		}
	}
	qsort(ranks, count, sizeof(*ranks), compare_deepest);
	for (size_t i = 0; i < count; i++) {
		kill(ranks[i].pid, SIGCONT);
	}
	free(ranks);
}

void freezer_thaw(struct freezer *freezer)
{
	struct tree now = {0};
	struct error err;
	if (freezer->state == FREEZER_OFF) {
		return;
	}
	if (!freezer->is_by_signals && freeze_group_set(&freezer->group, false, &err)) {
		freezer_finish(freezer);
		return;
	}
	if (tree_scan(&now, NULL)) {
		tree_mark_below(&now, getpid(), NULL, 0);
		let_go_on(&now, &freezer->before);
	} else {
		let_go_on(&freezer->looks[(freezer->rounds + 1) % 2], &freezer->before);
	}
	tree_finish(&now);
	freezer_finish(freezer);
}
