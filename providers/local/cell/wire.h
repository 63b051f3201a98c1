/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_WIRE_H
#define PROVIDERS_LOCAL_CELL_WIRE_H

#include <limits.h>

#include "base/error.h"
#include "providers/local/net/ports.h"

/*
 * Messages between the broker and a cell's first process, over a SOCK_SEQPACKET pair; each packet
 * is one message. Both are the same program, so structs define the format. The broker's first
 * packet is one byte with two descriptors: the plan, and the socket of the cell's spawner
 * (base/spawner.h). When the cell is ready, it answers with a descriptor of its home and then, in
 * order, its sockets (net/ports.h) if the plan has_ports, and its sockets for keys. From then on it
 * answers each order, one after the other. Notices may come between the answers.
 */
enum { CELL_FD_PLAN, CELL_FD_SPAWNER, CELL_FDS };
enum { CELL_ANSWER_FDS_MAX = 1 + PORTS_MAX + PORTS_KEYS_MAX + 1 };

/* Shows a folder; with a plan's descriptor, shows its entries (pins_show). */
struct cell_order {
	char path[PATH_MAX];
};

struct cell_answer {
	enum error_code code; // ERROR_NONE: success
	bool is_unavailable;  // the error has the reason CELL_UNAVAILABLE
	bool is_notice;       // not an answer: the text is for the user
	int landlock;         // limits_landlock; only in the first answer
	int landlock_errnum;  // the same
	char text[ERROR_TEXT_MAX];
};

#endif
