/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RSYNC_SHELL_H
#define SYNC_RSYNC_SHELL_H

#include <stdint.h>

/*
 * The remote shell of rsync (its option -e): `PROGRAM rsync-shell HOST COMMAND...`, started by an
 * rsync that the broker started. Over a private socket in its working directory it asks the broker
 * to run COMMAND in the sandbox, with the token of that rsync. It receives the command's file
 * descriptors and copies bytes until both ends are closed. Its process may block; it ends if the
 * broker ends.
 */
#define RSYNC_SHELL_WORD "rsync-shell"
#define RSYNC_SHELL_TOKEN "ACP_BROKER_RSYNC_TOKEN" // in the environment
#define RSYNC_SHELL_SOCKET "socket"

enum { RSYNC_SHELL_TOKEN_LENGTH = 32, RSYNC_SHELL_REQUEST_MAX = 32 << 10 };

/*
 * To the broker, as packets of a SOCK_SEQPACKET: first the token and the words, each ending in NUL;
 * then
 */
struct rsync_shell_count {
	uint64_t sent, received; // bytes, so far
};

/*
 * From the broker: first this with two file descriptors, the command's stdin and stdout; then an
 * int32_t, the exit status.
 */
struct rsync_shell_go {
	uint64_t received_max; // bytes; after more it ends
};

/* The program's main if its first argument is RSYNC_SHELL_WORD; returns the exit status. */
int rsync_shell_main(int argc, char **argv, const char *const *environment);

#endif
