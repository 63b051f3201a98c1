/* SPDX-License-Identifier: MIT */
#include "tests/support/toolhost/fixture.h"

#include "tests/conformance/world.h"

/* fs/… of the ToolHost, on every sandbox. */
static int ask_read(const struct world *world, const char *name, const char *more)
{
	return ask("fs/read_text_file", "\"path\":\"%s\"%s", world_path(world, name), more);
}

static int ask_write(const struct world *world, const char *name, const char *content)
{
	return ask("fs/write_text_file", "\"path\":\"%s\",\"content\":\"%s\"",
		world_path(world, name), content);
}

/* ---- reading ---- */

static void lines_are_counted_and_kept_as_they_are(struct world *world)
{
	static const struct {
		const char *name;
		const char *more;
		const char *content;
	} cases[] = {
		{"unix", "", "1\n2\n\n4\n"},
		{"unix", ",\"line\":2,\"limit\":2", "2\n\n"},
		{"unix", ",\"line\":0,\"limit\":1", "1\n"},
		{"unix", ",\"limit\":0", ""},
		{"unix", ",\"line\":4", "4\n"},
		{"unix", ",\"line\":5", ""},
		{"unix", ",\"line\":9000000000000000000,\"limit\":9000000000000000000", ""},
		{"unix", ",\"line\":null,\"limit\":null", "1\n2\n\n4\n"},
		{"crlf", "", "a\r\n\r\nb"},
		{"crlf", ",\"line\":1,\"limit\":1", "a\r\n"},
		{"crlf", ",\"line\":3,\"limit\":9", "b"},
		{"empty", "", ""},
		{"empty", ",\"line\":2,\"limit\":3", ""},
		{"utf8", "", "\xe2\x82\xac\t\"\\\n"},
	};
	world_shell(world, "printf '1\\n2\\n\\n4\\n' > unix; printf 'a\\r\\n\\r\\nb' > crlf; "
			   ": > empty; printf '\\342\\202\\254\\t\"\\\\\\n' > utf8");
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		int call = ask_read(world, cases[i].name, cases[i].more);
		assert_string_equal(member_of(call, "content"), cases[i].content);
	}
}

static void what_is_missing_is_named(struct world *world)
{
	static const char *const names[] = {"none", "no/such \xc3\xa4", "sub/../sub/none"};
	world_shell(world, "mkdir sub");
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		const char *path = world_path(world, names[i]);
		const struct answer *answer =
			expect_failure(ask_read(world, names[i], ""), "RESOURCE_NOT_FOUND", path);
		assert_int_equal(failure_code_get(answer->code)->rpc, -32002);
		assert_string_equal(answer->detail, path); // data.uri is made from the agent's path
	}
}

static void what_is_no_text_or_too_large_is_refused(struct world *world)
{
	fixture.limits.max_file = 1000;
	fixture_open();
	world_shell(world, "printf 'gr\\374\\337e' > latin; printf 'abc\\342\\202' > cut; "
			   "head -c 1000 /dev/zero | tr '\\0' x > fits; "
			   "head -c 1001 /dev/zero | tr '\\0' x > large");
	expect_failure(ask_read(world, "latin", ""), "FILE_NOT_TEXT", "byte 2 is not UTF-8");
	expect_failure(ask_read(world, "cut", ""), "FILE_NOT_TEXT", "byte 3 is not UTF-8");
	assert_int_equal(strlen(member_of(ask_read(world, "fits", ""), "content")), 1000);
	expect_failure(ask_read(world, "large", ",\"limit\":1"), "RESOURCE_LIMIT_EXCEEDED",
		"max-file (1000 bytes)");
	char content[1002] = "";
	memset(content, 'y', 1001);
	expect_failure(ask_write(world, "fits", content), "RESOURCE_LIMIT_EXCEEDED",
		"max-file (1000 bytes)");
	assert_string_equal(world_shell(world, "tr -d x < fits | wc -c"), "0");
}

static void what_is_no_file_is_refused_at_once(struct world *world)
{
	static const char *const names[] = {"sub", "fifo", "", "to-fifo"};
	world_shell(world, "mkdir sub; mkfifo fifo; ln -s fifo to-fifo");
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		expect_failure(
			ask_read(world, names[i], ""), "SECURITY_VIOLATION", "refused, it is");
		expect_failure(
			ask_write(world, names[i], "x"), "SECURITY_VIOLATION", "refused, it is");
	}
	assert_string_equal(world_shell(world, "test -p fifo && ls -A | wc -l"), "3");
}

/* ---- writing ---- */

static void parents_are_made_and_permissions_kept(struct world *world)
{
	world_shell(world, "echo old > tool; chmod 750 tool; mkdir a; ln -s a/new link");
	expect_result(ask_write(world, "tool", "#!/bin/sh\\n"), "{}");
	expect_result(ask_write(world, "deep/er/f", "one\\r\\n\\u00e4\\ud83d\\ude00"), "{}");
	expect_result(ask_write(world, "link", "through"), "{}");
	assert_string_equal(world_shell(world, "stat -c %%a tool; cat tool"), "750\n#!/bin/sh");
	assert_string_equal(world_shell(world, "cat deep/er/f"), "one\r\n\xc3\xa4\xf0\x9f\x98\x80");
	assert_string_equal(world_shell(world, "cat a/new; readlink link"), "througha/new");
	assert_string_equal(world_shell(world, "find . -name '.acp*' | wc -l"), "0");
}

static void calls_of_one_file_are_done_in_order(struct world *world)
{
	enum { COUNT = 30 };
	int count = world_many(world, COUNT);
	int writes[COUNT];
	int reads[COUNT];
	char content[16];
	for (int i = 0; i < count; i++) {
		snprintf(content, sizeof(content), "%d", i);
		writes[i] = ask_write(world, "f", content);
		reads[i] = ask_read(world, "f", "");
	}
	for (int i = 0; i < count; i++) {
		snprintf(content, sizeof(content), "%d", i);
		expect_result(writes[i], "{}");
		assert_string_equal(member_of(reads[i], "content"), content);
	}
}

static void many_files_are_served_side_by_side(struct world *world)
{
	enum { COUNT = 200 };
	int count = world_many(world, COUNT);
	int calls[COUNT];
	char name[16];
	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "d/f%d", i);
		calls[i] = ask_write(world, name, name);
	}
	for (int i = 0; i < count; i++) {
		expect_result(calls[i], "{}");
	}
	char expected[32];
	snprintf(expected, sizeof(expected), "%d\nd/f%d", count, count - 1);
	assert_string_equal(world_shell(world, "ls d | wc -l; cat d/f%d", count - 1), expected);
}

/* ---- which files may be used ---- */

static void a_way_out_is_refused_by_name_and_rule(struct world *world)
{
	static const struct {
		const char *path; // below the root, unless it begins with a slash, or with = to be
		                  // used as it is
		const char *rule;
	} cases[] = {
		{"/etc/passwd", "leads out | session's roots"},
		{"/", "leads out | session's roots"},
		{"/proc/self/environ", "leads out | session's roots"},
		{"=relative", "it is not absolute"},
		{"=", "it is not absolute"},
		{"../x", "leads out | session's roots"},
		{"a/../../x", "leads out | session's roots"},
		{"out/passwd", "leads out | session's roots"},
		{"proc/root/etc/passwd", "leads out | session's roots"},
		{"loop", "too many links"},
	};
	world_shell(world, "mkdir a; ln -s /etc out; ln -s /proc/self proc; ln -s loop loop");
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		const char *path = cases[i].path;
		path = *path == '=' ? path + 1 : *path == '/' ? path : world_path(world, path);
		int read = ask("fs/read_text_file", "\"path\":\"%s\"", path);
		int write = ask("fs/write_text_file", "\"path\":\"%s\",\"content\":\"x\"", path);
		for (int call = read; call <= write; call++) {
			const struct answer *answer =
				expect_failure(call, "SECURITY_VIOLATION", cases[i].rule);
			assert_non_null(strstr(answer->text, path));
		}
	}
	expect_failure(ask_read(world, "a\\u0000b", ""), "SECURITY_VIOLATION", "NUL");
}

/* The file on which policy decided is served, wherever the requested path leads by now. */
static void the_resolved_file_is_served_and_no_other(struct world *world)
{
	char resolved[PATH_MAX];
	snprintf(resolved, sizeof(resolved), "%.4000s", world_path(world, "dir/kept"));
	world_shell(world,
		"mkdir dir guarded; printf kept > dir/kept; printf secret > guarded/kept; "
		"ln -s guarded/kept link");
	fixture.resolved = resolved;
	assert_string_equal(member_of(ask_read(world, "link", ""), "content"), "kept");
	expect_result(ask_write(world, "link", "new"), "{}");
	assert_string_equal(world_shell(world, "cat dir/kept guarded/kept"), "newsecret");
	world_shell(world, "mv dir was; ln -s guarded dir");
	expect_failure(ask_read(world, "link", ""), "SECURITY_VIOLATION", resolved);
	expect_failure(ask_write(world, "link", "gone"), "SECURITY_VIOLATION", resolved);
	world_shell(world, "rm dir; mkdir dir; ln -s ../guarded/kept dir/kept");
	expect_failure(ask_read(world, "link", ""), "SECURITY_VIOLATION", "free of links");
	expect_failure(ask_write(world, "link", "gone"), "SECURITY_VIOLATION", "free of links");
	world_shell(world, "rm -r dir");
	expect_failure(ask_read(world, "link", ""), "RESOURCE_NOT_FOUND", "/link");
	expect_result(ask_write(world, "link", "made"), "{}");
	assert_string_equal(world_shell(world, "cat dir/kept guarded/kept"), "madesecret");
}

static const struct world_case cases[] = {
	{"lines are counted and kept as they are", lines_are_counted_and_kept_as_they_are},
	{"what is missing is named", what_is_missing_is_named},
	{"what is no text or too large is refused", what_is_no_text_or_too_large_is_refused},
	{"what is no file is refused at once", what_is_no_file_is_refused_at_once},
	{"parents are made and permissions kept", parents_are_made_and_permissions_kept},
	{"calls of one file are done in order", calls_of_one_file_are_done_in_order},
	{"many files are served side by side", many_files_are_served_side_by_side},
	{"a way out is refused by name and rule", a_way_out_is_refused_by_name_and_rule},
	{"the resolved file is served and no other", the_resolved_file_is_served_and_no_other},
};
const struct world_table toolhost_file_cases = {cases, ARRAY_LENGTH(cases), tools_begin, tools_end};
