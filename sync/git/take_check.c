/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/fd.h"
#include "base/words.h"
#include "sync/git/inner.h"
#include "sync/git/take_impl.h"

enum { LISTED_MAX = 64 << 20, LINK_MODE_LENGTH = 6 };

/* A path that the commits change; texts are borrowed from git's output. */
struct change {
	const char *path;
	const char *mode, *id; // in the tip; a mode of zeros: deleted
	bool is_submodule, was_submodule;
	const char *how; // how the work tree differs; NULL: not known to differ
	bool is_final;   // a conflict does not excuse it
};

struct check {
	struct take *take;
	struct buf changes, listed;
	struct change *list; // owned; sorted by path
	size_t count;
	bool is_unmerged;
	size_t staged; // paths with something else staged
};

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct change *)a)->path, ((const struct change *)b)->path);
}

static struct change *find(const struct check *check, const char *path)
{
	struct change key = {.path = path};
	return check->count == 0 ? NULL
	                         : bsearch(&key, check->list, check->count, sizeof(key), compare);
}

/* git prints terminated texts; the last one is terminated in any case. */
static bool ask(struct check *check, const char *const *words, struct span input, struct buf *out,
	struct error *err)
{
	struct user_git_call call = {
		.words = words, .input = input, .output = out, .is_on_draft = true};
	buf_clear(out);
	if (!user_git_run(&check->take->git, &call, err)) {
		return false;
	}
	char *end = buf_reserve(out, 1, err);
	if (end) {
		*end = '\0';
	}
	return end != NULL;
}

/* ---- git's raw lines ---- */

/*
 * The fields of ":100644 100755 ID ID M" from git-diff-tree(1) and git-diff-index(1), and the path
 * that follows.
 */
struct raw {
	char *old_mode, *mode, *id, *status, *path;
};

/* Reads the next one of the texts from `at` on, and cuts them up; false after the last. */
static bool next_raw(const struct buf *texts, size_t *at, struct raw *out)
{
	char *words[5];
	struct span text = buf_span(texts);
	char *end = (char *)text.data + text.len;
	if (*at >= text.len || text.data[*at] != ':') {
		return false;
	}
	char *line = (char *)text.data + *at + 1;
	out->path = line + strlen(line) + 1;
	if (out->path >= end) {
		return false;
	}
	*at = (size_t)(out->path - text.data) + strlen(out->path) + 1;
	for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
		words[i] = line;
		line += strcspn(line, " ");
		if (*line) {
			*line++ = '\0';
		}
	}
	*out = (struct raw){words[0], words[1], words[3], words[4], out->path};
	return true;
}

static bool is_link_to_commit(const char *mode)
{
	return strcmp(mode, "160000") == 0;
}

/* ---- what the commits change ---- */

static bool list_changes(struct check *check, struct error *err)
{
	struct take *take = check->take;
	const char *const words[] = {"diff-tree", "-r", "-z", "--raw", "--no-renames",
		"--no-abbrev", "--ignore-submodules=none", take_tree_of(take->head), take->tip,
		NULL};
	struct raw raw;
	size_t room = 0;
	if (!ask(check, words, (struct span){0}, &check->changes, err)) {
		return false;
	}
	for (size_t at = 0; next_raw(&check->changes, &at, &raw);) {
		if (check->count == room) {
			room = room ? 2 * room : 64;
			check->list = mem_realloc(check->list, room * sizeof(*check->list));
		}
		check->list[check->count++] = (struct change){.path = raw.path,
			.mode = raw.mode,
			.id = raw.id,
			.is_submodule = is_link_to_commit(raw.mode),
			.was_submodule = is_link_to_commit(raw.old_mode)};
	}
	if (check->count > 0) {
		qsort(check->list, check->count, sizeof(*check->list), compare);
	}
	take->files = check->count;
	return true;
}

/* Staged content that is neither the old nor the new version would be lost. */
static bool check_staged(struct check *check, struct error *err)
{
	const char *const words[] = {"diff-index", "--cached", "-z", "--raw", "--no-renames",
		"--no-abbrev", take_tree_of(check->take->head), NULL};
	struct raw raw;
	if (!ask(check, words, (struct span){0}, &check->listed, err)) {
		return false;
	}
	for (size_t at = 0; next_raw(&check->listed, &at, &raw);) {
		struct change *change = find(check, raw.path);
		check->is_unmerged = check->is_unmerged || *raw.status == 'U';
		if (change &&
			(strcmp(change->mode, raw.mode) != 0 || strcmp(change->id, raw.id) != 0)) {
			change->how = "something else is staged";
			change->is_final = true;
			check->staged++;
		}
	}
	return !check->is_unmerged ||
	       error_set(err, ERROR_UNAVAILABLE,
		       "git has unresolved conflicts in %s: resolve them first",
		       check->take->request->root);
}

/* ---- what is in the work tree ---- */

static void set_how(struct change *change, const char *how)
{
	if (change && !change->how) {
		change->how = how;
	}
}

static bool open_root(const struct check *check, int *out_fd, struct error *err)
{
	const char *top = check->take->git.repository.top;
	*out_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *out_fd >= 0 || error_set_errno(err, errno, "%s", top);
}

/* Git does not list files that are no longer tracked. */
static bool is_there(int root, const char *path)
{
	struct stat status;
	const char *slash = strrchr(path, '/');
	char *folder =
		slash ? mem_strndup((struct span){path, (size_t)(slash - path)}) : mem_strdup("");
	ATTR_CLEANUP(fd_cleanup) int fd = beneath_open_folder(root, folder, false);
	free(folder);
	if (fd < 0) {
		return errno != ENOENT && errno != ENOTDIR && errno != ELOOP;
	}
	if (fstatat(fd, slash ? slash + 1 : path, &status, AT_SYMLINK_NOFOLLOW) < 0) {
		return errno != ENOENT;
	}
	return !S_ISDIR(status.st_mode);
}

/* The draft index matches the tip now. So files that git calls modified differ from the commits. */
static bool check_files(struct check *check, struct error *err)
{
	static const char *const words[] = {"status", "--porcelain=v1", "-z",
		"--untracked-files=no", "--no-renames", "--ignore-submodules=all", NULL};
	if (!ask(check, words, (struct span){0}, &check->listed, err)) {
		return false;
	}
	struct span text = buf_span(&check->listed);
	for (size_t at = 0; at + 3 < text.len;) {
		const char *entry = text.data + at;
		if (entry[1] != ' ') {
			set_how(find(check, entry + 3),
				entry[1] == 'D' ? "it is missing" : "it differs");
		}
		at += strlen(entry) + 1;
	}
	return true;
}

/*
 * The tags of git-ls-files(1) -v: a small letter for a file that is assumed unchanged, "S" for one
 * outside of a sparse checkout. `git status` compares neither.
 */
static const char *not_compared(char tag, bool is_present)
{
	bool is_skipped = tag == 'S' || tag == 's';
	if (is_skipped && !is_present) {
		return NULL;
	}
	if (tag >= 'a' && tag <= 'z') {
		return "git was told to ignore it (git update-index --no-assume-unchanged)";
	}
	return is_skipped ? "git was told to ignore it (git update-index --no-skip-worktree)"
	                  : NULL;
}

static bool check_flags(struct check *check, struct error *err)
{
	static const char *const words[] = {"ls-files", "-v", "-z", NULL};
	ATTR_CLEANUP(fd_cleanup) int root = -1;
	if (!open_root(check, &root, err) ||
		!ask(check, words, (struct span){0}, &check->listed, err)) {
		return false;
	}
	struct span text = buf_span(&check->listed);
	for (size_t at = 0; at + 2 < text.len;) {
		const char *entry = text.data + at;
		struct change *change = *entry == 'H' ? NULL : find(check, entry + 2);
		const char *how =
			change ? not_compared(*entry, is_there(root, change->path)) : NULL;
		if (how) {
			change->how = how;
			change->is_final = true;
		}
		at += strlen(entry) + 1;
	}
	return true;
}

/* Whether a submodule in the work tree has the commit as its HEAD. */
static bool is_at(const struct check *check, const struct change *change)
{
	static const char *const words[] = {"rev-parse", "--verify", "-q", "HEAD^{commit}", NULL};
	const struct take_request *request = check->take->request;
	struct user_git git = {.draft = NULL};
	struct error ignored;
	char root[PATH_MAX], id[TAKE_ID_SIZE];
	bool is_at = inner_root(check->take->git.repository.top, change->path, root) &&
	             user_git_open(&git, root, false, request->environment, &ignored) &&
	             user_git_line(&git, words, false, id, sizeof(id), &ignored) &&
	             strcmp(id, change->id) == 0;
	user_git_finish(&git);
	return is_at;
}

static bool check_kinds(struct check *check, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup) int root = -1;
	if (!open_root(check, &root, err)) {
		return false;
	}
	for (size_t i = 0; i < check->count; i++) {
		struct change *change = &check->list[i];
		if (change->is_submodule && !is_at(check, change)) {
			change->how = "it is a submodule at another commit (acp-broker commits "
				      "take, run in its folder, takes the agent's)";
			change->is_final = true;
		} else if (change->is_submodule) {
			continue;
		} else if (change->was_submodule) {
			change->how = "it is no longer a submodule, which is not compared";
			change->is_final = true;
		} else if (strspn(change->mode, "0") == LINK_MODE_LENGTH &&
			   is_there(root, change->path)) {
			set_how(change, "it is still there");
		}
	}
	return true;
}

/* ---- filters: their files cannot be compared without running them ---- */

static bool list_paths(const struct check *check, struct buf *out, struct error *err)
{
	bool ok = true;
	for (size_t i = 0; ok && i < check->count; i++) {
		const char *path = check->list[i].path;
		ok = buf_append(out, (struct span){path, strlen(path) + 1}, err);
	}
	return ok;
}

/* Reads texts of PATH, "filter", VALUE. */
static void note_filters(struct check *check)
{
	const char *const *filters = (const char *const *)check->take->git.filters;
	struct span text = buf_span(&check->listed);
	for (size_t at = 0; at < text.len;) {
		const char *texts[3];
		for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
			texts[i] = text.data + (at < text.len ? at : text.len);
			at += strlen(texts[i]) + 1;
		}
		struct change *change = find(check, texts[0]);
		if (change && words_contain(filters, texts[2])) {
			change->how = "it has a git filter, which is not run here";
			change->is_final = true;
		}
	}
}

static bool check_filters(struct check *check, struct error *err)
{
	static const char *const words[] = {"check-attr", "-z", "--stdin", "filter", NULL};
	struct buf paths;
	if (!check->take->git.filters || check->count == 0) {
		return true;
	}
	buf_init(&paths, LISTED_MAX);
	bool ok = list_paths(check, &paths, err) &&
	          ask(check, words, buf_span(&paths), &check->listed, err);
	buf_finish(&paths);
	if (ok) {
		note_filters(check);
	}
	return ok;
}

/* ---- the result ---- */

static bool is_version(
	const struct take *take, const struct change *change, const struct store_entry *entry)
{
	char mode[16], id[TAKE_ID_SIZE];
	snprintf(mode, sizeof(mode), "%06o", (unsigned)entry->mode);
	take->request->store->git->oid_tostr(id, sizeof(id), &entry->id);
	return strcmp(mode, change->mode) == 0 && strcmp(id, change->id) == 0;
}

/*
 * Whether a path in the workspace and a path in the repository are the same. The repository may be
 * a folder of the workspace, or contain it.
 */
static bool is_same_path(const struct take *take, const char *path, const char *below)
{
	const struct take_request *request = take->request;
	const char *part = request->root + strlen(take->git.repository.top);
	size_t length = strlen(request->repository), part_length = strlen(part);
	if (part_length > 0) {
		return strncmp(below, part + 1, part_length - 1) == 0 &&
		       below[part_length - 1] == '/' && strcmp(path, below + part_length) == 0;
	}
	if (length == 0) {
		return strcmp(path, below) == 0;
	}
	return strncmp(path, request->repository, length) == 0 && path[length] == '/' &&
	       strcmp(path + length + 1, below) == 0;
}

/*
 * Whether a conflict has exactly the commits' version, and is not one that needs the user's
 * permission.
 */
static bool is_parked(const struct take *take, const struct change *change)
{
	bool is_found = false;
	if (!take->request->parked) {
		return false;
	}
	LIST_FOR_EACH(parked, take->request->parked, struct parked, link) {
		const struct conflict *conflict = &parked->conflict;
		if (!is_same_path(take, conflict->path, change->path)) {
			continue;
		}
		if (conflict->is_held) {
			return false;
		}
		is_found = is_found || is_version(take, change, &conflict->runtime);
	}
	return is_found;
}

/* How many differ from the commits without a conflict that excuses them. */
static size_t tell_differing(const struct check *check)
{
	const struct take_request *request = check->take->request;
	size_t count = 0;
	for (size_t i = 0; i < check->count; i++) {
		const struct change *change = &check->list[i];
		bool is_excused = !change->is_final && is_parked(check->take, change);
		if (!change->how || is_excused) {
			continue;
		}
		if (request->on_differs) {
			request->on_differs(request->data, change->path, change->how);
		}
		count++;
	}
	return count;
}

static bool fail_staged(const struct check *check, struct error *err)
{
	tell_differing(check);
	return error_set(err, ERROR_UNAVAILABLE,
		"the index of %s has something else staged for %zu files of the commits, so "
		"nothing was moved: commit it, or unstage it (git restore --staged FILE), and try "
		"again",
		check->take->request->root, check->staged);
}

static bool tell(const struct check *check, struct error *err)
{
	const struct take *take = check->take;
	size_t count = tell_differing(check);
	return count == 0 ||
	       error_set(err, ERROR_UNAVAILABLE,
		       "%zu of %zu files of the commits differ between %s and commit %.12s, so "
		       "nothing was moved. `git diff %.12s` shows the differences. Make the files "
		       "the same (`git checkout %.12s -- FILE`), then try again. Or move branch "
		       "and index with `git reset %.12s`, which keeps the differences as your "
		       "changes",
		       count, check->count, take->request->root, take->tip, take->tip, take->tip,
		       take->tip);
}

static void tell_parked(const struct check *check)
{
	const struct take_request *request = check->take->request;
	for (size_t i = 0; request->on_parked && i < check->count; i++) {
		const struct change *change = &check->list[i];
		if (change->how && is_parked(check->take, change)) {
			request->on_parked(request->data, change->path);
		}
	}
}

static bool move_draft(struct check *check, struct error *err)
{
	struct take *take = check->take;
	return take_move_draft(take, take_tree_of(take->head), take->tip, err) ||
	       error_prefix(err,
		       "staged changes in %s are in the way of the commits: commit them, or "
		       "unstage them with git restore --staged",
		       take->request->root);
}

static bool check_all(struct check *check, struct error *err)
{
	if (!list_changes(check, err) || !check_staged(check, err)) {
		return false;
	}
	if (check->staged > 0) {
		return fail_staged(check, err);
	}
	if (!check_kinds(check, err) || !check_filters(check, err) || !move_draft(check, err) ||
		!check_files(check, err) || !check_flags(check, err) || !tell(check, err)) {
		return false;
	}
	tell_parked(check);
	return true;
}

bool take_check(struct take *take, struct error *err)
{
	struct check check = {.take = take};
	buf_init(&check.changes, LISTED_MAX);
	buf_init(&check.listed, LISTED_MAX);
	bool ok = check_all(&check, err);
	free(check.list);
	buf_finish(&check.changes);
	buf_finish(&check.listed);
	return ok;
}
