/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/fd_pass.h"
#include "base/hex.h"
#include "base/text.h"
#include "providers/runner/runner.h"

/*
 * The channel of a runner, and the channel that replaces it. The runner's socket is a file beside
 * the program, in a folder that only its user can use. The agent is the same user and can connect
 * as well. So the runner uses the received descriptors only for a question (wire.h), until the
 * answer shows that the broker is at their other end.
 */
enum {
	LINE_MAX_BYTES = 128,
	US_PER_MS = 1000,
	DEAD_SOCKET_S = 3600, // we remove a socket that is so old if nobody listens at it
	/* The broker sends at least a heartbeat every MUX_PING_US. */
	IN_USE_US = 3 * MUX_PING_US,
};

struct attach {
	struct list link; // channel_state.attaches
	struct runner *runner;
	int waiter, in, out; // -1: not there yet
	char nonce[RUNNER_NONCE_SIZE + 1];
	char line[LINE_MAX_BYTES];
	size_t len;
	uint64_t until_us;
};

static void attach_free(struct attach *attach)
{
	attach->runner->channel.attach_count--;
	list_remove(&attach->link);
	fd_close(&attach->in);
	fd_close(&attach->out);
	fd_close(&attach->waiter);
	free(attach);
}

/* ---- the present channel ---- */

static void leave(struct runner *runner)
{
	fd_close(&runner->in);
	fd_close(&runner->out);
	fd_close(&runner->waiter); // comes last, because it ends the waiter
}

bool channel_is_used(const struct runner *runner)
{
	return runner->in >= 0 && runner_now_us() < mux_heard_us(runner->mux) + IN_USE_US;
}

void channel_lose(struct runner *runner)
{
	struct channel_state *channel = &runner->channel;
	uint64_t now_us = runner_now_us();
	uint64_t heard_us = mux_heard_us(runner->mux);
	bool is_done = runs_are_over(runner) && mux_is_acknowledged(runner->mux);
	if (!channel->has_key || is_done) {
		runner->why = "the channel has ended"; // for a broker that still reads
		runner->alive.is_unneeded = is_done;
		return;
	}
	leave(runner);
	/*
	 * If it ended while bytes still came, the broker was killed or has closed it, unless its
	 * machine was about to be suspended. Otherwise the connection is lost.
	 */
	bool was_in_use = now_us < heard_us + IN_USE_US && !channel->is_suspend_announced;
	channel->until_us = was_in_use && channel->orphan_us < runner->grace_us
	                            ? now_us + channel->orphan_us
	                            : heard_us + runner->grace_us;
}

void channel_take_hello(struct runner *runner, struct span text)
{
	struct channel_state *channel = &runner->channel;
	struct span found;
	uint64_t orphan_ms;
	if (!channel->name || channel->has_key || !runner_find_line(text, "key", &found) ||
		!hex_read(channel->key, sizeof(channel->key), found)) {
		return;
	}
	channel->has_key = true;
	channel->orphan_us = runner->grace_us;
	if (runner_find_line(text, "orphan-ms", &found) && runner_read_number(found, &orphan_ms) &&
		orphan_ms < UINT32_MAX) {
		channel->orphan_us = orphan_ms * US_PER_MS;
	}
}

/* ---- the next channel ---- */

/* Makes it the runner's channel. The broker has proved that it is at the other end. */
static void adopt(struct attach *attach, uint64_t number)
{
	struct runner *runner = attach->runner;
	leave(runner);
	runner->in = attach->in;
	runner->out = attach->out;
	runner->waiter = attach->waiter;
	attach->in = attach->out = attach->waiter = -1;
	runner->channel.last_attach = number;
	runner->channel.is_suspend_announced = false;
	attach_free(attach);
	mux_restart(runner->mux, runner_now_us());
	runner_say_hello(runner);
}

/* Reads the answer byte by byte, because the bytes of the link follow it. */
static void on_answer(void *data, short events)
{
	struct attach *attach = data;
	struct channel_state *channel = &attach->runner->channel;
	ssize_t count;
	char byte = 0;
	while ((count = read(attach->in, &byte, 1)) == 1 && byte != '\n') {
		if (attach->len == sizeof(attach->line)) {
			attach_free(attach);
			return;
		}
		attach->line[attach->len++] = byte;
	}
	uint64_t number;
	if (count == 1 &&
		runner_attach_check((struct span){attach->line, attach->len}, channel->key,
			span_of(attach->nonce), &number) &&
		number > channel->last_attach) {
		adopt(attach, number);
	} else if (count >= 0 || (errno != EAGAIN && errno != EINTR)) {
		attach_free(attach);
	}
}

/* False if the system has no random bytes yet: then nobody can attach. */
static bool fill_nonce(char nonce[RUNNER_NONCE_SIZE + 1])
{
	unsigned char bytes[RUNNER_NONCE_SIZE / 2];
	if (getrandom(bytes, sizeof(bytes), GRND_NONBLOCK) != (ssize_t)sizeof(bytes)) {
		return false;
	}
	hex_write(nonce, bytes, sizeof(bytes));
	return true;
}

static void on_waiter(void *data, short events)
{
	struct attach *attach = data;
	char byte;
	int fds[3] = {-1, -1, -1};
	size_t count = 0;
	ssize_t size = fd_take(attach->waiter, &byte, sizeof(byte), fds, 3, &count);
	if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
		return;
	}
	attach->in = fds[0];
	attach->out = fds[1];
	fd_close(&fds[2]);
	bool is_asked = count == 3 && fill_nonce(attach->nonce) &&
	                fd_set_nonblock(attach->in, true, NULL) &&
	                fd_set_nonblock(attach->out, true, NULL) &&
	                dprintf(attach->out, "attach %s\n", attach->nonce) > 0;
	if (!is_asked) {
		attach_free(attach);
	}
}

static bool is_own(int socket)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       peer.uid == geteuid();
}

static void on_connection(void *data, short events)
{
	struct runner *runner = data;
	struct channel_state *channel = &runner->channel;
	int fd = accept4(channel->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0 || !is_own(fd) || !channel->has_key) {
		fd_close(&fd);
		return;
	}
	if (channel->attach_count == RUNNER_ATTACHES_MAX) {
		attach_free(LIST_FIRST(&channel->attaches, struct attach, link)); // the oldest
	}
	struct attach *attach = mem_alloc_zero(sizeof(*attach));
	attach->runner = runner;
	attach->waiter = fd;
	attach->in = attach->out = -1;
	attach->until_us = runner_now_us() + (uint64_t)RUNNER_ATTACH_MS * US_PER_MS;
	list_append(&channel->attaches, &attach->link);
	channel->attach_count++;
}

void channel_watch(struct runner *runner)
{
	struct channel_state *channel = &runner->channel;
	LIST_FOR_EACH(attach, &channel->attaches, struct attach, link) {
		if (attach->in < 0) {
			runner_watch(runner, attach->waiter, POLLIN, on_waiter, attach);
		} else {
			runner_watch(runner, attach->in, POLLIN, on_answer, attach);
		}
	}
	/* The listener comes after them, because on_connection may free one of them. */
	if (channel->listener >= 0) {
		runner_watch(runner, channel->listener, POLLIN, on_connection, runner);
	}
}

uint64_t channel_due_us(const struct runner *runner)
{
	const struct channel_state *channel = &runner->channel;
	uint64_t due_us = UINT64_MAX;
	LIST_FOR_EACH(attach, &channel->attaches, struct attach, link) {
		due_us = attach->until_us < due_us ? attach->until_us : due_us;
	}
	bool is_orphan = runner->in < 0 && !runner->why;
	return is_orphan && channel->until_us < due_us ? channel->until_us : due_us;
}

void channel_step(struct runner *runner)
{
	struct channel_state *channel = &runner->channel;
	uint64_t now_us = runner_now_us();
	LIST_FOR_EACH(attach, &channel->attaches, struct attach, link) {
		if (now_us >= attach->until_us) {
			attach_free(attach);
		}
	}
	if (runner->in < 0 && now_us >= channel->until_us && !runner->why) {
		runner->why = "no broker has come back to it in time";
	}
}

/* ---- its socket ---- */

static bool is_old(const struct stat *status)
{
	return status->st_uid == geteuid() && status->st_mtime <= time(NULL) - DEAD_SOCKET_S;
}

/* Whether this is the socket of a runner that was killed, or the old last words of a runner. */
static bool is_dead(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat status;
	if (strncmp(name, "end.", 4) == 0) {
		return lstat(name, &status) == 0 && S_ISREG(status.st_mode) && is_old(&status);
	}
	if (strncmp(name, "run.", 4) != 0 || lstat(name, &status) != 0 ||
		!S_ISSOCK(status.st_mode) || !is_old(&status) ||
		!text_whole(address.sun_path, sizeof(address.sun_path), "%s", name)) {
		return false;
	}
	ATTR_CLEANUP(fd_cleanup)
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 &&
	       errno == ECONNREFUSED;
}

/* Removes these files. */
static void remove_dead(void)
{
	DIR *dir = opendir(".");
	const struct dirent *entry;
	while (dir && (entry = readdir(dir))) { // NOLINT(concurrency-mt-unsafe): its own
		if (is_dead(entry->d_name)) {
			unlink(entry->d_name);
		}
	}
	if (dir) {
		closedir(dir);
	}
}

bool channel_open(struct runner *runner, const char *name, struct error *err)
{
	struct channel_state *channel = &runner->channel;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	list_init(&channel->attaches);
	channel->folder = channel->listener = -1;
	if (!name) {
		return true;
	}
	remove_dead();
	channel->folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	channel->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (channel->folder < 0 || channel->listener < 0 ||
		!text_whole(address.sun_path, sizeof(address.sun_path), "run.%s", name) ||
		bind(channel->listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
		listen(channel->listener, RUNNER_ATTACHES_MAX) != 0) {
		return error_set_errno(err, errno, "making the socket run.%s", name);
	}
	channel->name = name;
	return true;
}

/*
 * Writes the reason to a file, because there is no channel, or END may get lost in it; the broker
 * may come back (attach.c).
 */
static void leave_last_words(const struct runner *runner)
{
	char file[sizeof(((struct sockaddr_un *)0)->sun_path)];
	const struct channel_state *channel = &runner->channel;
	bool has_channel = runner->in >= 0 && !channel->is_silent;
	if (has_channel || !runner->why ||
		!text_whole(file, sizeof(file), "end.%s", channel->name)) {
		return;
	}
	int fd = openat(channel->folder, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0) {
		dprintf(fd, "%s\n", runner->why);
		fd_close(&fd);
	}
}

void channel_finish(struct runner *runner)
{
	struct channel_state *channel = &runner->channel;
	struct attach *attach;
	char file[sizeof(((struct sockaddr_un *)0)->sun_path)];
	while ((attach = LIST_FIRST(&channel->attaches, struct attach, link)) != NULL) {
		attach_free(attach);
	}
	fd_close(&channel->listener);
	if (channel->name && text_whole(file, sizeof(file), "run.%s", channel->name)) {
		leave_last_words(runner);
		unlinkat(channel->folder, file, 0);
	}
	explicit_bzero(channel->key, sizeof(channel->key));
}
