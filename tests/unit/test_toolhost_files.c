/* SPDX-License-Identifier: MIT */
#include "tests/support/toolhost/fixture.h"

static int ask_read(const char *name, const char *more)
{
	return ask("fs/read_text_file", "\"path\":\"%s/%s\"%s", fixture.roots[0], name, more);
}

static int ask_write(const char *name, const char *content)
{
	return ask("fs/write_text_file", "\"path\":\"%s/%s\",\"content\":\"%s\"", fixture.roots[0],
		name, content);
}

static void expect_lines(const char *name, const char *more, const char *content)
{
	assert_string_equal(member_of(ask_read(name, more), "content"), content);
}

static void expect_file(const char *name, const char *content)
{
	char *text = get_file(name);
	assert_non_null(text);
	assert_string_equal(text, content);
	free(text);
}

/* ---- reading ---- */

static void test_a_file_is_read_whole(void **state)
{
	put_text_file("a", "one\n\ttwo \"quoted\"\n\xe2\x82\xac\n");
	expect_result(ask_read("a", ""),
		"{\"content\":\"one\\n\\ttwo \\\"quoted\\\"\\n\xe2\x82\xac\\n\"}");
	put_text_file("empty", "");
	expect_result(ask_read("empty", ""), "{\"content\":\"\"}");
}

static void test_line_endings_and_a_missing_last_newline_are_kept(void **state)
{
	put_text_file("crlf", "a\r\n\r\nb");
	expect_lines("crlf", "", "a\r\n\r\nb");
	expect_lines("crlf", ",\"line\":1,\"limit\":1", "a\r\n");
	expect_lines("crlf", ",\"line\":3", "b");
	expect_lines("crlf", ",\"line\":3,\"limit\":9", "b");
}

static void test_lines_are_counted_from_one(void **state)
{
	put_text_file("a", "1\n2\n3\n4\n");
	expect_lines("a", ",\"line\":2", "2\n3\n4\n");
	expect_lines("a", ",\"line\":2,\"limit\":2", "2\n3\n");
	expect_lines("a", ",\"limit\":2", "1\n2\n");
	expect_lines("a", ",\"line\":1", "1\n2\n3\n4\n");
	expect_lines("a", ",\"line\":0,\"limit\":1", "1\n");
	expect_lines("a", ",\"limit\":0", "");
	expect_lines("a", ",\"line\":null,\"limit\":null", "1\n2\n3\n4\n");
}

static void test_past_the_end_there_is_nothing(void **state)
{
	put_text_file("a", "1\n2\n");
	expect_lines("a", ",\"line\":3", "");
	expect_lines("a", ",\"line\":9000000000000000000,\"limit\":9000000000000000000", "");
	expect_lines("a", ",\"limit\":9000000000000000000", "1\n2\n");
	put_text_file("empty", "");
	expect_lines("empty", ",\"line\":2,\"limit\":3", "");
}

static void test_a_line_that_is_no_number_is_refused(void **state)
{
	static const char *const bad[] = {",\"line\":-1", ",\"line\":\"1\"", ",\"line\":1.5",
		",\"limit\":-7", ",\"limit\":[]"};
	put_text_file("a", "1\n");
	for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
		expect_failure(ask_read("a", bad[i]), "INVALID_PARAMS", "not a whole number");
	}
}

static void test_a_file_that_does_not_exist_is_named(void **state)
{
	const struct answer *answer = expect_failure(
		ask_read("no/such \xc3\xa4", ""), "RESOURCE_NOT_FOUND", "Resource not found: ");
	char path[256];
	snprintf(path, sizeof(path), "%s/no/such \xc3\xa4", fixture.roots[0]);
	assert_string_equal(answer->text + strlen("Resource not found: "), path);
	assert_string_equal(answer->detail, path);
}

static void test_one_agent_reads_a_file_that_does_not_exist_as_empty(void **state)
{
	fixture.agent_name = "gemini-cli";
	fixture_open();
	expect_result(ask_read("new", ""), "{\"content\":\"\"}");
	expect_failure(ask("fs/read_text_file", "\"path\":\"/etc/none\""), "SECURITY_VIOLATION",
		"/etc/none");
}

static void test_a_file_that_is_no_text_is_refused(void **state)
{
	put_file("latin",
		"gr\xfc\xdf"
		"e",
		6);
	expect_failure(ask_read("latin", ""), "FILE_NOT_TEXT", "byte 2 is not UTF-8");
	put_file("cut", "abc\xe2\x82", 5);
	expect_failure(ask_read("cut", ""), "FILE_NOT_TEXT", "byte 3 is not UTF-8");
	put_file("nul", "a\0b", 3);
	expect_result(ask_read("nul", ""), "{\"content\":\"a\\u0000b\"}");
}

static void test_a_file_over_the_limit_is_refused(void **state)
{
	fixture.limits.max_file = 10;
	fixture_open();
	put_text_file("fits", "0123456789");
	expect_lines("fits", "", "0123456789");
	put_text_file("large", "0123456789a");
	expect_failure(ask_read("large", ",\"limit\":1"), "RESOURCE_LIMIT_EXCEEDED",
		"max-file (10 bytes)");
}

static void test_a_directory_is_refused(void **state)
{
	expect_failure(ask_read("", ""), "SECURITY_VIOLATION", "it is a directory");
	expect_failure(ask_write("", "x"), "SECURITY_VIOLATION", "it is a directory");
}

/* The answer must grow far beyond what was reserved for it, and be whole. */
static void test_a_large_file_that_is_all_escapes_is_read_and_written(void **state)
{
	static const char units[] = "\n\"\x01\xe2\x82\xac\\";
	static const char escaped[] = "\\n\\\"\\u0001\xe2\x82\xac\\\\";
	enum { COUNT = 20000, UNIT = sizeof(units) - 1, ESCAPED = sizeof(escaped) - 1 };
	char *content = mem_alloc_zero(COUNT * UNIT + 1);
	char *inside = mem_alloc_zero(COUNT * ESCAPED + 1);
	for (size_t i = 0; i < COUNT; i++) {
		memcpy(content + i * UNIT, units, UNIT);
		memcpy(inside + i * ESCAPED, escaped, ESCAPED);
	}
	expect_result(ask_write("large", inside), "{}");
	expect_file("large", content);
	const char *read = result_of(ask_read("large", ""));
	assert_int_equal(strlen(read), strlen("{\"content\":\"\"}") + COUNT * ESCAPED);
	assert_memory_equal(read + strlen("{\"content\":\""), inside, COUNT * ESCAPED);
	expect_lines("large", ",\"line\":20001", "\"\x01\xe2\x82\xac\\");
	free(inside);
	free(content);
}

/* ---- writing ---- */

static void test_a_file_is_written_with_its_parents(void **state)
{
	expect_result(ask_write("deep/er/a", "one\\r\\n\\u00e4\\ud83d\\ude00"), "{}");
	expect_file("deep/er/a", "one\r\n\xc3\xa4\xf0\x9f\x98\x80");
	expect_result(ask_write("deep/er/a", ""), "{}");
	expect_file("deep/er/a", "");
}

static void test_permission_bits_are_kept(void **state)
{
	struct stat status;
	put_text_file("tool", "#!/bin/sh\n");
	assert_int_equal(chmod(local_path("tool"), 0750), 0);
	expect_result(ask_write("tool", "#!/bin/sh\\nexit\\n"), "{}");
	assert_int_equal(stat(local_path("tool"), &status), 0);
	assert_int_equal(status.st_mode & 07777, 0750);
}

static void test_content_over_the_limit_is_refused(void **state)
{
	fixture.limits.max_file = 4;
	fixture_open();
	expect_result(ask_write("a", "1234"), "{}");
	expect_result(ask_write("a", "\\u20ac"), "{}");
	expect_failure(ask_write("a", "12345"), "RESOURCE_LIMIT_EXCEEDED", "max-file (4 bytes)");
	expect_file("a", "\xe2\x82\xac");
}

static void test_content_that_is_no_string_is_refused(void **state)
{
	static const char *const bad[] = {"", ",\"content\":null", ",\"content\":5"};
	for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
		int id = ask("fs/write_text_file", "\"path\":\"%s/a\"%s", fixture.roots[0], bad[i]);
		expect_failure(id, "INVALID_PARAMS", "\"content\" | missing | not a string");
	}
	assert_null(get_file("a"));
}

static void test_writes_of_one_file_are_done_in_order(void **state)
{
	int last = 0;
	for (int i = 0; i < 200; i++) {
		char content[16];
		snprintf(content, sizeof(content), "%d", i);
		last = ask_write("a", content);
		if (i % 10 == 0) {
			/*
			 * A read gets the content that was written before it, although nobody
			 * waited for the write.
			 */
			int read = ask_read("a", "");
			ask_write("a", "later");
			assert_string_equal(member_of(read, "content"), content);
		}
	}
	expect_result(last, "{}");
	expect_file("a", "199");
}

static void test_calls_run_side_by_side(void **state)
{
	enum { COUNT = 500 };
	int ids[COUNT];
	char name[16];
	for (int i = 0; i < COUNT; i++) {
		snprintf(name, sizeof(name), "f%d", i % 50);
		ids[i] = i < 50 || i % 3 == 0 ? ask_write(name, name) : ask_read(name, "");
	}
	for (int i = 0; i < COUNT; i++) {
		result_of(ids[i]);
	}
	assert_int_equal(fixture.answer_count, COUNT);
}

/* ---- which files may be used ---- */

static void test_paths_outside_the_roots_are_refused(void **state)
{
	static const char *const bad[] = {
		"/etc/passwd", "/", "relative", "", "/proc/self/environ", "../x"};
	for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
		expect_failure(ask("fs/read_text_file", "\"path\":\"%s\"", bad[i]),
			"SECURITY_VIOLATION", "refused");
		expect_failure(
			ask("fs/write_text_file", "\"path\":\"%s\",\"content\":\"\"", bad[i]),
			"SECURITY_VIOLATION", "refused");
	}
	expect_failure(ask_read("../../etc/passwd", ""), "SECURITY_VIOLATION", "roots");
}

static void test_links_out_of_the_roots_are_refused(void **state)
{
	put_text_file("inside", "in");
	assert_int_equal(symlink("/etc", local_path("out")), 0);
	assert_int_equal(symlink("inside", local_path("in")), 0);
	expect_failure(ask_read("out/passwd", ""), "SECURITY_VIOLATION", "roots");
	expect_failure(ask_write("out/x", ""), "SECURITY_VIOLATION", "roots");
	expect_lines("in", "", "in");
}

static void make_link(const char *target, const char *name)
{
	assert_int_equal(symlink(target, local_path(name)), 0);
}

static void make_folders(const char *const *names)
{
	for (; *names; names++) {
		assert_int_equal(mkdir(local_path(*names), 0755), 0);
	}
}

static void test_what_git_runs_commands_from_is_not_written(void **state)
{
	static const char *const refused[] = {".git", ".git/config", ".git/hooks/post-commit",
		"sub/.GIT/hooks/x", "./tree//../.git/HEAD", "to-git/config", "hook", "bare/config",
		"bare/Config", "bare/hooks/update", "bare/config.worktree", "bare/commondir",
		"tree/config", "to-bare/config", "part/refs/x", "part/commondir"};
	static const char *const fine[] = {".gitignore", ".github/config", "config",
		"hooks/useThing.ts", "src/HEAD", "bare/HEAD", "bare/refs/heads/x", "bare/index",
		"part/config", "part/hooks/x", "to-part/config"};
	make_folders((const char *const[]){
		".git", "bare", "bare/objects", "bare/refs", "tree", "part", "part/objects", NULL});
	put_text_file(".git/config", "mine");
	put_text_file("bare/HEAD", "ref: refs/heads/main");
	put_text_file("tree/HEAD", "ref: refs/heads/main");
	put_text_file("tree/commondir", "../bare");
	put_text_file("part/HEAD", "ref: refs/heads/main");
	make_link(".git", "to-git");
	make_link(".git/hooks/pre-commit", "hook");
	make_link("bare", "to-bare");
	make_link("part", "to-part");
	for (size_t i = 0; i < ARRAY_LENGTH(refused); i++) {
		expect_failure(ask_write(refused[i], "evil"), "SECURITY_VIOLATION", "git");
	}
	for (size_t i = 0; i < ARRAY_LENGTH(fine); i++) {
		expect_result(ask_write(fine[i], "x"), "{}");
	}
	expect_file(".git/config", "mine");
	assert_null(get_file("bare/config"));
	assert_null(get_file(".git/hooks/pre-commit"));
	expect_lines(".git/config", "", "mine");
}

static void test_the_names_above_a_root_count_too(void **state)
{
	char root[200], resolved[256];
	make_folders((const char *const[]){"hooks", "hooks/x", ".git", ".git/x", NULL});
	snprintf(root, sizeof(root), "%s/hooks//x/./", fixture.roots[0]);
	fixture.roots[0] = root;
	snprintf(resolved, sizeof(resolved), "%s/hooks/x/a", fixture.root);
	fixture.resolved = resolved;
	expect_result(ask_write("a", "x"), "{}");
	make_folders((const char *const[]){"objects", "refs", NULL});
	put_text_file("HEAD", "");
	expect_failure(ask_write("a", "x"), "SECURITY_VIOLATION", "git");
	snprintf(root, sizeof(root), "%s/.git/x", fixture.root);
	snprintf(resolved, sizeof(resolved), "%s/.git/x/a", fixture.root);
	expect_failure(ask_write("a", "x"), "SECURITY_VIOLATION", "git");
}

static void test_a_fifo_is_refused_at_once(void **state)
{
	assert_int_equal(mkfifo(local_path("fifo"), 0600), 0);
	expect_failure(ask_read("fifo", ""), "SECURITY_VIOLATION", "not a regular file");
	expect_failure(ask_write("fifo", "x"), "SECURITY_VIOLATION", "not a regular file");
}

static void test_a_nul_in_a_path_is_refused(void **state)
{
	expect_failure(ask_read("a\\u0000b", ""), "SECURITY_VIOLATION", "NUL");
	expect_failure(ask("fs/read_text_file", "\"path\":7"), "INVALID_PARAMS", "\"path\"");
	expect_failure(ask_text("fs/read_text_file", ""), "INVALID_PARAMS", "\"path\"");
	char *path = mem_alloc_zero(5000);
	memset(path, 'x', 4999);
	expect_failure(ask_read(path, ""), "INVALID_PARAMS", "\"path\" has");
	free(path);
}

static void test_the_roots_of_another_session_are_none_of_this_one(void **state)
{
	char other[160];
	snprintf(other, sizeof(other), "%s/root2", fixture.folder);
	assert_int_equal(mkdir(other, 0755), 0);
	const char *runtime = fixture_add_root(other);
	assert_int_equal(symlink(runtime, local_path("link")), 0);
	put_text_file("mine", "mine");
	expect_failure(ask("fs/read_text_file", "\"path\":\"%s/a\"", runtime), "SECURITY_VIOLATION",
		"session's roots");
	expect_failure(ask_read("link/b", ""), "SECURITY_VIOLATION", "session's roots");
	expect_failure(ask_write("link/b", "x"), "SECURITY_VIOLATION", "session's roots");
	expect_lines("mine", "", "mine");
	expect_lines(".//mine", "", "mine");
	expect_failure(ask_read("none", ""), "RESOURCE_NOT_FOUND", "none");
	fixture.roots[1] = runtime;
	fixture.roots[2] = NULL;
	expect_result(ask_write("link/b", "other"), "{}");
	expect_lines("link/b", "", "other");
}

static void test_a_root_is_matched_name_by_name(void **state)
{
	char other[160];
	snprintf(other, sizeof(other), "%s/rootless", fixture.folder);
	assert_int_equal(mkdir(other, 0755), 0);
	fixture_add_root(other);
	put_text_file("../rootless/a", "x");
	expect_failure(ask("fs/read_text_file", "\"path\":\"%s/a\"", other), "SECURITY_VIOLATION",
		"session's roots");
	char root[200];
	snprintf(root, sizeof(root), "%s//./", fixture.root);
	fixture.roots[0] = root;
	put_text_file("a", "mine");
	expect_lines("a", "", "mine");
}

static void test_a_session_without_roots_has_no_files(void **state)
{
	const char *root = fixture.roots[0];
	fixture.roots[0] = NULL;
	expect_failure(ask("fs/read_text_file", "\"path\":\"%s/a\"", root), "SECURITY_VIOLATION",
		"no roots");
}

/* The file about which policy decided is served, wherever the requested path leads by now. */
static void test_a_resolved_path_is_served_and_no_other(void **state)
{
	char resolved[256];
	snprintf(resolved, sizeof(resolved), "%s/kept", fixture.roots[0]);
	put_text_file("kept", "kept");
	put_text_file("other", "other");
	assert_int_equal(symlink("other", local_path("link")), 0);
	fixture.resolved = resolved;
	expect_lines("link", "", "kept");
	expect_result(ask_write("link", "new"), "{}");
	expect_file("kept", "new");
	assert_int_equal(unlink(local_path("kept")), 0);
	expect_failure(ask_read("link", ""), "RESOURCE_NOT_FOUND", "/link");
	assert_int_equal(symlink("other", local_path("kept")), 0);
	expect_failure(ask_read("link", ""), "SECURITY_VIOLATION", resolved);
	expect_failure(ask_write("link", "gone"), "SECURITY_VIOLATION", "free of links");
	expect_file("other", "other");
	fixture.resolved = "/etc/passwd";
	expect_failure(ask_read("link", ""), "SECURITY_VIOLATION", "session's roots");
	expect_failure(ask_write("link", "gone"), "SECURITY_VIOLATION", "session's roots");
}

/* ---- trouble ---- */

static void test_what_takes_too_long_is_given_up(void **state)
{
	fixture.limits.file_timeout_ms = 30;
	fixture_open();
	fake_behaviour(fixture.provider)->delay_ms = 2000;
	int first = ask_write("a", "1");
	int second = ask_write("a", "2");
	expect_failure(first, "TIMEOUT_EXCEEDED", "file-timeout (30 ms)");
	expect_failure(second, "TIMEOUT_EXCEEDED", "file-timeout (30 ms)");
	fake_behaviour(fixture.provider)->delay_ms = 0;
	put_text_file("b", "there");
	fixture_run_for(50);
}

static void test_an_error_of_the_sandbox_is_told(void **state)
{
	struct fake_behaviour *behaviour = fake_behaviour(fixture.provider);
	behaviour->failures[FAKE_READ] = 1;
	behaviour->failures[FAKE_WRITE] = 1;
	expect_failure(ask_read("a", ""), "SANDBOX_UNAVAILABLE", "");
	expect_failure(ask_write("a", "x"), "SANDBOX_UNAVAILABLE", "");
	expect_result(ask_write("a", "x"), "{}");
}

static void test_the_end_of_a_session_answers_its_calls(void **state)
{
	fake_behaviour(fixture.provider)->delay_ms = 1000;
	int mine = ask_write("a", "1");
	int waits = ask_write("a", "2");
	fixture.session = "s2";
	int others = ask_write("a", "3");
	toolhost_end_session(fixture.toolhost, "s1");
	expect_failure(mine, "EDITOR_GONE", "session has ended");
	expect_failure(waits, "EDITOR_GONE", "session has ended");
	expect_result(others, "{}");
}

static void test_a_toolhost_can_go_with_calls_under_way(void **state)
{
	for (int i = 0; i < 20; i++) {
		ask_write("a", "content");
		ask_read("b", "");
	}
	toolhost_destroy(fixture.toolhost);
	fixture.toolhost = NULL;
	fixture_run_for(50);
	assert_int_equal(fixture.answer_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_LOCAL(test_a_file_is_read_whole),
		ON_LOCAL(test_line_endings_and_a_missing_last_newline_are_kept),
		ON_LOCAL(test_lines_are_counted_from_one),
		ON_LOCAL(test_past_the_end_there_is_nothing),
		ON_LOCAL(test_a_line_that_is_no_number_is_refused),
		ON_LOCAL(test_a_file_that_does_not_exist_is_named),
		ON_LOCAL(test_one_agent_reads_a_file_that_does_not_exist_as_empty),
		ON_LOCAL(test_a_file_that_is_no_text_is_refused),
		ON_LOCAL(test_a_file_over_the_limit_is_refused),
		ON_LOCAL(test_a_directory_is_refused),
		ON_LOCAL(test_a_large_file_that_is_all_escapes_is_read_and_written),
		ON_LOCAL(test_a_file_is_written_with_its_parents),
		ON_LOCAL(test_permission_bits_are_kept),
		ON_LOCAL(test_content_over_the_limit_is_refused),
		ON_LOCAL(test_content_that_is_no_string_is_refused),
		ON_LOCAL(test_writes_of_one_file_are_done_in_order),
		ON_LOCAL(test_calls_run_side_by_side),
		ON_LOCAL(test_paths_outside_the_roots_are_refused),
		ON_LOCAL(test_links_out_of_the_roots_are_refused),
		ON_LOCAL(test_what_git_runs_commands_from_is_not_written),
		ON_LOCAL(test_the_names_above_a_root_count_too),
		ON_LOCAL(test_a_fifo_is_refused_at_once),
		ON_LOCAL(test_a_nul_in_a_path_is_refused),
		ON_LOCAL(test_the_roots_of_another_session_are_none_of_this_one),
		ON_LOCAL(test_a_root_is_matched_name_by_name),
		ON_LOCAL(test_a_session_without_roots_has_no_files),
		ON_LOCAL(test_a_resolved_path_is_served_and_no_other),
		ON_FAKE(test_a_resolved_path_is_served_and_no_other),
		ON_FAKE(test_a_file_that_does_not_exist_is_named),
		ON_FAKE(test_writes_of_one_file_are_done_in_order),
		ON_FAKE(test_calls_run_side_by_side),
		ON_FAKE(test_the_roots_of_another_session_are_none_of_this_one),
		ON_FAKE(test_what_takes_too_long_is_given_up),
		ON_FAKE(test_an_error_of_the_sandbox_is_told),
		ON_FAKE(test_the_end_of_a_session_answers_its_calls),
		ON_FAKE(test_a_toolhost_can_go_with_calls_under_way),
	};
	return fixture_run(tests, ARRAY_LENGTH(tests));
}
