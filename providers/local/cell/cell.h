/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_CELL_H
#define PROVIDERS_LOCAL_CELL_CELL_H

#include <ev.h>

#include "base/attr.h"
#include "base/process.h"
#include "providers/local/cell/plan.h"

/*
 * A cell: a confined environment for processes of this machine, made without root. It knows what
 * the kernel can confine and how; it knows nothing of workspaces, agents or profiles. Who makes one
 * says what it shows (struct cell_plan) and starts processes in it through cell_spawner, as with
 * any spawner. Loop thread only; nothing is raised before a call returns.
 *
 * In a cell are namespaces of its own for users, mounts, processes, System V IPC and the host's
 * name, and for the network unless the plan has that. Its root is this machine's, read-only; /proc,
 * /dev, /tmp, /var/tmp, /dev/shm, /run, /home and /root are its own, as are passwd and group.
 * Folders that contain a socket of this machine's when the cell is made are empty in it.
 */
struct cell;

struct cell_listener {
	void (*on_ready)(void *data);
	/*
	 * Once: it could not be made, or all in it has ended. CELL_UNAVAILABLE: this machine never
	 * lets us make one, and the text says what to do. Nobody in a cell can cause that. Destroy
	 * it here or later; before on_ready nothing was started in it.
	 */
	void (*on_ended)(void *data, const struct error *err);
	/* Something for the user about what is pinned (cell_show_pinned); may be NULL. */
	void (*on_notice)(void *data, const char *text);
};

enum { CELL_START_MAX_MS = 10000 };

/* The spawner is this machine's. The plan is borrowed until this returns. */
struct cell *cell_create(struct ev_loop *loop, struct spawner *outer, const struct cell_plan *plan,
	const struct cell_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/* For process_start, from on_ready on. */
struct spawner *cell_spawner(const struct cell *cell);

/*
 * Whether abstract sockets of this machine cannot be reached from it, from on_ready on. Fails with
 * CELL_UNAVAILABLE where the cell has this machine's network and the kernel has no scopes of
 * Landlock's; the text says what to do. A desktop often has such sockets, and they obey every
 * process of its user.
 */
bool cell_keeps_abstract_sockets(const struct cell *cell, struct error *err) ATTR_NODISCARD;

/*
 * The cell's home folder as a descriptor, which it keeps, from on_ready on. Whoever is in the cell
 * may have put anything there.
 */
int cell_home(const struct cell *cell);

/* Who works there, as its plan says. */
void cell_user(const struct cell *cell, uid_t *out_uid, gid_t *out_gid);

/*
 * The cell's sockets where its plan has_ports, from on_ready on, as ports_open gives them: the
 * caller's from then on. Once. Only they keep the sockets open: after their end the kernel refuses
 * whoever in the cell connects.
 */
void cell_take_ports(struct cell *cell, int out_fds[PORTS_MAX]);

/*
 * Shows a folder of this machine at its own path, writable, to all in the cell, from on_ready on.
 * Raises done once, in the order of the calls, unless the cell ends or is destroyed before.
 */
typedef void cell_shown(void *data, const struct error *err);
bool cell_show(struct cell *cell, const char *path, cell_shown *done, void *data,
	struct error *err) ATTR_NODISCARD;

/*
 * The same of a folder with its pins, as pins_show (pins.h) says of `list`: nobody sees it without
 * them. A folder that is shown already stays as it is. What is pinned is this machine's, and the
 * rest of this machine may replace it: then it is pinned again at once, and on_notice names it.
 */
bool cell_show_pinned(struct cell *cell, const struct cell_entry *list, size_t count,
	cell_shown *done, void *data, struct error *err) ATTR_NODISCARD;

/* Ends all in it. Its processes are destroyed before. NULL is fine. */
void cell_destroy(struct cell *cell);

#endif
