/* SPDX-License-Identifier: MIT */
#include "broker/agent/mcp_entry.h"

#include <stdlib.h>

/* The value of PATH in env[]; "" if it is missing. */
static char *read_path(const struct json_doc *doc, json_node env)
{
	if (!json_is(doc, env, JSON_ARRAY)) {
		return mem_strdup("");
	}
	for (json_node node = json_first(doc, env); node != JSON_NODE_NONE;
		node = json_next(doc, node)) {
		if (json_string_is(doc, json_get(doc, node, "name"), "PATH")) {
			char *path = json_string(doc, json_get(doc, node, "value"));
			return path ? path : mem_strdup("");
		}
	}
	return mem_strdup("");
}

void mcp_entry_init(struct mcp_entry *entry, const struct path_map *map, const struct json_doc *doc,
	json_node node)
{
	*entry = (struct mcp_entry){.doc = doc, .node = node};
	if (!json_is(doc, node, JSON_OBJECT)) {
		return;
	}
	json_node type = json_get(doc, node, "type");
	json_node command = json_get(doc, node, "command");
	entry->name = json_string(doc, json_get(doc, node, "name"));
	if (json_string_is(doc, type, "http") || json_string_is(doc, type, "sse")) {
		entry->url = json_string(doc, json_get(doc, node, "url"));
	} else if (type == JSON_NODE_NONE || json_string_is(doc, type, "stdio")) {
		char *local = json_string(doc, command);
		entry->command = local ? path_map_apply(map, PATH_TO_RUNTIME, local) : NULL;
		entry->path = read_path(doc, json_get(doc, node, "env"));
		entry->quoted = local ? json_raw(doc, command) : (struct span){NULL, 0};
		free(local);
	}
}

void mcp_entry_finish(struct mcp_entry *entry)
{
	free(entry->name);
	free(entry->url);
	free(entry->command);
	free(entry->path);
}
