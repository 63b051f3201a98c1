/* SPDX-License-Identifier: MIT */
#include "sync/root_note.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "sync/tree_view.h"
#include "sync/workspace.h"

enum { TEXT_SIZE = 48 };

bool root_note_take(struct root_note *note, const char *root, struct error *err)
{
	struct stat status;
	if (stat(root, &status) < 0) {
		return error_set_errno(err, errno, "the workspace %s", root);
	}
	*note = (struct root_note){.device = status.st_dev, .inode = status.st_ino};
	return true;
}

bool root_note_is_same(const struct root_note *a, const struct root_note *b)
{
	return a->inode == b->inode;
}

static void write_text(const struct root_note *note, char text[TEXT_SIZE])
{
	text_whole(text, TEXT_SIZE, "%" PRIu64 ".%" PRIu64, note->device, note->inode);
}

bool root_note_id(
	struct store *store, const struct root_note *note, git_oid *out_id, struct error *err)
{
	char text[TEXT_SIZE];
	write_text(note, text);
	return store->git->odb_hash(out_id, text, strlen(text), GIT_OBJECT_BLOB) == 0 ||
	       error_set_git(store->git, err, "noting which folder the workspace is");
}

static void note_name(char name[SYNC_NAME_MAX], const char *sandbox)
{
	text_whole(name, SYNC_NAME_MAX, "roots/%s", sandbox);
}

/* The tree has one folder, whose name is the note. */
bool root_note_find(struct store *store, const char *sandbox, struct root_note *out)
{
	char name[SYNC_NAME_MAX], text[TEXT_SIZE];
	struct trail trail = {0};
	struct tree_view view;
	struct error ignored;
	git_oid tree;
	note_name(name, sandbox);
	if (!store_find(store, name, &tree, &ignored)) {
		return false;
	}
	bool found = tree_view_load(&view, store, &tree, &trail, &ignored) && view.count == 1 &&
	             view.entries[0].name.len < sizeof(text);
	if (found) {
		text_whole(text, sizeof(text), "%.*s", (int)view.entries[0].name.len,
			view.entries[0].name.data);
		// NOLINTNEXTLINE(cert-err34-c): the count of items read is check enough
		found = sscanf(text, "%" SCNu64 ".%" SCNu64, &out->device, &out->inode) == 2;
	}
	tree_view_finish(&view);
	return found;
}

bool root_note_keep(
	struct store *store, const char *sandbox, const struct root_note *note, struct error *err)
{
	char name[SYNC_NAME_MAX], text[TEXT_SIZE];
	git_oid empty, tree, commit;
	note_name(name, sandbox);
	write_text(note, text);
	struct tree_view_entry entry = {span_of(text), TREE_VIEW_FOLDER, store_empty_tree};
	return tree_view_write(store, NULL, 0, &empty, err) &&
	       tree_view_write(store, &entry, 1, &tree, err) &&
	       store_keep(store, name, &tree, NULL, "root", &commit, err);
}

bool root_note_forget(struct store *store, const char *sandbox, struct error *err)
{
	char name[SYNC_NAME_MAX];
	note_name(name, sandbox);
	return store_forget(store, name, err) || err->code == ERROR_NOT_FOUND;
}
