/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_AGENT_HOME_H
#define PROVIDERS_LOCAL_AGENT_HOME_H

#include "base/attr.h"
#include "base/settings.h"
#include "providers/impl.h"
#include "providers/local/agent_files.h"
#include "providers/local/cell_drawing.h"
#include "providers/local/cell_keys.h"
#include "providers/local/owner.h"

/*
 * Gives a confined agent the files of its own that it needs in its home (agent_files.h):
 *   - its sessions, in a folder of the profile that all running cells of the profile share; nothing
 *     in it can be executed (CELL_KEEP);
 *   - its login and harmless settings: each is a new file in the cell with only the listed keys of
 *     the user's file.
 *
 * The rest of the home is empty and ends with the cell. Loop thread; reads a few small files.
 */
struct agent_home {
	const struct agent_files *files; // NULL: no known agent
	char *home;                      // the user's home, without links; owned
	char *kept;                      // the profile's folder for sessions; owned
	const struct cell_keys *keys;    // keys that no file may contain; borrowed; may be NULL
	struct owner owner;              // owner of the files in the cell and in `kept`
	bool is_used;                    // top_fd is open
	int top_fd;                      // the profile's folder, locked
};

enum { AGENT_FILE_MAX = 256 << 10 };

/* `folder` is the profile's folder in the state folder; it is created if it is missing. */
bool agent_home_init(struct agent_home *agent, const struct settings *settings, const char *home,
	const char *folder, const struct owner *owner, struct error *err) ATTR_NODISCARD;
void agent_home_finish(struct agent_home *agent);

/*
 * Call this after the user's paths were drawn: it leaves out files that overlap with them. It also
 * leaves out a file that contains one of the keys, and the sandbox warns about it.
 */
bool agent_home_draw(const struct agent_home *agent, struct cell_drawing *drawing,
	struct sandbox *sandbox, struct error *err) ATTR_NODISCARD;

/* Sets and removes variables so that the agent finds these files. */
void agent_home_set_variables(
	const struct agent_home *agent, char ***environment, struct sandbox *sandbox);

/*
 * Reads a file that a hostile program may have written: follows no link, does not wait, and reads
 * at most AGENT_FILE_MAX bytes. `out` must be initialised. Fails with ERROR_NOT_FOUND if the file
 * is missing.
 */
bool agent_home_read(
	int folder, const char *path, struct buf *out, struct error *err) ATTR_NODISCARD;

#endif
