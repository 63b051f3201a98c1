/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SSH_PIPE_CHANNEL_H
#define TESTS_SSH_PIPE_CHANNEL_H

#include <ev.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/soon.h"
#include "tests/support/ssh/pipe_client.h"

/* Shared by the two files of the stand-in client. */
struct pipe_client {
	struct ssh_client client;
	struct list link; // clients
	struct ev_loop *loop;
	const struct ssh_client_listener *listener;
	void *data;
	struct list channels; // of struct pipe_channel
	struct soon ready;
};

struct pipe_channel {
	struct ssh_channel channel;
	struct list link; // pipe_client.channels
	struct pipe_client *client;
	const struct ssh_channel_listener *listener;
	void *data;
	pid_t pid;  // 0: refused
	int fds[3]; // -1 at the end
	ev_io io[3];
	ev_timer exit; // looks for it
	ev_timer later;
	struct buf unsent;
	struct buf held[2];
	bool is_held_back[2];
	bool was_short;
	bool wants_eof;
	bool was_opened;
	int status;     // -1: it runs
	bool is_frozen; // its bytes are stopped
};

extern bool pipe_is_frozen; // all channels are

struct ssh_channel *pipe_open(struct ssh_client *client, const char *command,
	const struct ssh_channel_listener *listener, void *data, struct error *err);
size_t pipe_write(struct ssh_channel *channel, struct span bytes);
void pipe_send_eof(struct ssh_channel *channel);
void pipe_resume(struct ssh_channel *channel, enum ssh_stream stream);
void pipe_close_channel(struct ssh_channel *channel);
void pipe_channel_freeze(struct pipe_channel *self); // call it after either value has changed

#endif
