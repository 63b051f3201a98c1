/* SPDX-License-Identifier: MIT */
#ifndef BROKER_INIT_EDITORS_H
#define BROKER_INIT_EDITORS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/*
 * The editors whose settings init can write: where each keeps its settings, and how these name an
 * agent. No other place in the code has facts about one editor.
 */
struct editor;

const struct editor *editor_at(size_t index); // NULL after the last
const struct editor *editor_find(const char *name);
const char *editor_name(const struct editor *editor);
const char *editor_title(const struct editor *editor); // for people

/* The path of the editor's settings, owned by the caller; NULL if HOME is not set. */
char *editor_path(const struct editor *editor, const char *const *environment);

/* Whether the editor seems to be installed: its program or its own folder exists. */
bool editor_is_here(const struct editor *editor, const char *const *environment);

/* The name of the settings' member that contains all agents by name. */
const char *editor_member(const struct editor *editor);

/*
 * Appends the settings of one agent, which these words start, in the form for jsonc_add. The buffer
 * must have room.
 */
void editor_write_agent(const struct editor *editor, const char *const *argv, struct buf *out);

#endif
