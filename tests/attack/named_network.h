/* SPDX-License-Identifier: MIT */
#ifndef TESTS_ATTACK_NAMED_NETWORK_H
#define TESTS_ATTACK_NAMED_NETWORK_H

#include <ev.h>
#include <stdbool.h>

#include "base/process.h"
#include "base/settings.h"
#include "providers/local/cell/cell.h"

/*
 * The network of a cell with `network = allow`. Its profile allows one host, which does not exist.
 */
struct named_network {
	struct cell_network *network;
	struct settings settings;
	bool is_ready;
};

/*
 * The cell must be ready, and have been made with ports. If the network cannot be made, the test
 * fails.
 */
void named_network_open(struct named_network *self, struct ev_loop *loop, struct spawner *machine,
	struct cell *cell);
void named_network_close(struct named_network *self); // may be called for one that was never opened

#endif
