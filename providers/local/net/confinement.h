/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_CONFINEMENT_H
#define PROVIDERS_LOCAL_NET_CONFINEMENT_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * What the two processes of a cell's network cannot do any more once they read what strangers have
 * written. Both: gain privileges, show their memory to others, leave a core, write to files,
 * execute anything, signal or look at another process. A refused call fails with EPERM.
 */
enum confinement_kind {
	/*
	 * It makes TCP connections over IP, and uses the descriptors that it has. It opens no
	 * file, starts neither process nor thread, and makes no memory executable.
	 */
	CONFINEMENT_RELAY,
	/*
	 * It reads files and uses sockets of every kind, because name services of this machine do:
	 * some ask a daemon over a local socket.
	 */
	CONFINEMENT_LOOKUP,
};

/* While files may be opened. CELL_UNAVAILABLE: this machine has no libseccomp. */
bool confinement_prepare(struct error *err) ATTR_NODISCARD;

/* For the calling process, which has one thread, and all that it starts; for good. */
bool confinement_apply(enum confinement_kind kind, struct error *err) ATTR_NODISCARD;

#endif
