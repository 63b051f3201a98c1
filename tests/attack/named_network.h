/* SPDX-License-Identifier: MIT */
#ifndef TESTS_ATTACK_NAMED_NETWORK_H
#define TESTS_ATTACK_NAMED_NETWORK_H

#include <ev.h>
#include <stdbool.h>

#include "base/process.h"
#include "base/settings.h"
#include "providers/local/cell/cell.h"

/* The network of a cell whose profile says `network = allow`, and names one host that is nowhere.
 */
struct named_network {
	struct cell_network *network;
	struct settings settings;
	bool is_ready;
};

/* The cell is ready, and was made with ports. A network that cannot be made fails the test. */
void named_network_open(struct named_network *self, struct ev_loop *loop, struct spawner *machine,
	struct cell *cell);
void named_network_close(struct named_network *self); // also of one that was never opened

#endif
