/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_PROGRAM_H
#define PROVIDERS_LOCAL_NET_PROGRAM_H

#include <stdint.h>
#include <sys/types.h>

#include "base/pool.h"

/*
 * Finds in /proc the process of a network namespace that has a connection. The result is only for
 * people to read: a process can write its own command line, and can hand its socket to another one.
 * The search reads the namespace's table of sockets and the descriptors of its processes, on the
 * worker pool. It reads a bounded amount, whatever the processes do.
 */
enum {
	PROGRAM_SIZE = 256,                // size of a command line, with its NUL
	PROGRAM_TABLE_MAX = 1024 * 1024,   // size of a table of sockets
	PROGRAM_PROCESSES_MAX = 32 * 1024, // processes of this machine to look at
	PROGRAM_FILES_MAX = 64 * 1024,     // descriptors to look at
};

/* The namespace of a socket, as in /proc/PID/ns/net; 0 if it cannot be determined. */
ino_t program_namespace(int socket_fd);

/*
 * Returns the command line of the process that has a TCP socket with this local port, with blanks
 * between its words; "" if there is none. Blocks.
 */
void program_find(ino_t network_namespace, uint16_t port, char out[PROGRAM_SIZE]);

/*
 * The same without blocking. Raises `found` once, after this returns, unless program_search_leave
 * is called first.
 */
typedef void program_found(void *data, const char *program);
struct program_search;
struct program_search *program_search_start(struct pool *pool, ino_t network_namespace,
	uint16_t port, program_found *found, void *data); // NULL: the pool takes no more jobs
void program_search_leave(struct program_search *search); // NULL is fine

#endif
