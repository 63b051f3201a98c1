/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_WIRE_H
#define PROVIDERS_LOCAL_CELL_WIRE_H

#include <limits.h>

#include "base/error.h"
#include "providers/local/net/ports.h"

/*
 * What the broker and a cell's first process say to each other over a SOCK_SEQPACKET pair, a packet
 * a message. They are one program, so that structs are the format. The broker's first packet is one
 * byte with two descriptors: the plan, and the socket of the cell's spawner (base/spawner.h). The
 * cell answers it when it is ready, with a descriptor of its home, and where the plan has_ports
 * with its sockets (net/ports.h), in their order; then each order is answered, one after the other.
 * A notice may come between.
 */
enum { CELL_FD_PLAN, CELL_FD_SPAWNER, CELL_FDS };
enum { CELL_ANSWER_FDS_MAX = 1 + PORTS_MAX };

/* Shows a folder; with a descriptor, a plan's, what its entries say (pins_show). */
struct cell_order {
	char path[PATH_MAX];
};

struct cell_answer {
	enum error_code code; // ERROR_NONE: done
	bool is_unavailable;  // by the reason CELL_UNAVAILABLE
	bool is_notice;       // it answers nothing: the text is for the user
	int landlock;         // limits_landlock, of the first answer
	int landlock_errnum;  // the same
	char text[ERROR_TEXT_MAX];
};

#endif
