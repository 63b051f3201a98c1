/* SPDX-License-Identifier: MIT */
#include "sync/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/store_fixture.h"
#include "tests/support/facts.h"

static void test_modes_links_and_folders_are_members(void **state)
{
	struct place *place = *state;
	place_run(place,
		"mkdir -p d/e empty; echo a >a; echo b >d/b; chmod +x d/b; ln -s nowhere l;"
		"ln -s d dl; echo c >d/e/c; echo x >d.x; echo y >d-y");
	git_oid tree = place_take(place, NULL);
	assert_tree(place, &tree,
		"100644 a\n100644 d-y\n100644 d.x\n100755 d/b\n100644 d/e/c\n120000 dl\n120000 "
		"l\n");
	assert_int_equal(place->last.files, 7);
	assert_string_equal(place->last.note, "");
	place_run(place, "git --git-dir=../state/store fsck --strict");
}

static void test_the_tree_is_the_one_git_makes(void **state)
{
	struct place *place = *state;
	place_run(place,
		"git init -q; mkdir a b; seq 1 100 >a/x; seq 1 200 >b/y; ln -s ../a b/l; echo >z;"
		"git add -A");
	git_oid tree = place_take(place, NULL);
	char hex[GIT_OID_HEXSZ + 2];
	place->store.git->oid_tostr(hex, GIT_OID_HEXSZ + 1, &tree);
	char *said = place_ask(place, "git write-tree");
	said[strcspn(said, "\n")] = '\0';
	assert_string_equal(hex, said);
	free(said);
}

static void test_an_empty_directory_is_the_empty_tree(void **state)
{
	struct place *place = *state;
	git_oid tree = place_take(place, NULL);
	assert_memory_equal(&tree, &store_empty_tree, sizeof(tree));
	place_run(place, "mkdir -p a/b/c");
	tree = place_take(place, NULL);
	assert_memory_equal(&tree, &store_empty_tree, sizeof(tree));
}

static void test_ignored_files_are_left_out_and_tracked_ones_stay(void **state)
{
	struct place *place = *state;
	place_run(place,
		"git init -q; printf '*.o\\nbuild/\\n/top\\n!keep.o\\n' >.gitignore; mkdir build "
		"sub other;"
		"echo 1 >x.o; echo 1 >keep.o; echo 1 >build/out; echo 1 >build/tracked; echo 1 "
		">top;"
		"echo 1 >sub/top; echo 1 >sub/y.o; echo 1 >sub/y.c; echo '!*.o' >other/.gitignore;"
		"echo 1 >other/z.o; git add -f build/tracked sub/y.o");
	git_oid tree = place_take(place, NULL);
	assert_paths(place, &tree,
		".gitignore\nbuild/tracked\nkeep.o\nother/.gitignore\nother/z.o\nsub/top\nsub/y.c\n"
		"sub/y.o\n");
}

static void test_excludes_of_the_user_and_of_the_repository_count(void **state)
{
	struct place *place = *state;
	place_run(place, "git init -q; echo '*.mine' >.git/info/exclude;"
			 "mkdir -p ../.config/git; echo '*.global' >../.config/git/ignore;"
			 "touch a.mine a.global a");
	git_oid tree = place_take(place, NULL);
	assert_paths(place, &tree, "a\n");
	place_run(place,
		"printf '[core]\\n\\texcludesFile = ~/excl\\n' >../.gitconfig;"
		"echo '*.other' >../excl; touch a.other; echo '!b.other' >.git/info/exclude;"
		"touch b.other");
	tree = place_take(place, NULL);
	assert_paths(place, &tree, "a\na.global\na.mine\nb.other\n");
}

static void test_a_path_in_the_base_stays_a_member_whatever_the_rules_say(void **state)
{
	struct place *place = *state;
	place_run(place, "git init -q; mkdir -p d/e; echo 1 >d/e/a; echo 1 >b; echo 1 >c");
	git_oid base = place_take(place, NULL);
	place_run(place, "printf 'd/\\nb\\nnew\\n' >.gitignore; echo 1 >new; echo 1 >d/e/new2;"
			 "echo changed >d/e/a");
	git_oid tree = place_take(place, &base);
	assert_paths(place, &tree, ".gitignore\nb\nc\nd/e/a\n");
	git_oid again = place_take(place, &tree);
	assert_memory_equal(&again, &tree, sizeof(tree));
	git_oid without = place_take(place, NULL);
	assert_paths(place, &without, ".gitignore\nc\n");
	place_run(place, "rm d/e/a");
	tree = place_take(place, &tree);
	assert_paths(place, &tree, ".gitignore\nb\nc\n");
}

static void test_include_and_exclude_have_the_last_word(void **state)
{
	struct place *place = *state;
	static const char *const include[] = {"build/*.bin", "logs", NULL};
	static const char *const exclude[] = {"secret", "*.tmp", NULL};
	place_run(place, "git init -q; printf 'build/\\nlogs/\\n*.log\\n' >.gitignore; mkdir -p "
			 "build/deep logs/a "
			 "secret/x; touch build/a.bin build/b.txt build/deep/c.bin logs/a/b.log "
			 "secret/x/y a.tmp z");
	git_oid tree = place_take_as(
		place, (struct snapshot_request){.include = include, .exclude = exclude});
	assert_paths(place, &tree, ".gitignore\nbuild/a.bin\nbuild/deep/c.bin\nlogs/a/b.log\nz\n");
	git_oid base = place_take(place, NULL);
	assert_paths(place, &base, ".gitignore\na.tmp\nsecret/x/y\nz\n");
	tree = place_take_as(place, (struct snapshot_request){.base = &base, .exclude = exclude});
	assert_paths(place, &tree, ".gitignore\nz\n");
}

static void test_names_are_bytes(void **state)
{
	struct place *place = *state;
	place_run(place, "touch -- \"$(printf 'new\\nline')\" \"$(printf 'latin\\351')\" ' ' '-x' "
			 "'*' '\"q\"'"
			 "; mkdir \"$(printf 'd\\n\\377')\"; touch \"$(printf 'd\\n\\377')/f\"");
	git_oid tree = place_take(place, NULL);
	assert_paths(place, &tree,
		" \n\"\\\"q\\\"\"\n*\n-x\n\"d\\n\\377/f\"\n\"latin\\351\"\n\"new\\nline\"\n");
	git_oid again = place_take(place, &tree);
	assert_memory_equal(&again, &tree, sizeof(tree));
}

static void test_git_folders_and_our_own_files_are_no_members(void **state)
{
	struct place *place = *state;
	place_run(place,
		"mkdir .git .GIT 'git~1' sub sub/.Git; touch .git/x .GIT/x git~1/x sub/.Git/x;"
		"touch 'sub/.git ' a.20260131T101502-3f2a91.acp-conflict .acp-broker-1.tmp;"
		"touch .gitx agit sub/.github");
	git_oid tree = place_take(place, NULL);
	assert_paths(place, &tree, ".gitx\nagit\nsub/.github\n");
}

static void test_what_is_no_file_is_left_out(void **state)
{
	struct place *place = *state;
	place_run(place, "echo 1 >f; echo 1 >g");
	git_oid base = place_take(place, NULL);
	place_run(place, "rm g; mkfifo fifo g");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s", place_path(place, "socket"));
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	git_oid tree = place_take(place, &base);
	assert_paths(place, &tree, "f\n");
}

static void test_links_of_a_name_that_git_refuses_keep_their_place(void **state)
{
	struct place *place = *state;
	place_run(place, "mkdir sub; echo 1 >.gitmodules; echo 1 >f");
	git_oid base = place_take(place, NULL);
	assert_paths(place, &base, ".gitmodules\nf\n");
	assert_string_equal(place->last.note, "");
	place_run(place, "rm .gitmodules; ln -s f .gitmodules; ln -s ../f sub/.GITMODULES;"
			 "ln -s f .gitmodulesx");
	git_oid tree = place_take(place, &base);
	assert_paths(place, &tree, ".gitmodules\n.gitmodulesx\nf\n");
	assert_names(place->last.note, "link | .gitmodules | 2 stayed | \".gitmodules\" first");
}

static void test_a_warning_is_of_what_is_asked_for(void **state)
{
	struct snapshot snapshot = {.files = 50001, .bytes = 6ULL << 30};
	char text[SNAPSHOT_WARNING_MAX];
	snapshot_warning(&snapshot, 0, text);
	assert_string_equal(text, "");
	snapshot_warning(&snapshot, SNAPSHOT_MANY_FILES, text);
	assert_names(text, "50001 files");
	assert_null(strstr(text, "MiB"));
	snapshot_warning(&snapshot, SNAPSHOT_MANY_BYTES, text);
	assert_names(text, "6144 MiB");
	assert_null(strstr(text, "50001"));
	snapshot_warning(&snapshot, SNAPSHOT_MANY_FILES | SNAPSHOT_MANY_BYTES, text);
	assert_names(text, "50001 files | 6144 MiB");
}

static void test_hard_links_and_other_spellings_of_git_are_told(void **state)
{
	struct place *place = *state;
	struct snapshot snapshot;
	struct error err;
	place_run(place, "mkdir d e e/.GiT 'GIT~1'; echo 1 > a; ln a d/b; echo 2 > c; ln c ../out;"
			 "echo x > e/.GiT/x; mkdir .git");
	struct snapshot_request request = {.root = place->root};
	assert_true(snapshot_take(&place->store, &request, &snapshot, &err));
	assert_names(snapshot.note, "1 hard | d/b | 2 not synced | GIT~1");
	place_run(place, "rm -r d e 'GIT~1'");
	assert_true(snapshot_take(&place->store, &request, &snapshot, &err));
	assert_string_equal(snapshot.note, "");
}

static void test_too_many_files_name_the_folder_that_has_them(void **state)
{
	struct place *place = *state;
	struct snapshot snapshot;
	struct error err;
	place_run(place, "mkdir -p data/sets few; for i in $(seq 60); do : > data/sets/$i; done;"
			 "for i in $(seq 9); do : > few/$i; : > $i; done");
	struct snapshot_request request = {.root = place->root, .limits = {.files_max = 70}};
	assert_false(snapshot_take(&place->store, &request, &snapshot, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_names(err.text, "70 | exclude = data/sets | max-files");
}

static void test_limits_warn_and_refuse(void **state)
{
	struct place *place = *state;
	struct snapshot snapshot;
	struct error err;
	place_run(place, "seq 1 1000 >a; seq 1 1000 >b; seq 1 1000 >c");
	struct snapshot_request request = {.root = place->root, .limits = {.files_max = 3}};
	assert_true(snapshot_take(&place->store, &request, &snapshot, &err));
	assert_string_equal(snapshot.note, "");
	assert_int_equal(snapshot.excess, 0);
	request.limits = (struct snapshot_limits){.files_warn = 2, .bytes_warn = 5000};
	assert_true(snapshot_take(&place->store, &request, &snapshot, &err));
	assert_int_equal(snapshot.excess, SNAPSHOT_MANY_FILES | SNAPSHOT_MANY_BYTES);
	request.limits.files_warn = 3;
	assert_true(snapshot_take(&place->store, &request, &snapshot, &err));
	assert_int_equal(snapshot.excess, SNAPSHOT_MANY_BYTES);
	request.limits = (struct snapshot_limits){.files_max = 2};
	assert_false(snapshot_take(&place->store, &request, &snapshot, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	request.limits = (struct snapshot_limits){.bytes_max = 11000};
	assert_false(snapshot_take(&place->store, &request, &snapshot, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
}

static void test_it_can_be_cancelled(void **state)
{
	struct place *place = *state;
	struct snapshot snapshot;
	struct error err;
	atomic_bool is_cancelled = true;
	struct snapshot_request request = {.root = place->root, .is_cancelled = &is_cancelled};
	place_write(place, "a", "a");
	assert_false(snapshot_take(&place->store, &request, &snapshot, &err));
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
}

static void test_a_big_file_stands_as_a_gitlink(void **state)
{
	struct place *place = *state;
	struct error err;
	store_close(&place->store);
	assert_true(store_open(&place->store, place->store_path, 1000, &err));
	place_run(place, "seq 1 1000 >big; seq 1 1000 >bigx; chmod +x bigx; seq 1 10 >small");
	git_oid tree = place_take(place, NULL);
	assert_tree(place, &tree, "160000 big\n160000 bigx\n100644 small\n");
	git_oid again = place_take(place, &tree);
	assert_memory_equal(&again, &tree, sizeof(tree));
	place_run(place, "chmod -x bigx");
	again = place_take(place, &tree);
	assert_memory_not_equal(&again, &tree, sizeof(tree));
}

static void expect_trees_and_caches(struct place *place, const char *expected)
{
	char *said = place_ask(place,
		"cd ../state/store; git cat-file --batch-all-objects --batch-check | grep -c tree;"
		"ls cache | wc -l");
	assert_string_equal(said, expected);
	free(said);
}

static void test_folders_that_are_not_asked_for_are_as_in_the_base(void **state)
{
	struct place *place = *state;
	place_run(place, "mkdir -p d/e f g; for i in a d/b d/e/c f/x g/y; do echo >$i; done");
	git_oid base = place_take(place, NULL);
	place_run(place, "echo 1 >a; echo 1 >d/b; echo 1 >d/e/c; rm -r f/x g; mkdir n; echo >n/z");
	static const char *const all[] = {"", "d", "d/e", "f", "n"}, *const some[] = {"", "d"};
	struct snapshot_request of_all = {.base = &base, .folders = all, .folder_count = 5};
	git_oid tree = place_take_as(place, of_all);
	assert_tree(place, &tree, "100644 a\n100644 d/b\n100644 d/e/c\n100644 n/z\n");
	git_oid whole = place_take(place, &base);
	assert_memory_equal(&tree, &whole, sizeof(tree));
	struct snapshot_request of_some = {.base = &base, .folders = some, .folder_count = 2};
	tree = place_take_as(place, of_some);
	assert_tree(place, &tree, "100644 a\n100644 d/b\n100644 d/e/c\n100644 f/x\n");
	place_run(place, "echo >d/e/c; echo >f/x; rm -r n");
	whole = place_take(place, &base);
	assert_memory_equal(&tree, &whole, sizeof(tree));
}

static void test_a_look_leaves_trees_and_cache_to_its_end(void **state)
{
	struct place *place = *state;
	struct error err;
	struct snapshot snapshot;
	struct snapshot_request request = {.root = place->root, .cache = "two"};
	place_run(place, "mkdir d; echo a >a; echo b >d/b");
	struct snapshot_view *view = snapshot_begin(&place->store, &request, &err);
	assert_non_null(view);
	expect_trees_and_caches(place, "1\n0\n"); // the empty tree is in every store
	place_run(place, "echo later >a");
	assert_true(snapshot_finish(view, &place->store, &snapshot, &err));
	expect_trees_and_caches(place, "3\n1\n");
	assert_tree(place, &snapshot.tree, "100644 a\n100644 d/b\n");
	assert_int_equal(snapshot.read_files, 2);
	git_oid now = place_take(place, NULL);
	assert_memory_not_equal(&now, &snapshot.tree, sizeof(now)); // what a held when it was read
	snapshot_drop(snapshot_begin(&place->store, &request, &err));
	snapshot_drop(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_modes_links_and_folders_are_members),
		TEST(test_the_tree_is_the_one_git_makes),
		TEST(test_an_empty_directory_is_the_empty_tree),
		TEST(test_ignored_files_are_left_out_and_tracked_ones_stay),
		TEST(test_excludes_of_the_user_and_of_the_repository_count),
		TEST(test_a_path_in_the_base_stays_a_member_whatever_the_rules_say),
		TEST(test_include_and_exclude_have_the_last_word),
		TEST(test_names_are_bytes),
		TEST(test_git_folders_and_our_own_files_are_no_members),
		TEST(test_what_is_no_file_is_left_out),
		TEST(test_links_of_a_name_that_git_refuses_keep_their_place),
		TEST(test_a_warning_is_of_what_is_asked_for),
		TEST(test_hard_links_and_other_spellings_of_git_are_told),
		TEST(test_too_many_files_name_the_folder_that_has_them),
		TEST(test_limits_warn_and_refuse),
		TEST(test_it_can_be_cancelled),
		TEST(test_a_big_file_stands_as_a_gitlink),
		TEST(test_folders_that_are_not_asked_for_are_as_in_the_base),
		TEST(test_a_look_leaves_trees_and_cache_to_its_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
