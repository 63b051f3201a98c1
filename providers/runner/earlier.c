/* SPDX-License-Identifier: MIT */
#include "providers/runner/earlier.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/text.h"
#include "providers/runner/runner.h"

enum {
	RUNS_MAX = 256,
	NAME_SIZE = 256,
	WORDS = 4, // of a run's name after its kind: TOKEN.PID.BOOT.NAMESPACE
	READ_SIZE = 8192,
	ENVIRON_MAX = 4 << 20,
	COMM_SIZE = 32,
	LEFT_MAX = 512,
	PAUSE_MS = 20,
	KILL_PART = 10, // a tenth of the time is for processes that have lost their runner
};

enum how { LOST, IDLE, OVER, DEAD, ORPHAN, HOWS };
static const char *const hows[HOWS] = {"lost", "idle", "over", "dead", "orphan"};

struct earlier_run {
	enum how how;
	char *folder; // owned, as is the next one
	char *node;
	char token[NAME_SIZE];
	char mark[NAME_SIZE + 32]; // in the environment of each of its processes
	bool is_here;              // in our PID namespace: we can see its processes
	bool was_held;
	size_t found; // processes with its mark, before it was told to end
	size_t left;  // after they were killed
	struct alive_question question;
	enum alive_answer answer;
};

/* ---- the list ---- */

void earlier_finish(struct earlier *earlier)
{
	for (size_t i = 0; i < earlier->count; i++) {
		free(earlier->runs[i].folder);
		free(earlier->runs[i].node);
	}
	free(earlier->runs);
}

/*
 * Splits the name of a run, "alive.TOKEN.PID.BOOT.NAMESPACE", into TOKEN and "BOOT.NAMESPACE".
 * False: it is not such a name.
 */
static bool split_name(const char *folder, char token[NAME_SIZE], const char **out_there)
{
	const char *slash = strrchr(folder, '/');
	const char *words[WORDS];
	const char *at = slash ? slash : folder;
	for (int i = 0; i < WORDS; i++) {
		at = strchr(at, '.');
		if (!at) {
			return false;
		}
		words[i] = ++at;
	}
	*out_there = words[2];
	return words[1] - words[0] > 1 &&
	       text_whole(token, NAME_SIZE, "%.*s", (int)(words[1] - words[0] - 1), words[0]);
}

bool earlier_add(struct earlier *earlier, const char *text, const char *node, const char *here)
{
	struct earlier_run run = {.question = {.held = -1}};
	size_t len = strcspn(text, " ");
	const char *there;
	int how = 0;
	while (how < HOWS && !span_is((struct span){text, len}, hows[how])) {
		how++;
	}
	if (how == HOWS || !text[len] || earlier->count == RUNS_MAX) {
		return false;
	}
	run.how = (enum how)how;
	run.folder = mem_strdup(text + len + 1);
	run.node = mem_strdup(node);
	run.is_here = split_name(run.folder, run.token, &there) && strcmp(there, here) == 0;
	text_whole(run.mark, sizeof(run.mark), "ACP_BROKER_RUN=%s.", run.token);
	earlier->runs = mem_realloc(earlier->runs, (earlier->count + 1) * sizeof(run));
	earlier->runs[earlier->count++] = run;
	return true;
}

/* ---- their processes ---- */

static bool environment_has(int proc, const char *pid, const char *mark)
{
	char path[64];
	struct buf text;
	bool has = false;
	text_whole(path, sizeof(path), "%s/environ", pid);
	ATTR_CLEANUP(fd_cleanup) int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	buf_init(&text, ENVIRON_MAX);
	ssize_t count = fd < 0 ? 0 : 1;
	while (count > 0) {
		char *room = buf_reserve(&text, READ_SIZE, NULL);
		count = room ? read(fd, room, READ_SIZE) : 0;
		buf_commit(&text, count > 0 ? (size_t)count : 0);
	}
	struct span all = buf_span(&text);
	while (all.len > 0 && !has) {
		size_t len = strnlen(all.data, all.len);
		has = len >= strlen(mark) && memcmp(all.data, mark, strlen(mark)) == 0;
		len += len < all.len;
		all.data += len;
		all.len -= len;
	}
	buf_finish(&text);
	return has;
}

/* Appends " PID (NAME)". The process chooses its name, so only the first line counts. */
static void append_name(struct buf *names, int proc, const char *pid)
{
	char path[64], name[COMM_SIZE];
	text_whole(path, sizeof(path), "%s/comm", pid);
	ATTR_CLEANUP(fd_cleanup) int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	ssize_t count = fd < 0 ? -1 : read(fd, name, sizeof(name) - 1);
	name[count > 0 ? count : 0] = '\0';
	name[strcspn(name, "\n")] = '\0';
	(void)!buf_append_format(names, NULL, " %s (%s)", pid, name);
}

/*
 * Sends the signal to each process with the mark; 0: none. Appends their names unless `names` is
 * NULL. Returns how many there are. A process that was killed has no environment any more, so it no
 * longer counts.
 */
static size_t visit_marked(const char *mark, int signal, struct buf *names)
{
	DIR *dir = opendir("/proc");
	const struct dirent *entry;
	size_t count = 0;
	while (dir && (entry = readdir(dir))) { // NOLINT(concurrency-mt-unsafe): its own
		long pid = isdigit((unsigned char)entry->d_name[0])
		                   ? strtol(entry->d_name, NULL, 10)
		                   : 0;
		if (pid > 1 && pid != getpid() &&
			environment_has(dirfd(dir), entry->d_name, mark)) {
			count++;
			(void)!kill((pid_t)pid, signal);
			if (names) {
				append_name(names, dirfd(dir), entry->d_name);
			}
		}
	}
	if (dir) {
		closedir(dir);
	}
	return count;
}

/* ---- what is done to all of them together ---- */

/* Pauses; false: the time is over. */
static bool may_wait(long long until_ms)
{
	if (clock_now_ms() >= until_ms) {
		return false;
	}
	poll(NULL, 0, PAUSE_MS);
	return true;
}

static void order_end(struct earlier_run *run)
{
	run->was_held = alive_is_held(run->folder);
	run->found = run->is_here ? visit_marked(run->mark, 0, NULL) : 0;
	if (run->how != ORPHAN) {
		alive_order_end(run->folder);
	}
}

static bool has_answered(struct earlier_run *run, const char *token)
{
	if (run->how != ORPHAN) {
		return !alive_is_held(run->folder);
	}
	if (run->answer == ALIVE_SILENT) {
		run->answer = alive_ask(&run->question, run->folder, token);
	}
	return run->answer != ALIVE_SILENT;
}

static void wait_for_answers(const struct earlier *earlier, const char *token, long long until_ms)
{
	size_t silent;
	do {
		silent = 0;
		for (size_t i = 0; i < earlier->count; i++) {
			silent += !has_answered(&earlier->runs[i], token);
		}
	} while (silent > 0 && may_wait(until_ms));
	for (size_t i = 0; i < earlier->count; i++) {
		alive_ask_end(&earlier->runs[i].question, earlier->runs[i].folder);
	}
}

/* Ends what has lost its runner. An orphan may have a broker, so its processes are left alone. */
static void kill_marked(const struct earlier *earlier, long long until_ms)
{
	size_t left;
	do {
		left = 0;
		for (size_t i = 0; i < earlier->count; i++) {
			struct earlier_run *run = &earlier->runs[i];
			bool may_kill = run->is_here && run->how != ORPHAN;
			run->left = may_kill ? visit_marked(run->mark, SIGKILL, NULL) : 0;
			left += run->left;
		}
	} while (left > 0 && may_wait(until_ms));
}

/* ---- what has become of each ---- */

static void say_kept(const struct earlier_run *run, const char *why)
{
	printf("kept %s %s\n", run->token, why);
}

static void say_left(struct buf *left, const char *why)
{
	(void)!buf_append_format(left, NULL, "%s%s", left->len > 0 ? "; " : "", why);
}

static void finish(const struct earlier_run *run, size_t ended)
{
	if (ended > 0) {
		printf("ended %zu\n", ended);
	}
	alive_remove(run->folder);
}

static void judge_orphan(const struct earlier_run *run)
{
	if (run->answer == ALIVE_USED) {
		say_kept(run, "used");
	} else if (visit_marked(run->mark, 0, NULL) > 0 || alive_is_held(run->folder)) {
		say_kept(run, "unseen"); // its runner may have been killed, or does not answer
	} else {
		finish(run, run->answer == ALIVE_ENDED ? run->found : 0);
	}
}

static void judge_seen(const struct earlier_run *run, struct buf *left)
{
	if (run->left > 0) {
		say_left(left, "these processes cannot be ended:");
		visit_marked(run->mark, 0, left);
	} else if (alive_is_held(run->folder)) {
		say_left(left, "it does not end on request");
	} else {
		finish(run, run->found);
	}
}

/* The run is not in this namespace, and nobody holds its folder. */
static void judge_gone(const struct earlier_run *run, struct buf *left)
{
	struct utsname system = {0};
	uname(&system);
	if (run->how == OVER || strcmp(run->node, system.nodename) == 0) {
		finish(run, 0);
	} else if (run->how == DEAD || run->how == ORPHAN) {
		say_kept(run, "elsewhere");
	} else {
		char why[2 * NAME_SIZE];
		text_format(why, sizeof(why), "it runs on %.64s, and this is %s", run->node,
			system.nodename);
		say_left(left, why);
	}
}

static void judge_unseen(const struct earlier_run *run, struct buf *left)
{
	if (run->answer == ALIVE_USED) {
		say_kept(run, "used");
	} else if (alive_is_held(run->folder) && run->how == ORPHAN) {
		say_kept(run, "unseen");
	} else if (alive_is_held(run->folder)) {
		say_left(left, "it does not end on request, and its processes cannot be seen from "
			       "here");
	} else if (run->was_held && alive_has_left(run->folder)) {
		say_left(left, "some of its processes cannot be ended, and cannot be seen from "
			       "here");
	} else if (run->was_held) {
		finish(run, 1);
	} else {
		judge_gone(run, left);
	}
}

bool earlier_end(struct earlier *earlier, const char *token, long long wait_ms)
{
	struct buf left;
	long long until_ms = clock_now_ms() + wait_ms;
	for (size_t i = 0; i < earlier->count; i++) {
		order_end(&earlier->runs[i]);
	}
	wait_for_answers(earlier, token, until_ms - wait_ms / KILL_PART);
	kill_marked(earlier, until_ms);
	buf_init(&left, LEFT_MAX);
	for (size_t i = 0; i < earlier->count; i++) {
		const struct earlier_run *run = &earlier->runs[i];
		if (!run->is_here) {
			judge_unseen(run, &left);
		} else if (run->how == ORPHAN) {
			judge_orphan(run);
		} else {
			judge_seen(run, &left);
		}
	}
	bool is_done = left.len == 0;
	if (!is_done) {
		printf("left %.*s\n", (int)left.len, buf_span(&left).data);
	}
	buf_finish(&left);
	return is_done;
}
