/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_OPENSSH_CHANNEL_H
#define PROVIDERS_SSH_OPENSSH_CHANNEL_H

#include "providers/ssh/openssh.h"

/* One channel of the ssh program (openssh_channel.c), and its output (openssh_output.c). */
struct openssh_output {
	struct openssh_channel *channel;
	enum ssh_stream stream;
	int fd; // -1: at its end
	ev_io io;
	struct buf kept; // bytes that the listener did not take; nothing is read meanwhile
	bool is_held;
	bool was_told_end; // on_eof was raised
};

struct openssh_channel {
	struct ssh_channel channel;
	struct list link; // openssh_client.channels
	struct openssh_client *client;
	const struct ssh_channel_listener *listener;
	void *data;
	struct life *life;
	struct mux mux;
	struct openssh_output outputs[2];
	int in_fd; // -1: closed
	ev_io in_io;
	struct buf in;
	bool wants_eof;
	bool was_short; // on_writable is owed
	bool is_open;
	bool mux_has_ended;
	uint32_t question; // number of an open question whether ssh still runs; 0: none
	bool is_over;      // nothing more is raised
	struct ssh_channel_end end;
};

void openssh_output_init(struct openssh_channel *channel, enum ssh_stream stream, int fd);
void openssh_output_finish(struct openssh_output *output);

/*
 * Call this when ssh has closed a pipe of the channel. ssh does so when the server closes its side,
 * but the kernel does the same when ssh dies. So before it raises anything, this asks ssh whether
 * it still runs.
 */
void openssh_channel_ask(struct openssh_channel *channel);

#endif
