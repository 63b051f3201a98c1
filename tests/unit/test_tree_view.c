/* SPDX-License-Identifier: MIT */
#include "sync/tree_view.h"

#include <stdio.h>
#include <string.h>

#include "sync/apply.h"
#include "sync/merge.h"
#include "tests/unit/tree_fixture.h"

/* An entry of a tree as a hostile side may write it, without any check. */
struct raw {
	const char *mode;
	struct span name;
};

static git_oid raw_tree(struct store *store, const struct raw *entries, size_t count)
{
	struct buf buf;
	struct error err;
	git_oid id;
	buf_init(&buf, 1 << 20);
	for (size_t i = 0; i < count; i++) {
		assert_true(buf_append_format(&buf, &err, "%s ", entries[i].mode));
		assert_true(buf_append(&buf, entries[i].name, &err));
		assert_true(buf_append(&buf, (struct span){"", 1}, &err));
		assert_true(buf_append(&buf,
			(struct span){(const char *)store_empty_tree.id, GIT_OID_RAWSZ}, &err));
	}
	assert_int_equal(store->git->odb_write(
				 &id, store->odb, buf_span(&buf).data, buf.len, GIT_OBJECT_TREE),
		0);
	buf_finish(&buf);
	return id;
}

static void expect_refused(struct store *store, const git_oid *tree, const char *what)
{
	struct error err;
	struct merge merge;
	struct merge_trees trees = {store_empty_tree, store_empty_tree, *tree};
	assert_false(merge_run(&merge, store, &trees, &err));
	if (err.code != ERROR_PROTOCOL || !strstr(err.text, what)) {
		fail_msg("%d: %s", err.code, err.text);
	}
	merge_finish(&merge);
	struct apply_result result;
	struct apply_request request = {.root = "/tmp", .from = store_empty_tree, .to = *tree};
	assert_false(apply_run(store, &request, &result, &err));
	assert_int_equal(err.code, ERROR_PROTOCOL);
	assert_int_equal(result.written + result.deleted + result.left, 0);
}

static void test_names_that_no_snapshot_holds_are_refused(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	static const struct span names[] = {SPAN_LITERAL(".."), SPAN_LITERAL("."),
		SPAN_LITERAL(".git"), SPAN_LITERAL(".GIT"), SPAN_LITERAL(".Git "),
		SPAN_LITERAL("git~1"), SPAN_LITERAL("GIT~1"), SPAN_LITERAL(".g\xe2\x80\x8cit"),
		SPAN_LITERAL("/etc/passwd"), SPAN_LITERAL("a/b"), SPAN_LITERAL("a/"),
		SPAN_LITERAL("x.acp-conflict"), SPAN_LITERAL(".acp-broker-1.tmp")};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		struct raw entry = {"100644", names[i]};
		git_oid tree = raw_tree(store, &entry, 1);
		expect_refused(store, &tree, "\": ");
	}
}

static void test_a_refusal_names_the_path_in_printable_characters(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	struct raw bad = {"100644", SPAN_LITERAL(".git\x1b.")};
	struct raw link = {"120000", SPAN_LITERAL("..")};
	git_oid inner = raw_tree(store, &link, 1);
	struct tree_view_entry folder = {SPAN_LITERAL("in\nner"), TREE_VIEW_FOLDER, inner};
	git_oid tree;
	struct error err;
	assert_true(tree_view_write(store, &folder, 1, &tree, &err));
	expect_refused(store, &tree, "\"in?ner/..\"");
	bad.name = SPAN_LITERAL("\x1b[2J/x");
	tree = raw_tree(store, &bad, 1);
	expect_refused(store, &tree, "\"?[2J/x\"");
}

static void test_trees_of_no_right_form_are_refused(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	static const struct {
		struct raw entries[3];
		size_t count;
		const char *what;
	} trees[] = {
		{{{"100644", SPAN_LITERAL("b")}, {"100644", SPAN_LITERAL("a")}}, 2, "order"},
		{{{"100644", SPAN_LITERAL("a")}, {"100644", SPAN_LITERAL("a")}}, 2, "order"},
		{{{"100644", SPAN_LITERAL("a")}, {"100644", SPAN_LITERAL("a.b")},
			 {"40000", SPAN_LITERAL("a")}},
			3, "twice"},
		{{{"100664", SPAN_LITERAL("a")}}, 1, "not a tree"},
		{{{"040000", SPAN_LITERAL("a")}}, 1, "not a tree"},
		{{{"0", SPAN_LITERAL("a")}}, 1, "not a tree"},
		{{{"20644", SPAN_LITERAL("tty")}}, 1, "not a tree"},
		{{{"1006440", SPAN_LITERAL("a")}}, 1, "not a tree"},
		{{{"", SPAN_LITERAL("a")}}, 1, "not a tree"},
		{{{"100644", SPAN_LITERAL("")}}, 1, "no snapshot"},
		{{{"100644", SPAN_LITERAL("a\0..")}}, 1, "not a tree"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(trees); i++) {
		git_oid tree = raw_tree(store, trees[i].entries, trees[i].count);
		expect_refused(store, &tree, trees[i].what);
	}
	char long_name[NAME_MAX + 2];
	memset(long_name, 'x', sizeof(long_name));
	struct raw too_long = {"100644", {long_name, NAME_MAX + 1}};
	git_oid tree = raw_tree(store, &too_long, 1);
	expect_refused(store, &tree, "too long");
}

static void test_a_blob_for_a_tree_is_refused(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	struct error err;
	struct tree_view_entry folder = {SPAN_LITERAL("d"), TREE_VIEW_FOLDER, {{0}}};
	git_oid tree;
	assert_true(store_put_bytes(store, SPAN_LITERAL("text"), &folder.id, &err));
	assert_true(tree_view_write(store, &folder, 1, &tree, &err));
	expect_refused(store, &tree, "not a tree");
}

static void test_folders_without_end_are_refused(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	git_oid tree = TREE(store, "a=1");
	struct error err;
	for (int i = 0; i < TREE_VIEW_DEPTH_MAX; i++) {
		struct tree_view_entry folder = {SPAN_LITERAL("d"), TREE_VIEW_FOLDER, tree};
		assert_true(tree_view_write(store, &folder, 1, &tree, &err));
	}
	expect_refused(store, &tree, "too deep");
	char name[NAME_MAX];
	memset(name, 'n', sizeof(name));
	tree = TREE(store, "a=1");
	for (size_t len = 0; len < PATH_MAX; len += sizeof(name)) {
		struct tree_view_entry folder = {{name, sizeof(name)}, TREE_VIEW_FOLDER, tree};
		assert_true(tree_view_write(store, &folder, 1, &tree, &err));
	}
	expect_refused(store, &tree, "too long");
}

/* 20 folders of 20 folders, and so on, all of which are the same: small, but without an end. */
static void test_a_tree_that_repeats_itself_has_a_limit(void **state)
{
	enum { WIDTH = 20, DEPTH = 12 };
	struct store *store = &((struct place *)*state)->store;
	git_oid tree = TREE(store, "a=1");
	struct error err;
	char names[WIDTH][8];
	struct tree_view_entry folders[WIDTH];
	for (int depth = 0; depth < DEPTH; depth++) {
		for (int i = 0; i < WIDTH; i++) {
			snprintf(names[i], sizeof(names[i]), "%02d", i);
			folders[i] =
				(struct tree_view_entry){span_of(names[i]), TREE_VIEW_FOLDER, tree};
		}
		assert_true(tree_view_write(store, folders, WIDTH, &tree, &err));
	}
	struct merge merge;
	struct merge_trees trees = {store_empty_tree, store_empty_tree, tree};
	assert_false(merge_run(&merge, store, &trees, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	merge_finish(&merge);
}

static void test_views_walk_side_by_side_by_name(void **state)
{
	struct store *store = &((struct place *)*state)->store;
	git_oid trees[2] = {TREE(store, "a=1", "a.b=1", "c=1"), TREE(store, "a/x=1", "b=1", "c=2")};
	struct tree_view views[2];
	struct trail trail = {0};
	struct error err;
	for (int i = 0; i < 2; i++) {
		assert_true(tree_view_load(&views[i], store, &trees[i], &trail, &err));
	}
	struct tree_view_walk walk = {.views = views, .count = 2};
	struct tree_view_row row;
	static const struct {
		const char *name;
		bool is_in[2];
	} expected[] = {{"a", {1, 1}}, {"a.b", {1, 0}}, {"b", {0, 1}}, {"c", {1, 1}}};
	for (size_t i = 0; i < ARRAY_LENGTH(expected); i++) {
		assert_true(tree_view_next(&walk, &row));
		assert_true(span_is(row.name, expected[i].name));
		for (int side = 0; side < 2; side++) {
			assert_int_equal(row.sides[side] != NULL, expected[i].is_in[side]);
		}
	}
	assert_false(tree_view_next(&walk, &row));
	tree_view_finish(&views[0]);
	tree_view_finish(&views[1]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_names_that_no_snapshot_holds_are_refused),
		TEST(test_a_refusal_names_the_path_in_printable_characters),
		TEST(test_trees_of_no_right_form_are_refused),
		TEST(test_a_blob_for_a_tree_is_refused),
		TEST(test_folders_without_end_are_refused),
		TEST(test_a_tree_that_repeats_itself_has_a_limit),
		TEST(test_views_walk_side_by_side_by_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
