/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/text.h"
#include "providers/runner/earlier.h"
#include "providers/runner/runner.h"

/*
 * The start of a runner without a shell. The broker sends on stdin, before the link:
 *
 *     wait MS                how long the ends of all earlier runs together may take
 *     on NODE                the machine of the earlier runs that follow
 *     earlier WORD FOLDER    a run that may still be there (earlier.h). FOLDER is what the answer
 *                            "run" of that run named
 *     begin                  the last line
 *
 * The answers are those of providers/remote/start.sh, with the lines of before.sh and earlier.sh.
 */
enum {
	LINE_MAX_BYTES = 8448, // a line of the start, and the words before a folder from it
	VALUE_MAX = 2000,      // longer variables are left out, as in start.sh
	WAIT_MAX_MS = 20000,   // for all earlier runs together
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

static const char *after(const char *line, const char *word)
{
	size_t len = strlen(word);
	return strncmp(line, word, len) == 0 ? line + len : NULL;
}

/* False: stdin has ended, or the broker has sent what this program does not know. */
static bool take_orders(struct earlier *earlier, uint64_t *out_wait_ms, const char *here)
{
	char line[LINE_MAX_BYTES];
	char node[LINE_MAX_BYTES] = "";
	const char *rest;
	*out_wait_ms = WAIT_MAX_MS;
	while (read_line(line)) {
		if (strcmp(line, "begin") == 0) {
			return true;
		}
		if ((rest = after(line, "on "))) {
			text_whole(node, sizeof(node), "%s", rest);
		} else if ((rest = after(line, "wait ")) &&
			   runner_read_number(span_of(rest), out_wait_ms)) {
			continue;
		} else if (!(rest = after(line, "earlier ")) ||
			   !earlier_add(earlier, rest, node, here)) {
			printf("scripts the program there does not know what the broker sent\n");
			return false;
		}
	}
	return false;
}

static bool end_earlier(const char *token, const char *here)
{
	struct earlier earlier = {0};
	uint64_t wait_ms;
	bool is_done = take_orders(&earlier, &wait_ms, here) &&
	               earlier_end(&earlier, token,
			       wait_ms < WAIT_MAX_MS ? (long long)wait_ms : WAIT_MAX_MS);
	earlier_finish(&earlier);
	return is_done;
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
	(void)fflush(stdout); // a sign of life: what follows may take a while
	if (!end_earlier(token, here)) {
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
