/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/fd_pass.h"
#include "base/text.h"
#include "providers/runner/runner.h"

/*
 * A waiter: the process that the carrier starts for a further channel. It passes the channel's
 * descriptors to the runner, so that no process is between the runner and the carrier. It ends when
 * the runner leaves the channel.
 */

void attach_wait(int socket)
{
	char byte;
	ssize_t count;
	do {
		count = recv(socket, &byte, sizeof(byte), 0);
	} while (count > 0 || (count < 0 && errno == EINTR));
}

enum { WORDS_MAX = 128 };

/* Reads the text that our runner has left at its end. The agent may have replaced it. */
static void read_last_words(const char *name, char words[WORDS_MAX])
{
	char file[sizeof(((struct sockaddr_un *)0)->sun_path)];
	words[0] = '\0';
	int fd = text_whole(file, sizeof(file), "end.%s", name)
	                 ? open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
	                 : -1;
	ssize_t size = fd >= 0 ? read(fd, words, WORDS_MAX - 1) : 0;
	fd_close(&fd);
	words[size > 0 ? size : 0] = '\0';
	for (char *at = words; *at; at++) {
		if (*at < ' ' || *at > '~') {
			*at = '\0';
			return;
		}
	}
}

/* Whether the socket was made before the machine was started last. */
static bool is_of_earlier_boot(const char *socket)
{
	struct stat status;
	struct timespec up = {0};
	return clock_gettime(CLOCK_BOOTTIME, &up) == 0 && lstat(socket, &status) == 0 &&
	       status.st_mtime < time(NULL) - up.tv_sec;
}

static int tell_gone(const char *name, const char *socket, int errnum)
{
	char words[WORDS_MAX];
	const char *why = strerror(errnum); // NOLINT(concurrency-mt-unsafe): one thread
	read_last_words(name, words);
	if (errnum == ECONNREFUSED) {
		why = is_of_earlier_boot(socket) ? "the host was restarted"
		                                 : "the runner there was killed";
	} else if (errnum == ENOENT) {
		why = "the runner there has ended";
	}
	dprintf(STDOUT_FILENO, "gone %s%s%s\n", why, *words ? ": " : "", words);
	return 1;
}

int attach_run(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	const int channel[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
	if (fd < 0 || !text_whole(address.sun_path, sizeof(address.sun_path), "run.%s", name) ||
		connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
		!fd_pass(fd, SPAN_LITERAL("a"), channel, 3)) {
		return tell_gone(name, address.sun_path, errno);
	}
	runner_drop_standard();
	attach_wait(fd);
	return 0;
}
