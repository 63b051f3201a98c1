/* SPDX-License-Identifier: MIT */
#include "sync/deletions.h"

#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "sync/id.h"
#include "sync/tree_view.h"

enum { FROM, TO, SIDE_COUNT };

struct finder {
	struct deletions *deletions;
	struct store *store;
	struct trail trail;
};

static bool find_in_folder(
	struct finder *finder, const git_oid *from, const git_oid *to, struct error *err);

/* The id of all paths is that of the last one behind the id of those before it. */
static bool add(struct finder *finder, struct error *err)
{
	struct deletions *deletions = finder->deletions;
	const struct git *git = finder->store->git;
	char bytes[sizeof(deletions->id.id) + PATH_MAX];
	size_t len = finder->trail.len;
	memcpy(bytes, deletions->id.id, sizeof(deletions->id.id));
	memcpy(bytes + sizeof(deletions->id.id), finder->trail.path, len);
	if (deletions->count++ < DELETIONS_NAMED_MAX) {
		words_append(&deletions->named, finder->trail.path);
	}
	return git->odb_hash(&deletions->id, bytes, sizeof(deletions->id.id) + len,
		       GIT_OBJECT_BLOB) == 0 ||
	       error_set_git(git, err, "counting what was deleted");
}

static bool find_at(struct finder *finder, const struct tree_view_row *row, struct error *err)
{
	size_t mark;
	const struct tree_view_entry *from = row->sides[FROM];
	const git_oid *folder = tree_view_folder(from);
	if (!from || !trail_push(&finder->trail, row->name, &mark, err)) {
		return from == NULL;
	}
	bool is_file = tree_view_leaf(from).mode != ENTRY_NONE;
	bool found = true;
	if (is_file && tree_view_leaf(row->sides[TO]).mode == ENTRY_NONE) {
		found = add(finder, err);
	} else if (folder) {
		found = find_in_folder(finder, folder, tree_view_folder(row->sides[TO]), err);
	}
	trail_pop(&finder->trail, mark);
	return found;
}

static bool find_in_folder(
	struct finder *finder, const git_oid *from, const git_oid *to, struct error *err)
{
	if (to && id_equal(from, to)) {
		return true;
	}
	struct tree_view views[SIDE_COUNT] = {{0}};
	bool found = tree_view_load(&views[FROM], finder->store, from, &finder->trail, err) &&
	             tree_view_load(&views[TO], finder->store, to, &finder->trail, err);
	struct tree_view_walk walk = {.views = views, .count = SIDE_COUNT};
	struct tree_view_row row;
	while (found && tree_view_next(&walk, &row)) {
		found = find_at(finder, &row, err);
	}
	tree_view_finish(&views[FROM]);
	tree_view_finish(&views[TO]);
	return found;
}

bool deletions_find(struct deletions *deletions, struct store *store, const git_oid *from,
	const git_oid *to, struct error *err)
{
	*deletions = (struct deletions){0};
	struct finder *finder = mem_alloc_zero(sizeof(*finder));
	finder->deletions = deletions;
	finder->store = store;
	bool found = find_in_folder(finder, from, to, err);
	free(finder);
	return found;
}

void deletions_finish(struct deletions *deletions)
{
	words_free(deletions->named);
	*deletions = (struct deletions){0};
}
