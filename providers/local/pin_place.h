/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_PIN_PLACE_H
#define PROVIDERS_LOCAL_PIN_PLACE_H

#include "base/attr.h"
#include "base/settings.h"
#include "providers/provider.h"

/*
 * Folders that a confined agent may not have as its workspace, because they would undo the
 * confinement: the home, the broker's own folders, this machine's system folders, the sockets and
 * the storage of container engines, a repository's own files, and each folder behind a link,
 * because an agent may have made the link. It knows neither how the agent is confined nor what is
 * pinned.
 */
struct pin_places {
	char **refused;      // owned; a workspace may neither contain these nor lie in one
	char **above;        // owned; a workspace may not contain these
	char *home_name;     // owned; HOME, possibly through links
	char *home;          // owned; the same folder without links
	const char *instead; // static; what the user can do instead, for people
};

/* `state` is the state folder, without links; NULL: there is none. */
void pin_places_init(struct pin_places *places, const struct provider_context *context,
	const struct settings *settings, const char *home_name, const char *state,
	const char *instead);
void pin_places_copy(struct pin_places *places, const struct pin_places *from);
void pin_places_finish(struct pin_places *places); // zeroed is fine

/*
 * Checks a workspace. `path` is `local` without links. ERROR_CONFIG. Any thread.
 */
bool pin_places_check(const struct pin_places *places, const char *local, const char *path,
	struct error *err) ATTR_NODISCARD;

/*
 * Whether the repository of a worktree may be shown beside the worktree: it contains none of the
 * folders that a workspace may not contain. `path` is without links. Any thread.
 */
bool pin_places_take_repository(const struct pin_places *places, const char *path);

#endif
