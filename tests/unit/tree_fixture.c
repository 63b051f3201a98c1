/* SPDX-License-Identifier: MIT */
#include "tests/unit/tree_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "sync/apply.h"
#include "sync/parked.h"
#include "sync/tree_view.h"

enum { ENTRIES_MAX = 512, TEXT_MAX = 1 << 20 };

/* ---- from lines ---- */

struct line {
	struct span path, content;
	char sign; // 0 for a plain file
};

static struct line line_parse(const char *text)
{
	const char *equals = strchr(text, '=');
	assert_non_null(equals);
	struct line line = {
		.path = {text, (size_t)(equals - text)}, .content = span_of(equals + 1)};
	if (line.path.len > 0 && strchr("*@#!", text[line.path.len - 1])) {
		line.sign = text[--line.path.len];
	}
	return line;
}

static struct store_entry line_entry(struct store *store, const struct line *line)
{
	struct error err;
	struct store_entry entry = {.mode = ENTRY_FILE};
	if (!store_put_bytes(store, line->content, &entry.id, &err)) {
		fail_msg("%s", err.text);
	}
	if (line->sign == '#' || line->sign == '!') {
		return store_big_entry(&entry.id, line->sign == '!');
	}
	entry.mode = line->sign == '*'   ? ENTRY_EXECUTABLE
	             : line->sign == '@' ? ENTRY_LINK
	                                 : ENTRY_FILE;
	return entry;
}

/* The component of the path that begins at `at`. */
static struct span name_at(struct span path, size_t at, bool *out_is_folder)
{
	const char *slash = memchr(path.data + at, '/', path.len - at);
	*out_is_folder = slash != NULL;
	return (struct span){
		path.data + at, (slash ? slash : path.data + path.len) - (path.data + at)};
}

static git_oid make_folder(struct store *store, const char *const *lines, struct span prefix)
{
	struct tree_view_entry entries[ENTRIES_MAX];
	size_t count = 0;
	git_oid tree;
	struct error err;
	for (; *lines; lines++) {
		struct line line = line_parse(*lines);
		if (!span_starts_with(line.path, prefix)) {
			continue;
		}
		bool is_folder;
		struct span name = name_at(line.path, prefix.len, &is_folder);
		if (count > 0 && span_equals(entries[count - 1].name, name)) {
			continue;
		}
		assert_true(count < ENTRIES_MAX);
		struct tree_view_entry *entry = &entries[count++];
		*entry = (struct tree_view_entry){.name = name, .mode = TREE_VIEW_FOLDER};
		if (is_folder) {
			struct span below = {line.path.data, prefix.len + name.len + 1};
			entry->id = make_folder(store, lines, below);
		} else {
			struct store_entry leaf = line_entry(store, &line);
			entry->mode = leaf.mode;
			entry->id = leaf.id;
		}
	}
	if (!tree_view_write(store, entries, count, &tree, &err)) {
		fail_msg("%s", err.text);
	}
	return tree;
}

git_oid tree_make(struct store *store, const char *const *lines)
{
	return make_folder(store, lines, (struct span){"", 0});
}

/* ---- to lines ---- */

static char sign_of(const struct store_entry *entry)
{
	switch (entry->mode) {
	case ENTRY_EXECUTABLE:
		return '*';
	case ENTRY_LINK:
		return '@';
	case ENTRY_BIG:
		return store_entry_is_executable(entry) ? '!' : '#';
	default:
		return 0;
	}
}

typedef void leaf_visit(void *data, struct store *store, const struct leaf *leaf);

static void visit_folder(struct store *store, const git_oid *tree, struct trail *trail,
	leaf_visit *visit, void *data)
{
	struct tree_view view;
	struct error err;
	if (!tree_view_load(&view, store, tree, trail, &err)) {
		fail_msg("%s", err.text);
	}
	for (size_t i = 0; i < view.count; i++) {
		size_t mark;
		assert_true(trail_push(trail, view.entries[i].name, &mark, &err));
		const git_oid *folder = tree_view_folder(&view.entries[i]);
		if (folder) {
			visit_folder(store, folder, trail, visit, data);
		} else {
			struct leaf leaf = {.entry = tree_view_leaf(&view.entries[i])};
			snprintf(leaf.path, sizeof(leaf.path), "%s", trail->path);
			visit(data, store, &leaf);
		}
		trail_pop(trail, mark);
	}
	tree_view_finish(&view);
}

struct leaves {
	struct leaf *leaves;
	size_t count, max;
};

static void collect_leaf(void *data, struct store *store, const struct leaf *leaf)
{
	struct leaves *leaves = data;
	assert_true(leaves->count < leaves->max);
	leaves->leaves[leaves->count++] = *leaf;
}

size_t tree_leaves(struct store *store, const git_oid *tree, struct leaf *out, size_t max)
{
	struct trail trail = {0};
	struct leaves leaves = {out, 0, max};
	visit_folder(store, tree, &trail, collect_leaf, &leaves);
	return leaves.count;
}

static void text_leaf(void *data, struct store *store, const struct leaf *leaf)
{
	struct buf *out = data;
	struct error err;
	char sign[2] = {sign_of(&leaf->entry), 0};
	assert_true(buf_append_format(out, &err, "%s%s=", leaf->path, sign));
	if (leaf->entry.mode != ENTRY_BIG &&
		!store_read(store, &leaf->entry.id, TEXT_MAX, out, &err)) {
		fail_msg("%s", err.text);
	}
	assert_true(buf_append(out, SPAN_LITERAL("\n"), &err));
}

char *tree_text(struct store *store, const git_oid *tree)
{
	struct trail trail = {0};
	struct buf out;
	buf_init(&out, TEXT_MAX);
	visit_folder(store, tree, &trail, text_leaf, &out);
	char *text = mem_strndup(buf_span(&out));
	buf_finish(&out);
	return text;
}

bool tree_equal(const git_oid *a, const git_oid *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* ---- real folders ---- */

static struct store_entry read_leaf(struct store *store, int folder, const char *name)
{
	struct error err;
	struct stat status;
	struct store_entry entry = {.mode = ENTRY_LINK};
	char target[PATH_MAX];
	ssize_t len = readlinkat(folder, name, target, sizeof(target));
	if (len >= 0) {
		assert_true(store_put_bytes(
			store, (struct span){target, (size_t)len}, &entry.id, &err));
		return entry;
	}
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	assert_true(fd >= 0 && fstat(fd, &status) == 0);
	if (!store_put_file(store, fd, &status, &entry, &err)) {
		fail_msg("%s: %s", name, err.text);
	}
	close(fd);
	return entry;
}

static bool is_member(const char *name)
{
	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strcmp(name, ".git") != 0 &&
	       !parked_is_name(span_of(name)) && !apply_is_temporary(span_of(name));
}

static git_oid read_folder(struct store *store, int fd)
{
	struct tree_view_entry entries[ENTRIES_MAX];
	size_t count = 0;
	DIR *folder = fdopendir(fd);
	assert_non_null(folder);
	struct dirent *name;
	while ((name = readdir(folder)) != NULL) {
		if (!is_member(name->d_name)) {
			continue;
		}
		assert_true(count < ENTRIES_MAX);
		struct tree_view_entry *entry = &entries[count];
		entry->name = span_of(mem_strdup(name->d_name));
		int below =
			openat(fd, name->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below >= 0) {
			entry->mode = TREE_VIEW_FOLDER;
			entry->id = read_folder(store, below);
		} else {
			struct store_entry leaf = read_leaf(store, fd, name->d_name);
			entry->mode = leaf.mode;
			entry->id = leaf.id;
		}
		if (tree_equal(&entry->id, &store_empty_tree)) {
			free((char *)entry->name.data);
		} else {
			count++;
		}
	}
	git_oid tree;
	struct error err;
	assert_true(tree_view_write(store, entries, count, &tree, &err));
	for (size_t i = 0; i < count; i++) {
		free((char *)entries[i].name.data);
	}
	closedir(folder);
	return tree;
}

git_oid tree_of_folder(struct store *store, const char *root)
{
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return read_folder(store, fd);
}

static void make_parents(const char *path)
{
	char parent[FIXTURE_PATH_MAX * 2];
	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
		mkdir(parent, 0755);
	}
}

void tree_write(const char *root, const char *const *lines)
{
	struct error err;
	for (; *lines; lines++) {
		struct line line = line_parse(*lines);
		char path[FIXTURE_PATH_MAX * 2];
		snprintf(path, sizeof(path), "%s/%.*s", root, (int)line.path.len, line.path.data);
		make_parents(path);
		unlink(path);
		if (line.sign == '@') {
			assert_int_equal(symlink(line.content.data, path), 0);
			continue;
		}
		int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			line.sign == '*' || line.sign == '!' ? 0755 : 0644);
		assert_true(fd >= 0);
		assert_true(fd_write_all(fd, line.content, &err));
		close(fd);
	}
}

/* ---- all of a folder ---- */

static size_t found_count;
static const char *wanted_name, *wanted_text;

static int remove_name(const char *path, const struct stat *status, int type, struct FTW *at)
{
	return at->level == 0 ? 0 : remove(path);
}

void tree_clear(const char *root)
{
	assert_int_equal(nftw(root, remove_name, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static int count_name(const char *path, const struct stat *status, int type, struct FTW *at)
{
	char text[4096] = "";
	if (!strstr(path + at->base, wanted_name)) {
		return 0;
	}
	if (wanted_text && type == FTW_F) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) >= 0);
		close(fd);
	}
	found_count += !wanted_text || strcmp(text, wanted_text) == 0;
	return 0;
}

size_t tree_count(const char *root, const char *name_part, const char *text)
{
	found_count = 0;
	wanted_name = name_part;
	wanted_text = text;
	assert_int_equal(nftw(root, count_name, 16, FTW_PHYS), 0);
	return found_count;
}

static void fail_left(void *data, const char *path, const char *why)
{
	fail_msg("%s was left as it was: %s", path, why);
}

void tree_apply(struct store *store, const char *root, const git_oid *from, const git_oid *to)
{
	struct error err;
	struct apply_result result;
	struct apply_request request = {
		.root = root, .from = *from, .to = *to, .on_left = fail_left};
	if (!apply_run(store, &request, &result, &err)) {
		fail_msg("%s", err.text);
	}
}
