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
 * What a cell shows of this machine. The broker writes the plan, and the cell's own program reads
 * it. All paths are absolute and contain no links. An entry must not lie in what an earlier entry
 * makes writable; otherwise the cell is refused. Everything that no entry names is visible but
 * read-only, subject to the user's permissions.
 */
enum cell_rule {
	CELL_HIDE,  // an empty folder or file; bindings may appear in the folder
	CELL_READ,  // readable, also in a hidden folder; ignored if missing
	CELL_WRITE, // like CELL_READ, but writable; must exist
	CELL_KEEP,  // like CELL_WRITE, but files cannot be executed by name
	CELL_PUT,   // a new file in the cell's home; `source` is its content
	CELL_RULES, // number of rules
};

struct cell_entry {
	enum cell_rule rule;
	const char *path;   // in the cell
	const char *source; // on this machine; NULL: the same path. CELL_PUT: a text
};

enum { CELL_FORWARDS_MAX = 8 };

struct cell_plan {
	const char *user;      // name of the user in the cell
	const char *home;      // path of the home, which is the cell's own and ends with it
	const char *home_name; // another path of it, possibly through links; NULL: none
	uid_t uid;             // the user to become if we are root, and never root; else ours
	gid_t gid;             // its group
	bool has_network;      // this machine's network; otherwise only an own loopback
	bool has_ports;        // also the sockets of net/ports.h; only without has_network
	uint16_t services[PORTS_SERVICES_MAX]; // for has_ports, as ports_open takes them
	size_t service_count;
	size_t key_count;                     // sockets for keys, at most PORTS_KEYS_MAX
	uint16_t forwards[CELL_FORWARDS_MAX]; // without has_network: ports that cell/connector.h
	                                      // reaches
	size_t forward_count;
	bool has_limit_group; // limit_group is open; neither field is packed
	int limit_group;      // for processes with limits; removed with the cell
	const struct cell_entry *entries;
	size_t entry_count;
};

enum { CELL_ENTRIES_MAX = 4096 };

/* Writes the plan to a new memory file. Returns its descriptor, or -1. */
int cell_plan_pack(const struct cell_plan *plan, struct error *err) ATTR_NODISCARD;

/* A plan as cell_plan_pack wrote it. The caller frees `block` and `entries`. */
struct cell_read_plan {
	struct cell_plan plan;
	char *block;
	struct cell_entry *entries;
};
bool cell_plan_unpack(struct cell_read_plan *read, int memory_fd, struct error *err) ATTR_NODISCARD;
void cell_plan_finish(struct cell_read_plan *read);

#endif
