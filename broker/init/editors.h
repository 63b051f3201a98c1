/* SPDX-License-Identifier: MIT */
#ifndef BROKER_INIT_EDITORS_H
#define BROKER_INIT_EDITORS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/*
 * The editors whose settings can be written: where they keep them, and what names an agent there.
 * A fact about one editor stands here and nowhere else.
 */
struct editor;

const struct editor *editor_at(size_t index); // NULL after the last
const struct editor *editor_find(const char *name);
const char *editor_name(const struct editor *editor);
const char *editor_title(const struct editor *editor); // for people

/* The file with its settings, owned by the caller; NULL where HOME is not set. */
char *editor_path(const struct editor *editor, const char *const *environment);

/* Whether it seems to be installed: its program, or a folder of its own. */
bool editor_is_here(const struct editor *editor, const char *const *environment);

/* The member of the settings that has all agents, by their names. */
const char *editor_member(const struct editor *editor);

/*
 * Appends the value of one of them, as jsonc_add takes it: an agent that is started by these
 * words. The buffer has no maximum that matters.
 */
void editor_write_agent(const struct editor *editor, const char *const *argv, struct buf *out);

#endif
