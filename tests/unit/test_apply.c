/* SPDX-License-Identifier: MIT */
#include "sync/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "sync/apply_journal.h"
#include "sync/tree_view.h"
#include "tests/unit/tree_fixture.h"

enum { LEFT_MAX = 1024 };

struct run {
	struct apply_result result;
	char left[LEFT_MAX]; // paths, each with a newline
	char remains[LEFT_MAX];
	atomic_bool is_cancelled;
};

static void note_remains(void *data, const char *path, const char *why)
{
	struct run *run = data;
	size_t len = strlen(run->remains);
	snprintf(run->remains + len, sizeof(run->remains) - len, "%s: %s\n", path, why);
}

static void note_left(void *data, const char *path, const char *why)
{
	struct run *run = data;
	size_t len = strlen(run->left);
	snprintf(run->left + len, sizeof(run->left) - len, "%s\n", path);
	assert_non_null(why);
}

static bool apply(struct place *place, const git_oid *from, const git_oid *to, struct run *run,
	struct error *err)
{
	struct apply_request request = {.root = place->root,
		.from = *from,
		.to = *to,
		.on_left = note_left,
		.on_remains = note_remains,
		.data = run,
		.is_cancelled = &run->is_cancelled};
	run->left[0] = '\0';
	run->remains[0] = '\0';
	return apply_run(&place->store, &request, &run->result, err);
}

static struct run apply_well(struct place *place, const git_oid *from, const git_oid *to)
{
	struct run run = {0};
	struct error err;
	if (!apply(place, from, to, &run, &err)) {
		fail_msg("%s", err.text);
	}
	return run;
}

static void assert_work_tree(struct place *place, const char *text)
{
	git_oid now = tree_of_folder(&place->store, place->root);
	char *found = tree_text(&place->store, &now);
	assert_string_equal(found, text);
	free(found);
}

#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Each of these trees becomes each other one; afterwards nothing is missing or there twice. */
static const char *const trees[][6] = {
	{NULL},
	{"a=1"},
	{"a*=1"},
	{"a@=1"},
	{"a@=nowhere/else"},
	{"a/b=1"},
	{"a/b/c=1", "a/b/d=2"},
	{"a/b@=c", "a/c=3"},
	{"A=1", "a.b=2", "a/x=3"},
	{"\xff\n=odd", "a=2", "z/z/z/z=deep"},
};

static void become(struct place *place, const char *const *before, const char *const *after)
{
	tree_clear(place->root);
	tree_write(place->root, before);
	git_oid from = tree_make(&place->store, before);
	git_oid to = tree_make(&place->store, after);
	struct run run = apply_well(place, &from, &to);
	git_oid now = tree_of_folder(&place->store, place->root);
	if (!tree_equal(&now, &to) || run.result.left) {
		fail_msg("%s to %s: left %s", before[0], after[0], run.left);
	}
	run = apply_well(place, &from, &to);
	assert_int_equal(run.result.written + run.result.deleted, 0);
	assert_int_equal(tree_count(place->root, ".acp-", NULL), 0);
}

static void test_every_tree_becomes_every_other(void **state)
{
	for (size_t from = 0; from < ARRAY_LENGTH(trees); from++) {
		for (size_t to = 0; to < ARRAY_LENGTH(trees); to++) {
			become(*state, trees[from], trees[to]);
		}
	}
}

static void test_changes_are_counted_and_emptied_folders_go(void **state)
{
	struct place *place = *state;
	tree_write(place->root, LINES("a=1", "b=1", "d/e/f=1", "same=1"));
	git_oid from = tree_of_folder(&place->store, place->root);
	git_oid to = TREE(&place->store, "a=2", "b*=1", "n/e/w=1", "same=1");
	struct run run = apply_well(place, &from, &to);
	assert_int_equal(run.result.written, 3);
	assert_int_equal(run.result.deleted, 1);
	assert_int_equal(access(place_path(place, "d"), F_OK), -1);
}

static void test_permissions_stay_but_for_the_executable_bits(void **state)
{
	struct place *place = *state;
	static const struct {
		const char *name;
		mode_t before, after;
	} files[] = {{"content", 0640, 0640}, {"run", 0640, 0750}, {"stop", 0755, 0644},
		{"secret", 0600, 0600}};
	tree_write(place->root, LINES("content=1", "run=1", "secret=1", "stop=1"));
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		assert_int_equal(chmod(place_path(place, files[i].name), files[i].before), 0);
	}
	git_oid from = tree_of_folder(&place->store, place->root);
	git_oid to = TREE(&place->store, "content=2", "run*=1", "secret=2", "stop=2");
	apply_well(place, &from, &to);
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		struct stat status;
		assert_int_equal(stat(place_path(place, files[i].name), &status), 0);
		assert_int_equal(status.st_mode & 07777, files[i].after);
	}
}

static void test_what_changed_meanwhile_is_left_and_named(void **state)
{
	struct place *place = *state;
	tree_write(place->root, LINES("a=1", "b=1", "c=1", "d=1", "m=1", "n/x=1"));
	git_oid from = tree_of_folder(&place->store, place->root);
	git_oid to = TREE(&place->store, "a=2", "b=2", "d*=1", "m=2", "n/x=2", "new=2");
	tree_write(place->root, LINES("a=mine", "c=mine", "d=mine", "m*=1", "new=mine"));
	assert_int_equal(unlink(place_path(place, "n/x")), 0);
	struct run run = apply_well(place, &from, &to);
	assert_string_equal(run.left, "c\na\nd\nm\nn/x\nnew\n");
	assert_int_equal(run.result.left, 6);
	assert_work_tree(place, "a=mine\nb=2\nc=mine\nd=mine\nm*=1\nnew=mine\n");
}

static void test_nothing_is_touched_through_a_link(void **state)
{
	struct place *place = *state;
	tree_write(place->folder, LINES("outside/x=1", "outside/y=1"));
	tree_write(place->root, LINES("d/x=1", "d/y=1"));
	git_oid from = tree_of_folder(&place->store, place->root);
	git_oid to = TREE(&place->store, "d/x=2", "d/z/z=2");
	tree_clear(place_path(place, "d"));
	assert_int_equal(rmdir(place_path(place, "d")), 0);
	assert_int_equal(symlink("../outside", place_path(place, "d")), 0);
	struct run run = apply_well(place, &from, &to);
	assert_string_equal(run.left, "d/x\nd/z/z\n");
	assert_work_tree(place, "d@=../outside\n");
	char outside[FIXTURE_PATH_MAX];
	snprintf(outside, sizeof(outside), "%.400s/outside", place->folder);
	git_oid now = tree_of_folder(&place->store, outside);
	git_oid expected = TREE(&place->store, "x=1", "y=1");
	assert_true(tree_equal(&now, &expected));
}

/* A link is only data: nobody asks where it leads, and nothing follows it. */
static void test_a_link_that_points_out_is_written_and_not_followed(void **state)
{
	struct place *place = *state;
	git_oid first = TREE(&place->store, "l@=/etc");
	git_oid second = TREE(&place->store, "l/passwd=mine");
	apply_well(place, &store_empty_tree, &first);
	apply_well(place, &first, &second);
	assert_work_tree(place, "l/passwd=mine\n");
}

static void test_files_that_do_not_sync_stay_with_their_folder(void **state)
{
	struct place *place = *state;
	tree_write(place->root, LINES("d/x=1", "d/ignored=1"));
	git_oid from = TREE(&place->store, "d/x=1");
	struct run run = apply_well(place, &from, &store_empty_tree);
	assert_int_equal(run.result.deleted, 1);
	assert_work_tree(place, "d/ignored=1\n");
	git_oid file = TREE(&place->store, "d=a file");
	run = apply_well(place, &store_empty_tree, &file);
	assert_string_equal(run.left, "d\n");
	assert_work_tree(place, "d/ignored=1\n");
}

static void test_empty_folders_are_not_in_the_way_of_a_file(void **state)
{
	struct place *place = *state;
	place_run(place, "mkdir -p d/e/f d/g");
	git_oid to = TREE(&place->store, "d=a file");
	struct run run = apply_well(place, &store_empty_tree, &to);
	assert_int_equal(run.result.left, 0);
	assert_work_tree(place, "d=a file\n");
}

static void test_parked_versions_are_not_in_the_way_of_a_file(void **state)
{
	struct place *place = *state;
	place_run(place, "mkdir -p d/e && echo parked >d/e/x.acp-conflict");
	git_oid to = TREE(&place->store, "d=a file");
	struct run run = apply_well(place, &store_empty_tree, &to);
	assert_int_equal(run.result.left, 0);
	assert_work_tree(place, "d=a file\n");
	char *found = place_ask(place, "cat d.*.acp-conflict/e/x.acp-conflict");
	assert_string_equal(found, "parked\n");
	free(found);
}

static void test_a_file_that_is_open_for_writing_is_left(void **state)
{
	struct place *place = *state;
	struct error err;
	tree_write(place->root, LINES("a=1", "b=1"));
	git_oid from = tree_of_folder(&place->store, place->root);
	git_oid to = TREE(&place->store, "a=2");
	int fds[] = {open(place_path(place, "a"), O_WRONLY | O_CLOEXEC),
		open(place_path(place, "b"), O_RDWR | O_CLOEXEC)};
	struct run run = apply_well(place, &from, &to);
	assert_string_equal(run.left, "b\na\n");
	for (size_t i = 0; i < ARRAY_LENGTH(fds); i++) {
		assert_true(fd_write_all(fds[i], SPAN_LITERAL("later"), &err));
		close(fds[i]);
	}
	assert_work_tree(place, "a=later\nb=later\n");
}

static void test_a_file_that_is_open_for_reading_is_replaced(void **state)
{
	struct place *place = *state;
	tree_write(place->root, LINES("a=1"));
	git_oid from = tree_of_folder(&place->store, place->root);
	git_oid to = TREE(&place->store, "a=2");
	int fd = open(place_path(place, "a"), O_RDONLY | O_CLOEXEC);
	apply_well(place, &from, &to);
	assert_work_tree(place, "a=2\n");
	char byte;
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(byte, '1');
	close(fd);
}

static void test_big_files_come_and_go_and_are_made_executable(void **state)
{
	struct place *place = *state;
	place->store.big_file_bytes = 4;
	git_oid trees_of[3];
	static const char *const lines[] = {"big=long enough", "big=also long", "big*=also long"};
	for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
		tree_clear(place->root);
		tree_write(place->root, LINES(lines[i]));
		trees_of[i] = tree_of_folder(&place->store, place->root);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
		git_oid from = trees_of[(i + 2) % ARRAY_LENGTH(lines)];
		apply_well(place, &from, &trees_of[i]);
		git_oid now = tree_of_folder(&place->store, place->root);
		assert_true(tree_equal(&now, &trees_of[i]));
	}
	apply_well(place, &trees_of[2], &store_empty_tree);
	assert_work_tree(place, "");
}

static void test_a_cancel_stops_between_files_and_again_finishes(void **state)
{
	struct place *place = *state;
	struct error err;
	struct run run = {.is_cancelled = true};
	git_oid to = TREE(&place->store, "a=1", "b=1");
	assert_false(apply(place, &store_empty_tree, &to, &run, &err));
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	assert_work_tree(place, "");
	apply_well(place, &store_empty_tree, &to);
	assert_work_tree(place, "a=1\nb=1\n");
}

static void test_a_content_that_the_store_lacks_is_an_error_and_changes_nothing(void **state)
{
	struct place *place = *state;
	struct error err;
	struct run run = {0};
	git_oid to;
	struct tree_view_entry entry = {SPAN_LITERAL("a"), ENTRY_FILE, {{7}}};
	tree_write(place->root, LINES("a=1"));
	git_oid from = tree_of_folder(&place->store, place->root);
	assert_true(tree_view_write(&place->store, &entry, 1, &to, &err));
	assert_false(apply(place, &from, &to, &run, &err));
	assert_int_equal(err.code, ERROR_SYSTEM);
	assert_work_tree(place, "a=1\n");
	assert_int_equal(tree_count(place->root, ".acp-", NULL), 0);
}

static void test_a_root_that_is_not_there_is_an_error(void **state)
{
	struct place *place = *state;
	struct error err;
	struct run run = {0};
	assert_int_equal(rmdir(place->root), 0);
	git_oid to = TREE(&place->store, "a=1");
	assert_false(apply(place, &store_empty_tree, &to, &run, &err));
	assert_non_null(strstr(err.text, place->root));
	assert_int_equal(mkdir(place->root, 0755), 0);
}

/* u::rw-, u:1234:r--, g::---, mask::r--, o::---, as the kernel stores it; acl(5). */
static const uint32_t access_list[] = {2, 0x60001, UINT32_MAX, 0x40002, 1234, 0x4, UINT32_MAX,
	0x40010, UINT32_MAX, 0x20, UINT32_MAX};

/* The mask shows as the permissions of the group, which here has none. */
static void test_the_access_list_and_the_attributes_of_a_file_stay(void **state)
{
	static const char list_name[] = "system.posix_acl_access";
	struct place *place = *state;
	char path[PATH_MAX];
	char value[16];
	uint32_t kept[ARRAY_LENGTH(access_list)];
	git_oid from = TREE(&place->store, "a=1");
	git_oid to = TREE(&place->store, "a=2");
	tree_write(place->root, LINES("a=1"));
	snprintf(path, sizeof(path), "%s/a", place->root);
	bool has_list = setxattr(path, list_name, access_list, sizeof(access_list), 0) == 0;
	assert_true(has_list || errno == ENOTSUP); // without a list there is none to keep
	bool has_attribute = setxattr(path, "user.acp_broker.test", "kept", 4, 0) == 0;
	assert_true(has_attribute || errno == ENOTSUP);
	apply_well(place, &from, &to);
	assert_work_tree(place, "a=2\n");
	if (has_list) {
		assert_int_equal(getxattr(path, list_name, kept, sizeof(kept)), sizeof(kept));
		assert_memory_equal(kept, access_list, sizeof(kept));
	}
	if (has_attribute) {
		assert_int_equal(getxattr(path, "user.acp_broker.test", value, sizeof(value)), 4);
	}
}

/* ---- what an interrupted one has left ---- */

/* Root may write everywhere, so this becomes another user. */
static void become_nobody(struct place *place)
{
	if (geteuid() == 0) {
		place_run(place, "chown -R 65534:65534 \"$PLACE\"");
		assert_int_equal(seteuid(65534), 0);
	}
}

static void note_folders(struct place *place, const char *const *folders)
{
	struct journal journal;
	struct error err;
	journal_init(&journal, &place->store, place->root);
	for (; *folders; folders++) {
		assert_true(journal_note(&journal, *folders, &err));
	}
	journal_finish(&journal);
}

static void test_remains_that_cannot_be_removed_are_told_and_block_nobody(void **state)
{
	struct place *place = *state;
	place_run(place, "mkdir d e f; echo 1 >a; echo x >d/.acp-broker-1.new.tmp; "
			 "echo x >e/.acp-broker-2.old.tmp; echo x >f/.acp-broker-3.new.tmp; "
			 "chmod 555 d; chmod 0 e");
	note_folders(place, LINES("d", "e", "f", "d"));
	git_oid from = TREE(&place->store, "a=1\n");
	git_oid to = TREE(&place->store, "a=2\n");
	become_nobody(place);
	struct run run = apply_well(place, &from, &to);
	assert_string_equal(run.remains, "d/.acp-broker-1.new.tmp: Permission denied\n"
					 "e: Permission denied\n");
	assert_int_equal(run.result.written, 1);
	assert_int_equal(run.result.left, 0);
	assert_int_equal(access(place_path(place, "f/.acp-broker-3.new.tmp"), F_OK), -1);
	apply_well(place, &to, &from);
	place_run(place, "chmod 755 d e");
	run = apply_well(place, &from, &to);
	assert_int_equal(seteuid(getuid()), 0);
	assert_string_equal(run.remains, "");
	assert_non_null(strstr(run.left, "e/recovered.")); // nobody else has it
	assert_int_equal(tree_count(place->root, ".acp-broker-", NULL), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_the_access_list_and_the_attributes_of_a_file_stay),
		TEST(test_every_tree_becomes_every_other),
		TEST(test_changes_are_counted_and_emptied_folders_go),
		TEST(test_permissions_stay_but_for_the_executable_bits),
		TEST(test_what_changed_meanwhile_is_left_and_named),
		TEST(test_nothing_is_touched_through_a_link),
		TEST(test_a_link_that_points_out_is_written_and_not_followed),
		TEST(test_files_that_do_not_sync_stay_with_their_folder),
		TEST(test_empty_folders_are_not_in_the_way_of_a_file),
		TEST(test_parked_versions_are_not_in_the_way_of_a_file),
		TEST(test_a_file_that_is_open_for_writing_is_left),
		TEST(test_a_file_that_is_open_for_reading_is_replaced),
		TEST(test_big_files_come_and_go_and_are_made_executable),
		TEST(test_a_cancel_stops_between_files_and_again_finishes),
		TEST(test_a_content_that_the_store_lacks_is_an_error_and_changes_nothing),
		TEST(test_a_root_that_is_not_there_is_an_error),
		TEST(test_remains_that_cannot_be_removed_are_told_and_block_nobody),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
