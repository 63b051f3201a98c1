/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_PINS_H
#define PROVIDERS_LOCAL_CELL_PINS_H

#include "base/attr.h"
#include "base/error.h"
#include "providers/local/cell/plan.h"

/*
 * Pins: mounts in a folder that processes in a cell may write, on files that they may not change or
 * move away. The cell's first process makes them. A pin is a mount on a file or folder of this
 * machine. When a program outside replaces or removes the pinned file, the kernel removes the mount
 * in every namespace. Therefore the folders that contain pins are watched, and a file that takes
 * the place of a pinned one is pinned again.
 */
struct pins;

/* `root_fd` comes from mounts_build; borrowed. */
struct pins *pins_create(int root_fd);

/*
 * Shows a folder of this machine together with its pins: no process sees it without them. The first
 * entry is the folder itself, writable. Every other entry lies in it and comes after the entries
 * that contain it: CELL_READ cannot be changed; CELL_WRITE can be changed but not moved away. If
 * the file of an entry is missing, pins waits for it. If the folder is shown already, only entries
 * without a pin get one, so processes in the cell may have changed these files before. A list of a
 * single CELL_READ entry shows a folder read-only.
 */
bool pins_show(struct pins *pins, const struct cell_plan *list, struct error *err) ATTR_NODISCARD;

/* Poll this for reading; -1: nothing is watched. */
int pins_fd(const struct pins *pins);

/*
 * After this many milliseconds pins_renew must be called even without an event; 0: now; -1: never.
 * It is not -1 while a folder could not be watched: processes in a cell can use up the watches of
 * its user (fs.inotify.max_user_watches). Nor is it after a file was deleted while it was pinned.
 */
int pins_patience_ms(const struct pins *pins);

/*
 * Reads the events, and pins again every file that has lost its pin. Calls `tell` for each of them
 * with a text that names it and says whether its content has changed, and once when a folder cannot
 * be watched any more.
 */
void pins_renew(struct pins *pins, void (*tell)(const char *text));

#endif
