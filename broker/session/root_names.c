/* SPDX-License-Identifier: MIT */
#include "broker/session/root_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/*
 * The map of the roots, and of the earlier sandboxes whose sessions the agent may list. Used for
 * listing sessions.
 */
static void init_known(void *part)
{
	path_map_init(part);
}

static void finish_known(void *part, void *peer)
{
	path_map_finish(part);
}

static const struct part_type known_type = {
	.size = sizeof(struct path_map), .init = init_known, .finish = finish_known};

static struct path_map *known_of(struct peer *peer)
{
	return parts_get(&peer->parts, &known_type);
}

void root_names_init(struct peer *peer)
{
	path_map_init(&peer->map);
	(void)known_of(peer);
}

void root_names_finish(struct peer *peer)
{
	path_map_finish(&peer->map);
}

static void note_known(struct peer *peer, const struct sandbox_root *root)
{
	bool is_added = path_map_add(known_of(peer), root->local, root->runtime);
	(void)is_added; // the other sessions are listed under the agent's names
}

void root_names_read_known(struct peer *peer)
{
	const struct sandbox *sandbox = agent_sandbox(peer->agent);
	for (size_t i = 0; i < sandbox_known_count(sandbox); i++) {
		note_known(peer, sandbox_known_at(sandbox, i));
	}
}

void root_names_read_roots(struct peer *peer)
{
	struct sandbox *sandbox = agent_sandbox(peer->agent);
	for (size_t i = 0; i < sandbox_root_count(sandbox); i++) {
		const struct sandbox_root *root = sandbox_root_at(sandbox, i);
		if (!path_map_add(&peer->map, root->local, root->runtime)) {
			log_warning("%s: more than %d roots; the paths of %s are not translated",
				peer->hop, PATH_MAP_MAX, root->local);
		}
		note_known(peer, root);
	}
}

char *relay_map_path(const struct peer *peer, enum path_direction direction, const char *path)
{
	return path_map_apply(&peer->map, direction, path);
}

/* An agent that works in the directory itself knows it by the names that it was given. */
void relay_know_as(struct peer *peer, const char *name, const char *real)
{
	struct path_map *known = known_of(peer);
	char *runtime = path_map_apply(known, PATH_TO_RUNTIME, real);
	if (strcmp(runtime, real) != 0) {
		path_map_prefer(known, name, runtime);
	}
	free(runtime);
}

void relay_know_root(struct peer *peer, const char *local, const char *runtime)
{
	note_known(peer, &(struct sandbox_root){.local = local, .runtime = runtime});
}

const struct path_map *relay_map_of(const struct peer *peer, const struct method *method)
{
	bool is_list = method && method->route == ROUTE_LIST;
	return is_list ? parts_find(&peer->parts, &known_type) : &peer->map;
}
