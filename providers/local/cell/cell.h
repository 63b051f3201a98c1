/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_CELL_H
#define PROVIDERS_LOCAL_CELL_CELL_H

#include <ev.h>

#include "base/attr.h"
#include "base/process.h"
#include "providers/local/cell/plan.h"

/*
 * A cell: a confined environment for processes of this machine, made without root. This folder
 * knows what the kernel can confine and how; it knows nothing of workspaces, agents or profiles.
 * The caller decides what a cell shows (struct cell_plan) and starts processes in it through
 * cell_spawner, like through any other spawner. Loop thread only; nothing is raised before a call
 * returns.
 *
 * A cell has its own namespaces for users, mounts, processes, System V IPC and the host name, and
 * for the network unless the plan shares it. Its root is this machine's, read-only. /proc, /dev,
 * /tmp, /var/tmp, /dev/shm, /run, /home and /root are the cell's own, as are passwd and group. A
 * folder that contains a socket of this machine when the cell is made is empty in the cell.
 */
struct cell;

struct cell_listener {
	void (*on_ready)(void *data);
	/*
	 * Raised once: the cell could not be made, or it and all its processes have ended.
	 * CELL_UNAVAILABLE: this machine never allows cells, and the text says what to do; no
	 * process in a cell can cause this. Destroy the cell here or later. If this comes before
	 * on_ready, nothing was started in the cell.
	 */
	void (*on_ended)(void *data, const struct error *err);
	/* Receives notices for the user about pinned files (cell_show_pinned); may be NULL. */
	void (*on_notice)(void *data, const char *text);
};

enum { CELL_START_MAX_MS = 10000 };

/* `outer` starts processes on this machine. The plan is borrowed until this returns. */
struct cell *cell_create(struct ev_loop *loop, struct spawner *outer, const struct cell_plan *plan,
	const struct cell_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/* Starts processes in the cell (process_start), from on_ready on. */
struct spawner *cell_spawner(const struct cell *cell);

/*
 * Whether the cell cannot reach abstract sockets of this machine; from on_ready on. Fails with
 * CELL_UNAVAILABLE if the cell shares this machine's network and the kernel's Landlock has no
 * scopes; the text says what to do. This matters because many desktops have such sockets, which
 * obey every process of their user.
 */
bool cell_keeps_abstract_sockets(const struct cell *cell, struct error *err) ATTR_NODISCARD;

/*
 * A descriptor of the cell's home, owned by the cell; from on_ready on. A process in the cell may
 * have put anything there.
 */
int cell_home(const struct cell *cell);

/* The user who works in the cell, from its plan. */
void cell_user(const struct cell *cell, uid_t *out_uid, gid_t *out_gid);

/*
 * Gives the caller the cell's sockets if its plan has_ports, as ports_open makes them; from
 * on_ready on, and only once. Only these descriptors keep the sockets open: once they are closed,
 * the kernel refuses every connection in the cell.
 */
void cell_take_ports(struct cell *cell, int out_fds[PORTS_MAX]);

/* Gives the caller the cell's sockets for keys, as many as the plan has; the rest is -1. */
void cell_take_keys(struct cell *cell, int out_fds[PORTS_KEYS_MAX]);

/* Gives the caller the end of the cell's connector (connector.h), if the plan has forwards. */
int cell_take_connector(struct cell *cell);

/*
 * Shows a folder of this machine at the same path in the cell, writable; from on_ready on. Raises
 * `done` once for each call, in call order, unless the cell ends or is destroyed first.
 */
typedef void cell_shown(void *data, const struct error *err);
bool cell_show(struct cell *cell, const char *path, cell_shown *done, void *data,
	struct error *err) ATTR_NODISCARD;

/*
 * Shows a folder with its pins, as pins_show (pins.h) describes for `list`: no process ever sees
 * the folder without them. If the folder is shown already, entries without a pin get one. Programs
 * outside of the cell may replace a pinned file; the new file is pinned at once, and on_notice
 * names it.
 */
bool cell_show_pinned(struct cell *cell, const struct cell_entry *list, size_t count,
	cell_shown *done, void *data, struct error *err) ATTR_NODISCARD;

/* Ends every process in the cell. Destroy the caller's processes before. NULL is fine. */
void cell_destroy(struct cell *cell);

#endif
