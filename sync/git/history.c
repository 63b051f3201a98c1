/* SPDX-License-Identifier: MIT */
#include "sync/git/history.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/user_config.h"
#include "sync/git/own.h"
#include "sync/git/part.h"
#include "sync/nested.h"

/* sync/git/remote/repo_open.sh lists at most 20,000 of the runtime's commits, one per line. */
enum { REFS_MAX = 1 << 20, FILE_MAX = 1 << 20 };

struct history *history_create(const char *path)
{
	struct history *history = mem_alloc(sizeof(*history));
	*history = (struct history){.path = mem_strdup(path),
		.is_lost = true,
		.part = mem_strdup(""),
		.room = mem_strdup(""),
		.branch = mem_strdup(""),
		.git_folder = mem_strdup(""),
		.name = mem_strdup(""),
		.email = mem_strdup(""),
		.promisor = mem_strdup("")};
	buf_init(&history->refs, REFS_MAX);
	buf_init(&history->shallow, FILE_MAX);
	buf_init(&history->sparse, FILE_MAX);
	buf_init(&history->have, FILE_MAX);
	buf_init(&history->remotes, REMOTES_MAX);
	buf_init(&history->nested, NESTED_MAX + 1024);
	filters_init(&history->filters);
	return history;
}

void history_destroy(struct history *history)
{
	free(history->path);
	free(history->part);
	free(history->room);
	free(history->git_folder);
	free(history->branch);
	free(history->name);
	free(history->email);
	free(history->promisor);
	buf_finish(&history->refs);
	buf_finish(&history->shallow);
	buf_finish(&history->sparse);
	buf_finish(&history->have);
	buf_finish(&history->remotes);
	buf_finish(&history->nested);
	filters_finish(&history->filters);
	free(history);
}

static void add_print(struct history *history, const char *text)
{
	history->print = hash_text(history->print, text);
}

static void add_print_of(struct history *history, const struct buf *bytes)
{
	char *text = mem_strndup(buf_span(bytes));
	add_print(history, text);
	free(text);
}

/* Appends a file that may be missing; one that is too big counts as missing. */
static void read_file(const char *path, struct buf *out)
{
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t before = out->len;
	ssize_t count = fd >= 0 ? 1 : 0;
	while (count > 0) {
		char *at = buf_reserve(out, 4096, NULL);
		count = at ? read(fd, at, 4096) : -1;
		if (count > 0) {
			buf_commit(out, (size_t)count);
		}
	}
	if (count < 0) {
		out->len = before;
	}
}

/* ---- HEAD and the refs ---- */

static const char heads[] = "refs/heads/";

static bool read_head(struct history *history, const struct git *git, git_repository *repository)
{
	git_reference *head = NULL;
	git_oid id;
	if (git->reference_lookup(&head, repository, "HEAD") < 0) {
		return false;
	}
	const char *target = git->reference_symbolic_target(head);
	history->is_detached = target == NULL;
	bool is_branch = target && strncmp(target, heads, sizeof(heads) - 1) == 0;
	mem_set_text(&history->branch, is_branch ? target + sizeof(heads) - 1 : "");
	git->reference_free(head);
	if (target && !is_branch) {
		return false;
	}
	history->id[0] = '\0';
	if (git->reference_name_to_id(&id, repository, "HEAD") == 0) {
		git->oid_tostr(history->id, sizeof(history->id), &id);
	}
	return history->id[0] || !history->is_detached;
}

/* HEAD's branch is sent separately. */
static bool is_head(const struct history *history, const char *name)
{
	return !history->is_detached && strncmp(name, heads, sizeof(heads) - 1) == 0 &&
	       strcmp(name + sizeof(heads) - 1, history->branch) == 0;
}

static void read_refs_of(struct history *history, const struct git *git, git_repository *repository,
	git_odb *odb, const char *glob)
{
	git_reference_iterator *iterator = NULL;
	const char *name;
	char hex[GIT_OID_HEXSZ + 1];
	if (git->reference_iterator_glob_new(&iterator, repository, glob) < 0) {
		return;
	}
	while (git->reference_next_name(&name, iterator) == 0) {
		git_oid id;
		/* A ref that leads to nothing must not prevent the others from being sent. */
		if (is_head(history, name) ||
			git->reference_name_to_id(&id, repository, name) < 0 ||
			!git->odb_exists_ext(odb, &id, GIT_ODB_LOOKUP_NO_REFRESH)) {
			continue;
		}
		git->oid_tostr(hex, sizeof(hex), &id);
		add_print(history, name);
		add_print(history, hex);
		if (!buf_append_format(&history->refs, NULL, "%s %s\n", hex, name)) {
			break;
		}
	}
	git->reference_iterator_free(iterator);
}

static void read_refs(struct history *history, const struct git *git, git_repository *repository)
{
	static const char *const globs[] = {"refs/heads/*", "refs/remotes/*", "refs/tags/*"};
	git_odb *odb = NULL;
	if (git->repository_odb(&odb, repository) < 0) {
		return;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(globs); i++) {
		read_refs_of(history, git, repository, odb, globs[i]);
	}
	git->odb_free(odb);
}

/* ---- the user's settings ---- */

static void read_text(const struct user_config *config, const char *key, char **out_text)
{
	const char *value = user_config_get(config, key);
	if (value && !strchr(value, '\n')) {
		mem_set_text(out_text, value);
	}
}

/*
 * Files that git-sparse-checkout(1) keeps out of the work tree must not look deleted in the
 * sandbox; nor files outside of the part that is the workspace.
 */
static bool read_sparse(struct history *history, const struct user_config *config,
	const struct user_repository *repository, struct error *err)
{
	char path[PATH_MAX + 32];
	bool is_sparse = user_config_is_true(config, "core.sparsecheckout");
	if (is_sparse) {
		text_whole(path, sizeof(path), "%s/info/sparse-checkout", repository->folder);
		read_file(path, &history->sparse);
		history->is_cone = user_config_is_true(config, "core.sparsecheckoutcone");
	}
	if (*history->part) {
		if (is_sparse && !history->is_cone) {
			return error_set(err, ERROR_UNAVAILABLE,
				"it is a part of a sparse checkout by patterns; `git "
				"sparse-checkout init --cone` changes that");
		}
		if (!part_narrow(&history->sparse, history->part, err)) {
			return false;
		}
		history->is_cone = false;
	}
	add_print_of(history, &history->sparse);
	add_print(history, history->is_cone ? "cone" : "");
	return true;
}

static bool read_filters(struct history *history, const struct user_config *config,
	const struct user_repository *repository, const char *home, struct error *err)
{
	struct filters *filters = &history->filters;
	if (!filters_read(filters, config, repository, home, err)) {
		return false;
	}
	if (!filters_are_none(filters)) {
		add_print_of(history, &filters->rules);
		add_print_of(history, &filters->attributes);
		add_print_of(history, &filters->further);
	}
	return true;
}

/* libgit2's folders end in a slash. */
static void put_folder(char to[PATH_MAX], const char *folder)
{
	text_whole(to, PATH_MAX, "%.*s", (int)strlen(folder) - 1, folder);
}

static bool read_settings(struct history *history, const struct git *git,
	git_repository *repository, const char *home, struct error *err)
{
	struct user_config config = {0};
	struct user_repository places = {.top = ""};
	put_folder(places.folder, git->repository_path(repository));
	put_folder(places.common, git->repository_commondir(repository));
	bool read = user_config_read(&config, home, &places, err);
	if (read) {
		read_text(&config, "user.name", &history->name);
		read_text(&config, "user.email", &history->email);
		remotes_read(&config, &history->remotes);
		free(history->promisor);
		history->promisor = remotes_promisor(&config);
		add_print(history, history->promisor);
		add_print_of(history, &history->remotes);
		add_print_of(history, &history->nested);
		read = read_sparse(history, &config, &places, err) &&
		       read_filters(history, &config, &places, home, err);
	}
	user_config_finish(&config);
	return read;
}

/* ---- all of it ---- */

/*
 * Whether HEAD has files of that part. If not, the repository (for example of a home) is not the
 * workspace's.
 */
static bool has_part(
	const struct history *history, const struct git *git, git_repository *repository)
{
	git_commit *commit = NULL;
	git_tree *tree = NULL;
	git_tree_entry *entry = NULL;
	git_oid id;
	bool has = history->id[0] && git->oid_fromstr(&id, history->id) == 0 &&
	           git->commit_lookup(&commit, repository, &id) == 0 &&
	           git->tree_lookup(&tree, repository, git->commit_tree_id(commit)) == 0 &&
	           git->tree_entry_bypath(&entry, tree, history->part) == 0 &&
	           git->tree_entry_filemode(entry) == GIT_FILEMODE_TREE;
	git->tree_entry_free(entry);
	git->tree_free(tree);
	git->commit_free(commit);
	return has;
}

static void read_repository(struct history *history, const struct git *git,
	git_repository *repository, const char *home)
{
	char path[PATH_MAX];
	struct error err;
	history->print = HASH_START;
	if (!read_head(history, git, repository)) {
		text_format(history->note, sizeof(history->note),
			"the workspace's git history was not sent: its HEAD cannot be read");
		return;
	}
	if (*history->part && !has_part(history, git, repository)) {
		return;
	}
	if (*history->part && strcmp(history->part, history->room) != 0) {
		text_format(history->note, sizeof(history->note),
			"the workspace's git history was not sent: it is a part of a repository, "
			"and its folder in the sandbox has no place above it for the repository. A "
			"new sandbox has one, unless a name on the way from the repository's top "
			"has other characters than letters, digits, spaces and +,-.=@_, or begins "
			"with a dot");
		return;
	}
	add_print(history, history->branch);
	add_print(history, history->id);
	read_refs(history, git, repository);
	if (!read_settings(history, git, repository, home, &err)) {
		text_format(history->note, sizeof(history->note),
			"the workspace's git history was not sent: %s", err.text);
		return;
	}
	text_whole(path, sizeof(path), "%sshallow", git->repository_commondir(repository));
	read_file(path, &history->shallow);
	mem_set_text(&history->git_folder, git->repository_path(repository));
	history->exists = true;
}

/* Explains why libgit2 cannot read it, if git-config(1) has a setting for that reason. */
static void explain(struct history *history, const char *root, const char *home)
{
	static const struct {
		const char *key, *usual, *why;
	} reasons[] = {
		{"extensions.objectformat", "sha1",
			"its ids are not SHA-1, and libgit2 can only read SHA-1"},
		{"extensions.refstorage", "files",
			"libgit2 cannot read how it keeps its refs; `git refs migrate "
			"--ref-format=files` changes that"},
	};
	struct error ignored;
	struct user_config config = {0};
	struct user_repository *places = mem_alloc_zero(sizeof(*places));
	bool read = user_repository_find(places, root, false) &&
	            user_config_read(&config, home, places, &ignored);
	for (size_t i = 0; read && i < ARRAY_LENGTH(reasons); i++) {
		const char *value = user_config_get(&config, reasons[i].key);
		if (value && strcmp(value, reasons[i].usual) != 0) {
			text_format(history->note, sizeof(history->note),
				"the workspace's git history was not sent, and its copy has no "
				"git: %s",
				reasons[i].why);
		}
	}
	user_config_finish(&config);
	free(places);
}

/* libgit2 opens none of another user's, as git does not. */
static void explain_owner(struct history *history, const char *top)
{
	char path[PATH_MAX];
	struct stat status;
	if (text_whole(path, sizeof(path), "%s/.git", top) && lstat(path, &status) == 0 &&
		status.st_uid != geteuid()) {
		text_format(history->note, sizeof(history->note),
			"the workspace's git history was not sent, and its copy has no git: the "
			"repository is user %u's, and git trusts no other user's; run the broker "
			"as that user",
			(unsigned)status.st_uid);
	}
}

static bool is_there(const char *root)
{
	char path[PATH_MAX];
	text_whole(path, sizeof(path), "%s/.git", root);
	return access(path, F_OK) == 0;
}

/* The top of the repository that contains the root, or the root itself. */
static void find_top(struct history *history, const char *root, char top[PATH_MAX])
{
	struct user_repository *places = mem_alloc_zero(sizeof(*places));
	bool is_part =
		!*history->path && !is_there(root) && user_repository_find(places, root, true);
	text_whole(top, PATH_MAX, "%s", is_part ? places->top : root);
	mem_set_text(&history->part, is_part ? root + strlen(places->top) + 1 : "");
	free(places);
}

/*
 * Whether it may be read: the workspace's repository, or one below it that is the workspace's own.
 */
static bool is_own(struct history *history, const struct git *git, git_repository *repository,
	const char *root, const char *home)
{
	struct error err;
	if (!*history->path) {
		return true;
	}
	char *workspace =
		mem_strndup((struct span){root, strlen(root) - strlen(history->path) - 1});
	const struct own_request request = {workspace, root, git->repository_path(repository),
		git->repository_commondir(repository), home};
	bool is_own = own_check(&request, &err);
	free(workspace);
	if (!is_own) {
		text_format(history->note, sizeof(history->note),
			"the git history of this folder was not sent: %s", err.text);
	}
	return is_own;
}

bool history_read(struct history *history, const char *root, const char *home, struct error *err)
{
	const struct git *git = git_open(err);
	git_repository *repository = NULL;
	char top[PATH_MAX];
	if (!git) {
		return false;
	}
	history->exists = false;
	history->note[0] = '\0';
	buf_clear(&history->refs);
	buf_clear(&history->shallow);
	buf_clear(&history->sparse);
	history->is_cone = false;
	find_top(history, root, top);
	if (!is_there(top)) {
		git_close();
		return true;
	}
	if (git->repository_open_ext(&repository, top, GIT_REPOSITORY_OPEN_NO_SEARCH, NULL) == 0) {
		if (is_own(history, git, repository, root, home)) {
			read_repository(history, git, repository, home);
		}
	} else {
		struct error why;
		error_set_git(git, &why, "the workspace's git history was not sent");
		text_format(history->note, sizeof(history->note), "%s", why.text);
		explain(history, top, home);
		explain_owner(history, top);
	}
	git->repository_free(repository);
	git_close();
	return true;
}

/* Adds ids from lines. */
static void list_ids(const struct git *git, const struct buf *lines, struct id_set *out_ids)
{
	struct span text = buf_span(lines);
	for (size_t at = 0; at + GIT_OID_HEXSZ <= text.len; at += GIT_OID_HEXSZ + 1) {
		git_oid id;
		if (git->oid_fromstr(&id, text.data + at) == 0) {
			id_set_add(out_ids, &id);
		}
	}
}

static bool lacks(const struct git *git, const struct id_set *ids, const char *hex)
{
	git_oid id;
	return git->oid_fromstr(&id, hex) < 0 || !id_set_has(ids, &id);
}

bool history_is_new(const struct history *history)
{
	const struct git *git = git_open(NULL);
	struct span refs = buf_span(&history->refs);
	struct id_set have = {0};
	if (!git) {
		return true;
	}
	list_ids(git, &history->have, &have);
	bool is_new = history->id[0] && lacks(git, &have, history->id);
	for (size_t at = 0; at < refs.len && !is_new;) {
		is_new = lacks(git, &have, refs.data + at);
		const char *end = memchr(refs.data + at, '\n', refs.len - at);
		at = (size_t)(end - refs.data) + 1;
	}
	id_set_finish(&have);
	git_close();
	return is_new;
}
