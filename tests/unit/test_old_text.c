/* SPDX-License-Identifier: MIT */
#include "tests/support/toolhost/fixture.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "broker/gate/old_text.h"

/* The outcome of one load. */
static struct {
	bool is_there;
	enum old_text_kind kind;
	char text[256]; // the JSON, or the reason
	size_t len;
} got;

static void on_old_text(void *data, const struct old_text_answer *answer)
{
	struct span text =
		answer->kind == OLD_TEXT_UNKNOWN ? span_of(answer->reason) : answer->json;
	assert_false(got.is_there);
	got.is_there = true;
	got.kind = answer->kind;
	got.len = text.len;
	snprintf(got.text, sizeof(got.text), "%.*s", (int)(text.len < 255 ? text.len : 255),
		text.len > 0 ? text.data : "");
}

static bool is_there(const void *data)
{
	return got.is_there;
}

static bool is_resolved;

static struct old_text *load(struct sandbox *sandbox, const char *path)
{
	struct old_text_source source = {fixture.loop, sandbox, is_resolved, fixture.context.pool};
	got.is_there = false;
	struct old_text *old_text = old_text_load(&source, path, on_old_text, NULL);
	assert_false(got.is_there);
	return old_text;
}

static void expect(
	struct sandbox *sandbox, const char *path, enum old_text_kind kind, const char *words)
{
	struct old_text *old_text = load(sandbox, path);
	assert_true(fixture_turn(is_there, NULL, FIXTURE_DEADLINE_MS));
	old_text_destroy(old_text);
	assert_int_equal(got.kind, kind);
	if (!strstr(got.text, words)) {
		fail_msg("%s: %s", path, got.text);
	}
}

static const char *in_sandbox(const char *name)
{
	static char path[512];
	snprintf(path, sizeof(path), "%s/%s", fixture.roots[0], name);
	return path;
}

static void expect_both(const char *name, enum old_text_kind kind, const char *words)
{
	expect(fixture.sandbox, in_sandbox(name), kind, words);
	expect(NULL, local_path(name), kind, words);
}

static void test_a_file_is_told_as_json(void **state)
{
	put_text_file("a", "one\n\"two\"");
	expect_both("a", OLD_TEXT_KNOWN, "\"one\\n\\\"two\\\"\"");
	put_text_file("empty", "");
	expect_both("empty", OLD_TEXT_KNOWN, "\"\"");
}

static void test_a_missing_file_is_new(void **state)
{
	expect_both("none", OLD_TEXT_NEW, "");
	expect_both("no/folder", OLD_TEXT_NEW, "");
}

static void test_what_is_no_text_is_not_known(void **state)
{
	put_file("a", "\xc3\x28", 2);
	expect_both("a", OLD_TEXT_UNKNOWN, "is not text");
}

static void fill(const char *name, char with, size_t len)
{
	char *bytes = mem_alloc(len);
	memset(bytes, with, len);
	put_file(name, bytes, len);
	free(bytes);
}

/* A limit in bytes, also counted as JSON spells the text. */
static void test_only_so_much_is_shown(void **state)
{
	fill("most", 'a', OLD_TEXT_MAX - 2);
	expect_both("most", OLD_TEXT_KNOWN, "\"aaa");
	assert_int_equal(got.len, OLD_TEXT_MAX);
	fill("quoted", 'a', OLD_TEXT_MAX - 1);
	expect_both("quoted", OLD_TEXT_UNKNOWN, "larger than is shown");
	fill("long", 'a', OLD_TEXT_MAX + 1);
	expect_both("long", OLD_TEXT_UNKNOWN, "larger than is shown");
	fill("escaped", '\n', OLD_TEXT_MAX / 2);
	expect_both("escaped", OLD_TEXT_UNKNOWN, "larger than is shown");
}

static void test_what_is_no_file_is_not_opened(void **state)
{
	assert_int_equal(mkfifo(local_path("fifo"), 0600), 0);
	expect_both("fifo", OLD_TEXT_UNKNOWN, "not a regular file");
	expect_both("", OLD_TEXT_UNKNOWN, "it is ");
	expect(NULL, "/dev/null", OLD_TEXT_UNKNOWN, "not a regular file");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", local_path("socket"));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	expect_both("socket", OLD_TEXT_UNKNOWN, "not a regular file");
	close(fd);
}

static void test_outside_of_the_roots_the_sandbox_says_so(void **state)
{
	expect(fixture.sandbox, "/etc/passwd", OLD_TEXT_UNKNOWN, "/etc/passwd: refused");
}

static void test_a_path_without_links_is_read_without_links(void **state)
{
	put_text_file("a", "text");
	assert_int_equal(symlink("a", local_path("link")), 0);
	expect(fixture.sandbox, in_sandbox("link"), OLD_TEXT_KNOWN, "\"text\"");
	is_resolved = true;
	expect(fixture.sandbox, in_sandbox("link"), OLD_TEXT_UNKNOWN, "refused");
	expect(fixture.sandbox, in_sandbox("a"), OLD_TEXT_KNOWN, "\"text\"");
	is_resolved = false;
}

static void test_nobody_hears_of_what_was_given_up(void **state)
{
	put_text_file("a", "text");
	for (int i = 0; i < 200; i++) { // before it runs, while it runs, and afterwards
		struct old_text *old_text = load(
			i % 2 ? fixture.sandbox : NULL, i % 2 ? in_sandbox("a") : local_path("a"));
		if (i % 3 == 0) {
			usleep(100);
		}
		old_text_destroy(old_text);
	}
	fixture_run_for(50);
	assert_false(got.is_there);
	old_text_destroy(NULL);
}

static void test_a_slow_sandbox_is_not_waited_for(void **state)
{
	put_text_file("a", "text");
	fake_behaviour(fixture.provider)->delay_ms = 60000;
	expect(fixture.sandbox, in_sandbox("a"), OLD_TEXT_UNKNOWN, "too long");
	fake_behaviour(fixture.provider)->delay_ms = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_LOCAL(test_a_file_is_told_as_json),
		ON_FAKE(test_a_file_is_told_as_json),
		ON_LOCAL(test_a_missing_file_is_new),
		ON_FAKE(test_a_missing_file_is_new),
		ON_LOCAL(test_what_is_no_text_is_not_known),
		ON_LOCAL(test_only_so_much_is_shown),
		ON_LOCAL(test_what_is_no_file_is_not_opened),
		ON_LOCAL(test_outside_of_the_roots_the_sandbox_says_so),
		ON_LOCAL(test_a_path_without_links_is_read_without_links),
		ON_LOCAL(test_nobody_hears_of_what_was_given_up),
		ON_FAKE(test_a_slow_sandbox_is_not_waited_for),
	};
	return fixture_run(tests, ARRAY_LENGTH(tests));
}
