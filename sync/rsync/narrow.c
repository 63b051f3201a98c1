/* SPDX-License-Identifier: MIT */
#include "sync/rsync/narrow.h"

#include <string.h>

#include "base/text.h"
#include "sync/git/trees.h"

struct narrow {
	struct rules *rules;
	char last[NARROW_PATH_MAX + 1]; // the previous path
	bool fits;
};

/* Adds the folders on the way that were not on the way to the previous path. */
static void add_way(struct narrow *narrow, const char *path)
{
	char folder[NARROW_PATH_MAX + 1];
	size_t same = 0;
	while (path[same] && path[same] == narrow->last[same]) {
		same++;
	}
	for (size_t i = 1; path[i]; i++) {
		if (path[i] == '/' && i >= same) {
			text_whole(folder, sizeof(folder), "%.*s", (int)i, path);
			rules_add_path(narrow->rules, true, folder, "", true);
		}
	}
}

static bool add(void *data, const struct tree_change *change, struct error *err)
{
	struct narrow *narrow = data;
	size_t length = strlen(change->path);
	narrow->fits = narrow->fits && length <= NARROW_PATH_MAX &&
	               narrow->rules->count < NARROW_RULES_MAX;
	if (narrow->fits) {
		add_way(narrow, change->path);
		rules_add_path(narrow->rules, true, change->path, "", false);
		if (change->from.mode == ENTRY_NONE) { // empty folders may be in its place
			rules_add_path(narrow->rules, true, change->path, "/**", true);
		}
		memcpy(narrow->last, change->path, length + 1);
	}
	return true;
}

bool narrow_make(struct rules *rules, struct store *store, const git_oid *from, const git_oid *to,
	bool *out_fits, struct error *err)
{
	struct narrow narrow = {.rules = rules, .fits = true};
	if (!trees_compare(store, from, to, add, &narrow, err)) {
		return false;
	}
	rules_add(rules, false, "*", false);
	*out_fits = narrow.fits;
	return true;
}
