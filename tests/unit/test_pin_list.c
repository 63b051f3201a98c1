/* SPDX-License-Identifier: MIT */
#include "providers/local/pin_list.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/remove_folder.h"
#include "base/text.h"
#include "base/words.h"
#include "sync/guard_paths.h"
#include "tests/support/facts.h"

static char folder[64];
static char root[128];
static struct guard_paths *guard;
static struct pin_list list;
static struct error err;

static const char *path_of(const char *name)
{
	static char path[PATH_MAX];
	text_whole(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void make(const char *name)
{
	assert_int_equal(mkdir(path_of(name), 0755), 0);
}

static void put(const char *name, const char *content)
{
	ATTR_CLEANUP(fd_cleanup)
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_true(fd_write_all(fd, span_of(content), &err));
}

static int set_up(void **state)
{
	text_whole(folder, sizeof(folder), "/tmp/test-pins-XXXXXX");
	if (!mkdtemp(folder)) {
		return -1;
	}
	make("work");
	text_whole(root, sizeof(root), "%s/work", folder);
	guard = guard_paths_create(NULL, &err);
	list = (struct pin_list){.found = NULL};
	return guard ? 0 : -1;
}

static int tear_down(void **state)
{
	pin_list_finish(&list);
	guard_paths_destroy(guard);
	return remove_folder(folder, &err) ? 0 : -1;
}

static bool is_guarded(const void *data, const char *top, const char *path, bool is_link)
{
	return guard_paths_have(data, top, path, is_link);
}

static void find(void)
{
	const struct pin_rules rules = {.is_guarded = is_guarded, .guard = guard};
	pin_list_finish(&list);
	assert_true(pin_list_find(&list, root, &rules, &err));
}

/* Expects "LETTER PATH", with a slash between two: r(epository), f(ile), d(irectory), l(ink). */
static void assert_found(const char *wanted)
{
	static const char letters[] = {
		[PIN_REPOSITORY] = 'r', [PIN_FILE] = 'f', [PIN_FOLDER] = 'd', [PIN_LINK] = 'l'};
	char text[4096] = "";
	for (size_t i = 0; i < list.count; i++) {
		assert_true(text_append(text, sizeof(text), "%s%c %s", i > 0 ? " | " : "",
			letters[list.found[i].kind], list.found[i].path));
	}
	assert_string_equal(text, wanted);
}

static void test_repositories_and_guarded_files_are_found(void **state)
{
	static const char *const folders[] = {"work/.git", "work/.git/hooks", "work/.vscode",
		"work/.husky", "work/src", "work/src/app", "work/sub", "work/bare.git",
		"work/bare.git/objects", "work/bare.git/refs", "work/.config"};
	for (size_t i = 0; i < ARRAY_LENGTH(folders); i++) {
		make(folders[i]);
	}
	put("work/.git/hooks/.envrc", "");
	put("work/.vscode/tasks.json", "");
	put("work/.husky/pre-commit", "");
	put("work/.envrc", "");
	put("work/src/app/.envrc", "");
	put("work/src/file", "");
	put("work/sub/.git", "gitdir: ../.git/modules/sub\n");
	put("work/bare.git/HEAD", "");
	put("work/x.code-workspace", "");
	find();
	assert_found("f .envrc | r .git | d .husky | d .vscode | r bare.git | f src/app/.envrc | "
		     "r sub/.git | f x.code-workspace");
}

/* git reads the configuration of the folder that commondir names. */
static void test_a_repository_in_two_folders_is_found(void **state)
{
	make("work/docs");
	make("work/data");
	make("work/data/objects");
	make("work/data/refs");
	put("work/data/config", "");
	put("work/docs/HEAD", "");
	put("work/docs/commondir", "../data\n");
	find();
	assert_found("r docs");
}

/* A path that cannot be examined would be missing among the pins, and nobody would know. */
static void test_what_cannot_be_looked_at_is_refused(void **state)
{
	const struct pin_rules rules = {.guard = NULL};
	struct rlimit before, few;
	make("work/sub");
	make("work/sub/.git");
	int next = dup(0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){.rlim_cur = (rlim_t)next + 1, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	bool is_found = pin_list_find(&list, root, &rules, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_false(is_found);
	assert_names(err.text, path_of("work/sub"));
}

static void test_what_runs_anyway_is_left_out(void **state)
{
	make("work/node_modules");
	make("work/node_modules/.vscode");
	put("work/node_modules/.envrc", "");
	find();
	assert_found("");
}

static void test_links_are_found_and_not_followed(void **state)
{
	make("work/conf");
	put("work/conf/tasks.json", "");
	assert_int_equal(symlink("conf", path_of("work/.vscode")), 0);
	assert_int_equal(symlink("/", path_of("work/root")), 0);
	assert_int_equal(symlink("conf", path_of("work/.git")), 0);
	find();
	assert_found("l .git | l .vscode");
}

static void test_a_bare_repository_is_no_workspace(void **state)
{
	const struct pin_rules rules = {.guard = NULL};
	make("work/objects");
	make("work/refs");
	put("work/HEAD", "");
	assert_false(pin_list_find(&list, root, &rules, &err));
	assert_int_equal(err.code, ERROR_CONFIG);
	assert_names(err.text, root);
}

static void test_too_many_are_refused(void **state)
{
	const struct pin_rules rules = {.is_guarded = is_guarded, .guard = guard};
	char name[64];
	for (int i = 0; i <= PINS_MAX; i++) {
		text_whole(name, sizeof(name), "work/%d.code-workspace", i);
		put(name, "");
	}
	assert_false(pin_list_find(&list, root, &rules, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_names(err.text, "1000 | isolation = copy");
}

/*
 * The mounts that a cell gets: "w" may be written, "r" not; an entry that contains others comes
 * first.
 */
static void assert_entries(bool writes_git, const char *wanted)
{
	char **texts;
	size_t count;
	char text[4096] = "";
	struct cell_entry *entries = pin_list_entries(&list, root, writes_git, &count, &texts);
	for (size_t i = 0; i < count; i++) {
		assert_memory_equal(entries[i].path, root, strlen(root));
		assert_true(text_append(text, sizeof(text), "%s%c %s", i > 0 ? " | " : "",
			entries[i].rule == CELL_WRITE ? 'w' : 'r', entries[i].path + strlen(root)));
	}
	free(entries);
	words_free(texts);
	assert_string_equal(text, wanted);
}

static void test_folders_on_the_way_stay_writable(void **state)
{
	make("work/.git");
	make("work/a");
	make("work/a/b");
	make("work/a.b");
	make("work/a/.git");
	put("work/a/b/.envrc", "");
	put("work/a.b/.envrc", "");
	assert_int_equal(symlink("a/b/.envrc", path_of("work/.envrc")), 0);
	find();
	assert_entries(false, "w  | r /.git | w /a | w /a.b | r /a.b/.envrc | r /a/.git | w /a/b | "
			      "r /a/b/.envrc");
	assert_entries(true, "w  | w /a | w /a.b | r /a.b/.envrc | w /a/b | r /a/b/.envrc");
}

static void make_worktree(const char *common, const char *back)
{
	char text[PATH_MAX];
	text_whole(text, sizeof(text), "gitdir: %s/%s/worktrees/w\n", folder, common);
	put("work/.git", text);
	text_whole(text, sizeof(text), "%s\n", path_of(back));
	char file[PATH_MAX];
	text_whole(file, sizeof(file), "%s/worktrees/w/gitdir", common);
	put(file, text);
}

/* ---- what the user's git reads ---- */

static void find_for_user(void)
{
	char home[128];
	text_whole(home, sizeof(home), "%s/home", folder);
	const struct pin_rules rules = {.is_guarded = is_guarded, .guard = guard, .home = home};
	pin_list_finish(&list);
	assert_true(pin_list_find(&list, root, &rules, &err));
}

static void make_repository(const char *name, const char *config)
{
	static const char *const folders[] = {"", "/objects", "/refs"};
	char text[128];
	for (size_t i = 0; i < ARRAY_LENGTH(folders); i++) {
		text_whole(text, sizeof(text), "%s%s", name, folders[i]);
		make(text);
	}
	text_whole(text, sizeof(text), "%s/HEAD", name);
	put(text, "ref: refs/heads/main\n");
	text_whole(text, sizeof(text), "%s/config", name);
	put(text, config);
}

static void test_what_a_repository_names_is_found(void **state)
{
	make("home");
	make_repository("work/.git", "[core]\n\thooksPath = scripts\n\tattributesFile = at\n"
				     "[include]\n\tpath = ../shared\n");
	make("work/scripts");
	make("work/scripts/.vscode");
	put("work/scripts/.envrc", "");
	put("work/at", "");
	put("work/shared", "[core]\n\texcludesFile = gone\n");
	make("work/sub");
	make_repository("work/sub/.git", "[core]\n\texcludesFile = hidden\n");
	put("work/sub/hidden", "");
	make_repository("work/bare.git", "[core]\n\thooksPath = ../scripts\n");
	find_for_user();
	assert_found("r .git | f at | r bare.git | d scripts | f shared | r sub/.git | "
		     "f sub/hidden");
	assert_names(pin_reader(&list.found[1]), "core.attributesFile");
	assert_names(pin_reader(&list.found[3]), "core.hooksPath");
	assert_names(pin_reader(&list.found[6]), "core.excludesFile");
	assert_entries(true, "w  | r /at | r /scripts | r /shared | w /sub | r /sub/hidden");
	put("work/gone", "");
	find_for_user();
	assert_true(pin_list_has(&list, "gone"));
}

static void test_what_the_user_has_in_the_workspace_is_found(void **state)
{
	char text[512];
	make("home");
	make("home/.config");
	make("home/.config/git");
	make("work/dots");
	put("work/dots/ignore", "");
	put("work/excludes", "");
	text_whole(text, sizeof(text), "[core]\n\texcludesFile = ~/../work/excludes\n");
	put("work/dots/gitconfig", text);
	assert_int_equal(symlink("../work/dots/gitconfig", path_of("home/.gitconfig")), 0);
	assert_int_equal(
		symlink("../../../work/dots/ignore", path_of("home/.config/git/ignore")), 0);
	find_for_user();
	assert_found("f dots/gitconfig | f excludes");
	put("work/dots/gitconfig", "");
	find_for_user();
	assert_found("f dots/gitconfig | f dots/ignore");
}

static void test_links_on_the_way_and_what_is_outside(void **state)
{
	make("home");
	make("hooks");
	make("work/real");
	make_repository("work/.git", "[core]\n\thooksPath = link\n\texcludesFile = .\n");
	assert_int_equal(symlink("real", path_of("work/link")), 0);
	find_for_user();
	assert_found("r .git | l link | d real");
	put("work/.git/config", "[core]\n\thooksPath = ../hooks\n");
	find_for_user();
	assert_found("r .git");
	/* Each link on the way decides where the path leads. */
	make("work/real/hooks");
	assert_int_equal(symlink("link", path_of("work/tools")), 0);
	put("work/.git/config", "[core]\n\thooksPath = tools/hooks\n");
	find_for_user();
	assert_found("r .git | l link | d real/hooks | l tools");
	put("work/.git/config", "[core]\n\thooksPath = sub/../tools/hooks/\n");
	make("work/sub");
	find_for_user();
	assert_found("r .git | l link | d real/hooks | l tools");
}

/* An agent may have written it, so that what follows is not protected. */
static void test_an_include_that_leads_nowhere_hides_nothing(void **state)
{
	static const char *const includes[] = {
		"~nobody/x", "~no-such-user/x", "%(prefix)/x", "~", "../gone"};
	char text[256];
	make("home");
	make("work/scripts");
	make_repository("work/.git", "");
	for (size_t i = 0; i < ARRAY_LENGTH(includes); i++) {
		text_whole(text, sizeof(text),
			"[include]\n\tpath = %s\n[core]\n\thooksPath = scripts\n", includes[i]);
		put("work/.git/config", text);
		find_for_user();
		assert_found("r .git | d scripts");
	}
}

/* What stands behind the error would stay writable. */
static void test_a_configuration_that_cannot_be_read_is_refused(void **state)
{
	char home[128], text[256];
	text_whole(home, sizeof(home), "%s/home", folder);
	const struct pin_rules rules = {.home = home};
	make("home");
	make_repository("work/.git", "");
	make_repository("work/bare.git", "%\n");
	pin_list_finish(&list);
	assert_false(pin_list_find(&list, root, &rules, &err));
	assert_names(err.text, path_of("work/bare.git/config"));
	assert_names(err.text, "line 1 | isolation = copy");
	put("work/bare.git/config", "");
	text_whole(text, sizeof(text), "[include]\n\tpath = %s\n", path_of("work/.git/config"));
	put("work/.git/config", text);
	pin_list_finish(&list);
	assert_false(pin_list_find(&list, root, &rules, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_true(pin_list_has(&list, ".git")); // found before
}

static void make_common(const char *name)
{
	static const char *const folders[] = {"objects", "refs", "worktrees", "worktrees/w"};
	char path[PATH_MAX];
	make(name);
	for (size_t i = 0; i < ARRAY_LENGTH(folders); i++) {
		text_whole(path, sizeof(path), "%s/%s", name, folders[i]);
		make(path);
	}
	text_whole(path, sizeof(path), "%s/HEAD", name);
	put(path, "ref: refs/heads/main\n");
	text_whole(path, sizeof(path), "%s/worktrees/w/HEAD", name);
	put(path, "ref: refs/heads/w\n");
	text_whole(path, sizeof(path), "%s/worktrees/w/commondir", name);
	put(path, "../..\n");
}

static void test_a_worktrees_repository_has_to_name_it(void **state)
{
	struct pin_repository found;
	const struct pin_places places = {.home = NULL};
	struct stat status;
	make_common("main");
	make_worktree("main", "work/.git");
	assert_true(pin_list_repository(root, &places, &found));
	assert_string_equal(found.path, path_of("main"));
	assert_int_equal(stat(found.path, &status), 0);
	assert_true(found.device == status.st_dev && found.inode == status.st_ino);
	make_worktree("main", "other/.git");
	assert_false(pin_list_repository(root, &places, &found));
	assert_string_equal(found.path, "");
	/* A file in the workspace itself proves nothing. */
	make_common("work/in");
	make_worktree("work/in", "work/.git");
	assert_false(pin_list_repository(root, &places, &found));
	put("work/.git", "gitdir: relative\n");
	assert_false(pin_list_repository(root, &places, &found));
	put("work/.git", "");
	assert_false(pin_list_repository(root, &places, &found));
}

/* An agent in the workspace and one in COMMON/worktrees/w could have written the two files. */
static void test_a_folder_that_is_no_repository_is_not_shown(void **state)
{
	static const struct {
		const char *missing, *other;
	} cases[] = {{"HEAD", NULL}, {"objects", NULL}, {"refs", NULL}, {NULL, ".git"},
		{NULL, "commondir"}, {"worktrees/w/HEAD", NULL}, {"worktrees/w/commondir", NULL},
		{"worktrees/w/commondir", "worktrees/w/commondir"}};
	struct pin_repository found;
	const struct pin_places places = {.home = NULL};
	char path[PATH_MAX];
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		make_common("main");
		make_worktree("main", "work/.git");
		assert_true(pin_list_repository(root, &places, &found));
		if (cases[i].missing) {
			text_whole(path, sizeof(path), "%s/main/%s", folder, cases[i].missing);
			assert_int_equal(remove(path), 0);
		}
		if (cases[i].other) {
			text_whole(path, sizeof(path), "main/%s", cases[i].other);
			put(path, "/\n");
		}
		assert_false(pin_list_repository(root, &places, &found));
		assert_true(remove_folder(path_of("main"), &err));
	}
}

static void test_a_repository_that_contains_too_much_is_not_shown(void **state)
{
	struct pin_repository found;
	char *refused[] = {mem_strdup(path_of("main/own")), NULL};
	char *above[] = {mem_strdup(path_of("main")), NULL};
	const struct pin_places none = {.home = NULL}, own = {.refused = refused},
				home = {.above = above};
	make_common("main");
	make_worktree("main", "work/.git");
	assert_true(pin_list_repository(root, &none, &found));
	assert_false(pin_list_repository(root, &own, &found));
	assert_false(pin_list_repository(root, &home, &found));
	free(refused[0]);
	free(above[0]);
	/* The workspace itself. */
	make("main/tree");
	text_whole(root, sizeof(root), "%s/main/tree", folder);
	char text[PATH_MAX];
	text_whole(text, sizeof(text), "gitdir: %s/main/worktrees/w\n", folder);
	put("main/tree/.git", text);
	text_whole(text, sizeof(text), "%s/.git\n", root);
	put("main/worktrees/w/gitdir", text);
	assert_false(pin_list_repository(root, &none, &found));
}

static void test_readers_are_named(void **state)
{
	struct pin_found found = {.kind = PIN_FILE, .path = (char[]){"a/.envrc"}};
	assert_names(pin_reader(&found), "direnv");
	found.path = (char[]){".gitmodules"};
	assert_names(pin_reader(&found), "git");
	found.kind = PIN_REPOSITORY;
	assert_names(pin_reader(&found), "git | hooks");
}

#define WITH_FOLDERS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDERS(test_repositories_and_guarded_files_are_found),
		WITH_FOLDERS(test_a_repository_in_two_folders_is_found),
		WITH_FOLDERS(test_what_cannot_be_looked_at_is_refused),
		WITH_FOLDERS(test_what_runs_anyway_is_left_out),
		WITH_FOLDERS(test_links_are_found_and_not_followed),
		WITH_FOLDERS(test_a_bare_repository_is_no_workspace),
		WITH_FOLDERS(test_too_many_are_refused),
		WITH_FOLDERS(test_folders_on_the_way_stay_writable),
		WITH_FOLDERS(test_what_a_repository_names_is_found),
		WITH_FOLDERS(test_what_the_user_has_in_the_workspace_is_found),
		WITH_FOLDERS(test_links_on_the_way_and_what_is_outside),
		WITH_FOLDERS(test_an_include_that_leads_nowhere_hides_nothing),
		WITH_FOLDERS(test_a_configuration_that_cannot_be_read_is_refused),
		WITH_FOLDERS(test_a_worktrees_repository_has_to_name_it),
		WITH_FOLDERS(test_a_folder_that_is_no_repository_is_not_shown),
		WITH_FOLDERS(test_a_repository_that_contains_too_much_is_not_shown),
		cmocka_unit_test(test_readers_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
