/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_OPENSSH_H
#define PROVIDERS_SSH_OPENSSH_H

#include <ev.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/private_folder.h"
#include "base/process.h"
#include "providers/provider.h"
#include "providers/ssh/client.h"
#include "providers/ssh/life.h"
#include "providers/ssh/openssh_askpass.h"
#include "providers/ssh/openssh_mux.h"
#include "providers/ssh/openssh_words.h"

/*
 * The client that uses the ssh program. One `ssh -N` makes the connection and listens at a control
 * socket, in a folder that no other user may enter. Each channel is a conversation over that socket
 * (openssh_mux.h), which passes the ends of three pipes to ssh.
 *
 *     openssh.c          the program, from its start to its end
 *     openssh_argv.c     its arguments; openssh_askpass.c: answers its questions
 *     openssh_words.c    reads its stderr
 *     openssh_channel.c  channels; openssh_output.c: their output
 */
/* Its control socket, and the socket of its questions. ssh adds 17 bytes to a socket's name. */
struct openssh_folder {
	struct private_folder folder;
	char socket[PRIVATE_FOLDER_MAX + 8];
	char askpass[PRIVATE_FOLDER_MAX + 8];
};

struct openssh_client {
	struct ssh_client client;
	const struct provider_context *context; // borrowed
	const struct ssh_target *target;        // borrowed
	const struct ssh_client_listener *listener;
	void *data;
	struct life *life;
	struct process *process;
	struct openssh_folder folder;
	struct openssh_terminal terminal; // until ready
	struct openssh_words words;
	int words_fd;
	ev_io words_io;
	int notify_fd; // inotify on the folder; -1: none, or already ready
	ev_io notify;
	ev_timer tick;             // until ready
	long long deadline_ms;     // of the present step
	const char *deadline_name; // the name of its key in a profile
	struct mux watch;          // asks whether ssh still runs
	uint32_t last_question;    // number of the channels' last question whether ssh still runs
	struct list channels;      // struct openssh_channel
	bool is_ready;
	bool is_lost;
};

struct ssh_channel *openssh_channel_open(struct ssh_client *client, const char *command,
	const struct ssh_channel_listener *listener, void *data, struct error *err);
size_t openssh_channel_write(struct ssh_channel *channel, struct span bytes);
void openssh_channel_send_eof(struct ssh_channel *channel);
void openssh_channel_resume(struct ssh_channel *channel, enum ssh_stream stream);
void openssh_channel_close(struct ssh_channel *channel);

/*
 * ssh has answered this question, so ssh still ran when we asked it. So the channels that had ended
 * before were ended by the server, not by the end of ssh.
 */
void openssh_channels_answered(struct openssh_client *client, uint32_t question);

void openssh_channels_free(struct openssh_client *client);

/* Raises on_lost for all channels; false if a handler has closed the client. */
bool openssh_channels_lost(struct openssh_client *client, const struct error *err);

#endif
