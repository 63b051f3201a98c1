/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_AGENT_HOME_H
#define PROVIDERS_LOCAL_AGENT_HOME_H

#include "base/attr.h"
#include "base/settings.h"
#include "providers/impl.h"
#include "providers/local/agent_files.h"
#include "providers/local/cell_drawing.h"
#include "providers/local/owner.h"

/*
 * What a confined agent has in its home of its own files (agent_files.h):
 *   - its sessions, in a folder of the profile's, which all cells of the profile share while they
 *     run; nothing in it is executed (CELL_KEEP);
 *   - its login and harmless settings, each a file of the cell's own, with the named keys of the
 *     user's file alone.
 * The rest of its home is empty and ends with the cell. Loop thread; a few small files are read.
 */
struct agent_home {
	const struct agent_files *files; // NULL: none of a known agent
	char *home;                      // the user's, without links; owned
	char *kept;                      // the profile's folder; owned
	struct owner owner;              // of what lies in the cell and in `kept`
};

enum { AGENT_FILE_MAX = 256 << 10 };

/* `folder` is of the profile, in the state folder; made where it is missing. */
bool agent_home_init(struct agent_home *agent, const struct settings *settings, const char *home,
	const char *folder, const struct owner *owner, struct error *err) ATTR_NODISCARD;
void agent_home_finish(struct agent_home *agent);

/* After the user's paths, which come first: what overlaps with one of them is left out. */
bool agent_home_draw(const struct agent_home *agent, struct cell_drawing *drawing,
	struct sandbox *sandbox, struct error *err) ATTR_NODISCARD;

/* Sets and removes variables, so that the agent looks for its files there. */
void agent_home_set_variables(
	const struct agent_home *agent, char ***environment, struct sandbox *sandbox);

/*
 * Reads a file that somebody hostile may have put there: no link on the way, no waiting, at most
 * AGENT_FILE_MAX. `out` is initialised. ERROR_NOT_FOUND where it is missing.
 */
bool agent_home_read(
	int folder, const char *path, struct buf *out, struct error *err) ATTR_NODISCARD;

#endif
