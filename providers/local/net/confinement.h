/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_CONFINEMENT_H
#define PROVIDERS_LOCAL_NET_CONFINEMENT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Restricts the processes of a cell's network and keys before they read anything that strangers
 * wrote. None of them can gain privileges, show its memory to others, leave a core, write to files,
 * execute a program, or signal or inspect another process. A refused call fails with EPERM.
 */
enum confinement_kind {
	/*
	 * Makes TCP connections over IP, and uses the descriptors that it has. Opens no file,
	 * starts no process or thread, and makes no memory executable.
	 */
	CONFINEMENT_RELAY,
	/*
	 * Reads files and uses sockets of every kind, because this machine's name services need
	 * them: some ask a daemon over a local socket.
	 */
	CONFINEMENT_LOOKUP,
	/* Like CONFINEMENT_RELAY, plus what libcurl and its TLS need. */
	CONFINEMENT_KEYS,
	/* Like CONFINEMENT_RELAY, but it makes neither sockets nor connections. */
	CONFINEMENT_FORWARD,
};

/*
 * Becomes the user who works in the cell; only root needs this, and a process that is root is never
 * confined. From then on the calling process ends with its parent.
 */
bool confinement_become(uid_t uid, gid_t gid, struct error *err) ATTR_NODISCARD;

/* Call this while files may still be opened. CELL_UNAVAILABLE: this machine has no libseccomp. */
bool confinement_prepare(struct error *err) ATTR_NODISCARD;

/*
 * Permanently restricts the calling process, which must have one thread, and everything it starts.
 */
bool confinement_apply(enum confinement_kind kind, struct error *err) ATTR_NODISCARD;

#endif
