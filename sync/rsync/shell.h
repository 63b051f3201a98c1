/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RSYNC_SHELL_H
#define SYNC_RSYNC_SHELL_H

#include <stdint.h>

/*
 * The remote shell of rsync (its option -e): `PROGRAM rsync-shell HOST COMMAND...`, started
 * by an rsync that the broker has started. It asks the broker for COMMAND in the sandbox over
 * a private socket of its working directory, with the token of that one rsync, gets the
 * command's descriptors, and carries the bytes until both ends are closed. All blocking
 * is its own; a broker that ends, ends it.
 */
#define RSYNC_SHELL_WORD "rsync-shell"
#define RSYNC_SHELL_TOKEN "ACP_BROKER_RSYNC_TOKEN" // in the environment
#define RSYNC_SHELL_SOCKET "socket"

enum { RSYNC_SHELL_TOKEN_LENGTH = 32, RSYNC_SHELL_REQUEST_MAX = 32 << 10 };

/* To the broker, packets of a SOCK_SEQPACKET: the token and the words, each with its NUL; then */
struct rsync_shell_count {
	uint64_t sent, received; // bytes, so far
};

/* From the broker: this with two descriptors, the command's stdin and stdout; then an int32_t,
 * the status to exit with. */
struct rsync_shell_go {
	uint64_t received_max; // bytes; more and it ends
};

/* The program's main where its first argument is RSYNC_SHELL_WORD; its exit status. */
int rsync_shell_main(int argc, char **argv, const char *const *environment);

#endif
