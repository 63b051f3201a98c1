/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
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

/*
 * The start of a runner without a shell. The broker sends on stdin, before the link:
 *
 *     earlier FOLDER    a run that may still be there (providers/ssh/runs.h). FOLDER is what the
 *                       answer "run" of that run named
 *     begin             the last line
 *
 * The answers are those of providers/remote/start.sh, with the lines of before.sh and earlier.sh.
 * The caller is in a container that has one PID namespace as long as it runs. So a run of another
 * namespace or boot has ended.
 */
enum {
	LINE_MAX_BYTES = 8192,
	VALUE_MAX = 2000, // longer variables are left out, as in start.sh
	ENVIRON_MAX = 4 << 20,
	WAIT_MS = 20000, // for a run that was ordered to end
	PAUSE_MS = 20,
	KILLS_MAX = 100, // attempts, PAUSE_MS apart
	WORDS = 4,       // of a run's name after its kind: TOKEN.PID.BOOT.NAMESPACE
	NAME_SIZE = 256,
};

/* ---- which run this is ---- */

/* "BOOT.NAMESPACE" of this process. */
static void read_here(char *out, size_t size)
{
	char boot[64] = "", space[64] = "";
	ATTR_CLEANUP(fd_cleanup)
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t count = fd < 0 ? -1 : read(fd, boot, sizeof(boot) - 1);
	boot[count > 0 ? count : 0] = '\0';
	boot[strcspn(boot, "-\n")] = '\0';
	count = readlink("/proc/self/ns/pid", space, sizeof(space) - 1); // "pid:[NUMBER]"
	space[count > 0 ? count : 0] = '\0';
	const char *number = strchr(space, '[');
	number = number ? number + 1 : "";
	text_whole(out, size, "%s.%.*s", boot, (int)strcspn(number, "]"), number);
}

/* ---- processes of an earlier run ---- */

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
		char *room = buf_reserve(&text, LINE_MAX_BYTES, NULL);
		count = room ? read(fd, room, LINE_MAX_BYTES) : 0;
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

/* Sends the signal to each process with the mark; 0: none. Returns how many there are. */
static size_t visit_marked(const char *mark, int signal)
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
		}
	}
	if (dir) {
		closedir(dir);
	}
	return count;
}

/*
 * Ends what has lost its runner. A process that was killed has no environment any more, so it no
 * longer counts. Returns how many are left.
 */
static size_t kill_marked(const char *mark)
{
	size_t left = visit_marked(mark, SIGKILL);
	for (int i = 0; left > 0 && i < KILLS_MAX; i++) {
		poll(NULL, 0, PAUSE_MS);
		left = visit_marked(mark, SIGKILL);
	}
	return left;
}

static void wait_for_end(const char *folder)
{
	long long until_ms = clock_now_ms() + WAIT_MS;
	alive_order_end(folder);
	while (alive_is_held(folder) && clock_now_ms() < until_ms) {
		poll(NULL, 0, PAUSE_MS);
	}
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

/* False: processes of the run are left, and it has said so. */
static bool end_earlier(const char *folder, const char *here)
{
	char token[NAME_SIZE], mark[NAME_SIZE + 32];
	const char *there;
	if (!split_name(folder, token, &there) || strcmp(there, here) != 0) {
		alive_remove(folder);
		return true;
	}
	text_whole(mark, sizeof(mark), "ACP_BROKER_RUN=%s.", token);
	size_t found = visit_marked(mark, 0);
	wait_for_end(folder);
	size_t left = kill_marked(mark);
	if (left > 0 || alive_is_held(folder)) {
		printf("left %zu of its processes do not end, or its runner does not\n", left);
		return false;
	}
	if (found > 0) {
		printf("ended %zu\n", found);
	}
	alive_remove(folder);
	return true;
}

/* ---- what it reads and prints ---- */

/* Reads no byte beyond the line, because the link follows. False: stdin has ended. */
static bool read_line(char line[LINE_MAX_BYTES])
{
	size_t len = 0;
	while (len < LINE_MAX_BYTES) {
		ssize_t count = read(STDIN_FILENO, &line[len], 1);
		if (count < 0 && errno == EINTR) {
			continue;
		}
		if (count <= 0) {
			return false;
		}
		if (line[len] == '\n') {
			line[len] = '\0';
			return true;
		}
		len++;
	}
	return false;
}

static bool take_orders(const char *here)
{
	static const char earlier[] = "earlier ";
	char line[LINE_MAX_BYTES];
	while (read_line(line)) {
		if (strcmp(line, "begin") == 0) {
			return true;
		}
		if (strncmp(line, earlier, sizeof(earlier) - 1) == 0 &&
			!end_earlier(line + sizeof(earlier) - 1, here)) {
			return false;
		}
	}
	return false;
}

/* Leaves out our own variables, and values that do not fit on a line. */
static void tell_environment(void)
{
	for (char **entry = environ; *entry; entry++) {
		if (!strchr(*entry, '\n') && strlen(*entry) <= VALUE_MAX &&
			strncmp(*entry, "ACP_BROKER_", 11) != 0) {
			printf("env %s\n", *entry);
		}
	}
}

static const char *variable(const char *name)
{
	size_t len = strlen(name);
	for (char **entry = environ; *entry; entry++) {
		if (strncmp(*entry, name, len) == 0 && (*entry)[len] == '=') {
			return *entry + len + 1;
		}
	}
	return NULL;
}

/* The run works without the folder, too. /dev/shm is there even if the image has no /tmp. */
static bool make_run(const char *name, char *out_folder, size_t size)
{
	const char *const bases[] = {variable("TMPDIR"), "/tmp", "/dev/shm"};
	for (size_t i = 0; i < ARRAY_LENGTH(bases); i++) {
		bool is_usable = bases[i] && bases[i][0] == '/' && !strchr(bases[i], '\n');
		if (is_usable && text_whole(out_folder, size, "%s/alive.%s", bases[i], name) &&
			alive_make(out_folder)) {
			return true;
		}
	}
	out_folder[0] = '\0';
	return false;
}

bool begin_run(const char *token, char *out_folder, size_t size)
{
	char here[NAME_SIZE], name[NAME_SIZE];
	struct utsname system = {0};
	read_here(here, sizeof(here));
	if (!text_whole(name, sizeof(name), "%s.%d.%s", token, (int)getpid(), here)) {
		return false;
	}
	printf("@acp-broker:begins-here;");
	if (!take_orders(here)) {
		(void)fflush(stdout);
		return false;
	}
	tell_environment();
	uname(&system);
	printf("node %s\n", system.nodename);
	bool has_folder = make_run(name, out_folder, size);
	printf("run %s%s\nrunner /\n", has_folder ? out_folder : "/acp-broker.",
		has_folder ? "" : name);
	return fflush(stdout) == 0;
}
