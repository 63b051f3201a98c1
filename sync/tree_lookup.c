/* SPDX-License-Identifier: MIT */
#include "sync/tree_lookup.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

void tree_lookup_init(struct tree_lookup *lookup, struct store *store, const git_oid *tree)
{
	*lookup = (struct tree_lookup){.store = store, .tree = *tree};
}

void tree_lookup_finish(struct tree_lookup *lookup)
{
	tree_view_finish(&lookup->view);
	free(lookup->folder);
	lookup->folder = NULL;
}

static int compare_name(const void *name, const void *entry)
{
	return span_compare(
		*(const struct span *)name, ((const struct tree_view_entry *)entry)->name);
}

static const struct tree_view_entry *entry_of(const struct tree_view *view, struct span name)
{
	return view->count == 0 ? NULL
	                        : bsearch(&name, view->entries, view->count, sizeof(*view->entries),
					  compare_name);
}

/* Goes down to a folder, one name after another. */
static bool descend(struct tree_lookup *lookup, struct span rest, struct error *err)
{
	struct trail trail = {0};
	bool loaded = tree_view_load(&lookup->view, lookup->store, &lookup->tree, &trail, err);
	while (loaded && rest.len > 0 && !lookup->is_blocked) {
		const char *slash = memchr(rest.data, '/', rest.len);
		struct span name = {rest.data, slash ? (size_t)(slash - rest.data) : rest.len};
		const struct tree_view_entry *entry = entry_of(&lookup->view, name);
		struct tree_view below;
		size_t mark;
		size_t taken = name.len + (slash != NULL);
		lookup->is_blocked = tree_view_leaf(entry).mode != ENTRY_NONE;
		if (!trail_push(&trail, name, &mark, err)) {
			return false;
		}
		loaded =
			tree_view_load(&below, lookup->store, tree_view_folder(entry), &trail, err);
		tree_view_finish(&lookup->view);
		lookup->view = below;
		rest = (struct span){rest.data + taken, rest.len - taken};
	}
	return loaded;
}

bool tree_lookup_find(struct tree_lookup *lookup, const char *path,
	const struct tree_view_entry **out_entry, bool *out_blocked, struct error *err)
{
	const char *slash = strrchr(path, '/');
	struct span folder = {path, slash ? (size_t)(slash - path) : 0};
	if (!lookup->folder || !span_equals(span_of(lookup->folder), folder)) {
		tree_lookup_finish(lookup);
		lookup->is_blocked = false;
		if (!descend(lookup, folder, err)) {
			return false;
		}
		lookup->folder = mem_strndup(folder);
	}
	*out_entry = entry_of(&lookup->view, span_of(slash ? slash + 1 : path));
	*out_blocked = lookup->is_blocked;
	return true;
}
