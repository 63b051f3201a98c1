/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_PINS_H
#define PROVIDERS_LOCAL_CELL_PINS_H

#include "base/attr.h"
#include "base/error.h"
#include "providers/local/cell/plan.h"

/*
 * Pins: mounts in a folder that everybody in a cell may write, on what nobody there may change or
 * move away. They are the first process's. A pin is a mount on a file or folder of this machine's,
 * and the kernel takes it away, in every namespace, when somebody on this machine replaces or
 * removes that. So the folders that hold pins are watched, and what has come in the place of a
 * pinned file is pinned again.
 */
struct pins;

/* `root_fd` is that of mounts_build; borrowed. */
struct pins *pins_create(int root_fd);

/*
 * Shows a folder of this machine with its pins, all at once: nobody sees it without them. Of the
 * entries the first is the folder, writable; each other one lies in it and follows what contains
 * it: CELL_READ cannot be changed; CELL_WRITE can, but it cannot be moved away. An entry that is
 * missing by now is watched for. A list of one entry that is CELL_READ shows a folder read-only.
 */
bool pins_show(struct pins *pins, const struct cell_plan *list, struct error *err) ATTR_NODISCARD;

/* To poll for reading; -1: nothing is watched. */
int pins_fd(const struct pins *pins);

/*
 * Reads what has happened, and pins again what has lost its pin. `tell` is called for each that
 * had: the text names it, and says whether it differs from what was pinned before.
 */
void pins_renew(struct pins *pins, void (*tell)(const char *text));

#endif
