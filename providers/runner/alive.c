/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "providers/runner/runner.h"

/*
 * The folder of a run (providers/remote/start.sh makes it). A later connection may have another PID
 * namespace, and then cannot see the processes of this run. By the folder it can end them, and
 * knows whether they have ended (providers/ssh/remote/earlier.sh):
 *
 *     alive  a FIFO; the line "over" in it ends the runner. The line "orphan WORD" does so, too,
 *            unless a broker uses the runner
 *     held   a FIFO that the keeper and the runner hold open; if nobody does, the run has ended.
 *            The answer to "orphan WORD" is the line "used WORD" in it, if a broker uses the runner
 *     asking a folder, while somebody waits for that answer
 *     left   a file: the run has ended, but some of its processes could not be ended
 *
 * A broker that has lost its connection looks into the folder. So the runner removes it only if the
 * broker asked for the end, or if nothing ran at the end of the channel and the broker has
 * acknowledged that. Processes of the same user can write here; they could kill the runner, too.
 */
enum {
	READ_SIZE = 256,
	/*
	 * We remove the folder of another run if it is so old and nobody holds it. On a shared file
	 * system, a process of another machine may hold it without our seeing that.
	 */
	UNUSED_S = 24 * 3600,
	UNUSED_ELSEWHERE_S = 30 * UNUSED_S,
	TURN_MS = 5000, // as in earlier.sh
};

static const char over[] = "over";
static const char orphan[] = "orphan ";
static const char order_over[] = "\nover\n"; // the first newline ends what may be there already

static int open_fifo(const char *folder, const char *name)
{
	char path[PATH_MAX];
	struct stat status;
	int fd = text_whole(path, sizeof(path), "%s/%s", folder, name)
	                 ? open(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)
	                 : -1;
	if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode))) {
		fd_close(&fd);
	}
	return fd;
}

int alive_hold(const char *folder)
{
	return open_fifo(folder, "held");
}

/* ---- folders that others have left ---- */

static bool is_fifo(int folder, const char *name)
{
	struct stat status;
	return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISFIFO(status.st_mode);
}

static bool is_held(int folder)
{
	if (!is_fifo(folder, "held")) {
		return false;
	}
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(folder, "held", O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 || (errno != ENXIO && errno != ENOENT);
}

/* The boot in a folder's name, "alive.TOKEN.PID.BOOT.NAMESPACE"; empty if it has none. */
static struct span boot_of(const char *name)
{
	for (int i = 0; i < 3; i++) {
		name += strcspn(name, ".");
		name += name[0] == '.';
	}
	return (struct span){name, strcspn(name, ".")};
}

static bool is_of_boot(const char *name, const char *own_name)
{
	struct span boot = boot_of(name), own = boot_of(own_name);
	return boot.len == own.len && memcmp(boot.data, own.data, own.len) == 0;
}

static void remove_content(int folder)
{
	unlinkat(folder, "alive", 0);
	unlinkat(folder, "held", 0);
	unlinkat(folder, "left", 0);
	unlinkat(folder, "asking", AT_REMOVEDIR);
}

static void remove_unused(int parent, const char *name, const char *own_name)
{
	struct stat status;
	int age_s = is_of_boot(name, own_name) ? UNUSED_S : UNUSED_ELSEWHERE_S;
	ATTR_CLEANUP(fd_cleanup)
	int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool is_unused = folder >= 0 && fstat(folder, &status) == 0 && status.st_uid == geteuid() &&
	                 status.st_mtime < time(NULL) - age_s && !is_held(folder);
	if (is_unused) {
		remove_content(folder);
		unlinkat(parent, name, AT_REMOVEDIR);
	}
}

/* Beside the run's own folder. */
static void sweep(const char *folder)
{
	char path[PATH_MAX];
	const struct dirent *entry;
	const char *slash = strrchr(folder, '/');
	const char *own_name = slash ? slash + 1 : folder;
	DIR *dir = text_whole(path, sizeof(path), "%s/..", folder) ? opendir(path) : NULL;
	while (dir && (entry = readdir(dir))) { // NOLINT(concurrency-mt-unsafe): its own
		if (strncmp(entry->d_name, "alive.", 6) == 0) {
			remove_unused(dirfd(dir), entry->d_name, own_name);
		}
	}
	if (dir) {
		closedir(dir);
	}
}

/* ---- for a later connection that needs no shell (begin.c) ---- */

static int open_own_folder(const char *path)
{
	struct stat status;
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder >= 0 && (fstat(folder, &status) != 0 || status.st_uid != geteuid())) {
		fd_close(&folder);
	}
	return folder;
}

bool alive_make(const char *folder)
{
	char held[PATH_MAX], order[PATH_MAX];
	if (!text_whole(held, sizeof(held), "%s/held", folder) ||
		!text_whole(order, sizeof(order), "%s/alive", folder) || mkdir(folder, 0700) != 0) {
		return false;
	}
	if (mkfifo(order, 0600) == 0 && mkfifo(held, 0600) == 0) {
		return true;
	}
	unlink(order);
	rmdir(folder);
	return false;
}

bool alive_is_held(const char *path)
{
	ATTR_CLEANUP(fd_cleanup) int folder = open_own_folder(path);
	return folder >= 0 && is_held(folder);
}

void alive_order_end(const char *path)
{
	ATTR_CLEANUP(fd_cleanup) int folder = open_own_folder(path);
	ATTR_CLEANUP(fd_cleanup)
	int fd = folder < 0
	                 ? -1
	                 : openat(folder, "alive", O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0) {
		(void)!write(fd, order_over, sizeof(order_over) - 1); // nobody reads a full FIFO
	}
}

bool alive_has_left(const char *path)
{
	struct stat status;
	ATTR_CLEANUP(fd_cleanup) int folder = open_own_folder(path);
	return folder >= 0 && fstatat(folder, "left", &status, AT_SYMLINK_NOFOLLOW) == 0;
}

void alive_remove(const char *path)
{
	ATTR_CLEANUP(fd_cleanup) int folder = open_own_folder(path);
	if (folder >= 0) {
		remove_content(folder);
		rmdir(path);
	}
}

/* ---- the question to an orphan, for begin.c, too ---- */

/*
 * Two that ask at once would take each other's answer. So the second waits, but not for one that
 * was killed.
 */
static bool take_turn(struct alive_question *question, int folder)
{
	if (question->turn_ms == 0) {
		question->turn_ms = clock_now_ms() + TURN_MS;
	}
	return mkdirat(folder, "asking", 0700) == 0 || errno != EEXIST ||
	       clock_now_ms() >= question->turn_ms;
}

/* Opens "held" first, so that the answer finds a reader. */
static bool send_question(struct alive_question *question, int folder, const char *word)
{
	ATTR_CLEANUP(fd_cleanup)
	int order = openat(folder, "alive", O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	question->held = openat(folder, "held", O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (order >= 0) {
		dprintf(order, "\norphan %s\n", word);
	}
	return question->held >= 0;
}

/* Whether one of the lines that have come is "used WORD". */
static bool take_answer(struct alive_question *question, struct span bytes, const char *word)
{
	bool is_used = false;
	for (size_t i = 0; i < bytes.len; i++) {
		if (bytes.data[i] != '\n') {
			question->line[question->len] = bytes.data[i];
			question->len += question->len < sizeof(question->line) - 1;
			continue;
		}
		struct span line = {question->line, question->len};
		is_used = is_used ||
		          (span_starts_with(line, SPAN_LITERAL("used ")) &&
				  span_is((struct span){line.data + 5, line.len - 5}, word));
		question->len = 0;
	}
	return is_used;
}

enum alive_answer alive_ask(struct alive_question *question, const char *path, const char *word)
{
	char bytes[READ_SIZE];
	if (question->held < 0) {
		ATTR_CLEANUP(fd_cleanup) int folder = open_own_folder(path);
		if (folder < 0 || !is_fifo(folder, "held") || !is_fifo(folder, "alive")) {
			return ALIVE_UNKNOWN;
		}
		if (!take_turn(question, folder)) {
			return ALIVE_SILENT;
		}
		question->has_turn = true;
		if (!send_question(question, folder, word)) {
			return ALIVE_UNKNOWN;
		}
	}
	ssize_t count = read(question->held, bytes, sizeof(bytes));
	if (count == 0) {
		return ALIVE_ENDED;
	}
	bool is_used =
		count > 0 && take_answer(question, (struct span){bytes, (size_t)count}, word);
	return is_used ? ALIVE_USED : ALIVE_SILENT;
}

void alive_ask_end(struct alive_question *question, const char *path)
{
	fd_close(&question->held);
	ATTR_CLEANUP(fd_cleanup) int folder = question->has_turn ? open_own_folder(path) : -1;
	if (folder >= 0) {
		unlinkat(folder, "asking", AT_REMOVEDIR);
	}
	question->has_turn = false;
}

/* ---- orders ---- */

bool alive_open(struct runner *runner, const char *folder, struct error *err)
{
	struct alive *alive = &runner->alive;
	alive->fd = -1;
	if (!folder) {
		return true;
	}
	alive->fd = open_fifo(folder, "alive");
	if (alive->fd < 0) {
		return error_set_errno(err, errno, "opening the FIFO of the run");
	}
	alive->folder = folder;
	sweep(folder);
	return true;
}

/* Replaces an answer that nobody has read. */
static void say_used(const char *folder, struct span word)
{
	char bytes[READ_SIZE];
	ATTR_CLEANUP(fd_cleanup) int fd = open_fifo(folder, "held");
	while (fd >= 0 && read(fd, bytes, sizeof(bytes)) > 0) {
	}
	if (fd >= 0) {
		dprintf(fd, "used %.*s\n", (int)word.len, word.data);
	}
}

static bool take_orphan(struct span line, struct span *out_word)
{
	size_t len = sizeof(orphan) - 1;
	if (line.len <= len || memcmp(line.data, orphan, len) != 0) {
		return false;
	}
	*out_word = (struct span){line.data + len, line.len - len};
	return true;
}

static void take_line(struct runner *runner, struct span line)
{
	struct span word;
	bool is_question = take_orphan(line, &word);
	if (span_is(line, over)) {
		runner->why = "a later connection of its broker ended it";
	} else if (is_question && channel_is_used(runner)) {
		say_used(runner->alive.folder, word);
	} else if (is_question) {
		runner->why = "its broker was gone, and a later one ended it";
	}
}

static void take_byte(struct runner *runner, char byte)
{
	struct alive *alive = &runner->alive;
	if (byte != '\n') {
		if (alive->len < sizeof(alive->line)) {
			alive->line[alive->len] = byte;
		}
		alive->len += alive->len <= sizeof(alive->line); // one more: too long
		return;
	}
	if (alive->len <= sizeof(alive->line)) {
		take_line(runner, (struct span){alive->line, alive->len});
	}
	alive->len = 0;
}

static void on_order(void *data, short events)
{
	struct runner *runner = data;
	char bytes[READ_SIZE];
	ssize_t count = read(runner->alive.fd, bytes, sizeof(bytes));
	for (ssize_t i = 0; i < count; i++) {
		take_byte(runner, bytes[i]);
	}
}

void alive_watch(struct runner *runner)
{
	if (runner->alive.fd >= 0) {
		runner_watch(runner, runner->alive.fd, POLLIN, on_order, runner);
	}
}

/* ---- the end ---- */

void alive_tell_left(const char *folder)
{
	char path[PATH_MAX];
	if (folder && text_whole(path, sizeof(path), "%s/left", folder)) {
		int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		fd_close(&fd);
	}
}

static void remove_entry(const char *folder, const char *name)
{
	char path[PATH_MAX];
	if (text_whole(path, sizeof(path), "%s/%s", folder, name)) {
		unlink(path);
	}
}

void alive_finish(struct runner *runner, size_t left)
{
	struct alive *alive = &runner->alive;
	if (left > 0) {
		alive_tell_left(alive->folder);
	} else if (alive->folder && (runner->was_asked || alive->is_unneeded)) {
		remove_entry(alive->folder, "alive");
		remove_entry(alive->folder, "held");
		rmdir(alive->folder);
	}
}
