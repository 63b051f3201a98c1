/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_PLAN_H
#define PROVIDERS_LOCAL_CELL_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/error.h"
#include "providers/local/net/ports.h"

/*
 * What a cell shows of this machine, as the broker writes it and the cell's own program reads it.
 * All paths are absolute and have no links in them; what an entry names does not lie in what one
 * before it makes writable, or the cell is refused. Whatever no line names is visible and cannot be
 * changed, where the user's permissions allow that.
 */
enum cell_rule {
	CELL_HIDE,  // an empty folder, in which bindings may appear, or an empty file in its place
	CELL_READ,  // visible, also inside what is hidden; nothing where it is not there
	CELL_WRITE, // the same, and may be written; it has to be there
	CELL_KEEP,  // the same, and nothing in it can be executed by its name
	CELL_PUT,   // a file of the cell's own in its home; `source` is its content
	CELL_RULES, // how many there are
};

struct cell_entry {
	enum cell_rule rule;
	const char *path;   // in the cell
	const char *source; // on this machine; NULL: the same. CELL_PUT: a text
};

struct cell_plan {
	const char *user; // the name of who works there
	const char *home; // the folder in which it has a home of its own, which ends with the cell
	const char *home_name; // another name of it, which may lead through links; NULL: none
	uid_t uid;             // whom to become, where we are root: never root; otherwise ours
	gid_t gid;             // the same
	bool has_network;      // this machine's; otherwise a loopback of its own
	bool has_ports;        // without has_network: beside it the sockets of net/ports.h
	uint16_t services[PORTS_SERVICES_MAX]; // of has_ports, as ports_open takes them
	size_t service_count;
	bool has_limit_group; // the next; neither is packed
	int limit_group;      // for what is started there with limits; removed with the cell
	const struct cell_entry *entries;
	size_t entry_count;
};

enum { CELL_ENTRIES_MAX = 4096 };

/* The plan in a new memory file; its descriptor, or -1. */
int cell_plan_pack(const struct cell_plan *plan, struct error *err) ATTR_NODISCARD;

/* What cell_plan_pack wrote. `block` and `entries` are the caller's to free. */
struct cell_read_plan {
	struct cell_plan plan;
	char *block;
	struct cell_entry *entries;
};
bool cell_plan_unpack(struct cell_read_plan *read, int memory_fd, struct error *err) ATTR_NODISCARD;
void cell_plan_finish(struct cell_read_plan *read);

#endif
