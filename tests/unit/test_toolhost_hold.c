/* SPDX-License-Identifier: MIT */
#include "tests/support/toolhost/fixture.h"

/* An agent that does not read the answers to its requests. */

static int ask_read(const char *name)
{
	return ask("fs/read_text_file", "\"path\":\"%s/%s\"", fixture.roots[0], name);
}

static int ask_write(const char *name, const char *content)
{
	return ask("fs/write_text_file", "\"path\":\"%s/%s\",\"content\":\"%s\"", fixture.roots[0],
		name, content);
}

static void test_files_wait_for_an_agent_that_does_not_read(void **state)
{
	enum { COUNT = 20 }; // more than the ToolHost reads at once
	int reads[COUNT];
	put_text_file("a", "text");
	fixture.agent_is_slow = true;
	for (int i = 0; i < COUNT; i++) {
		reads[i] = ask_read("a");
	}
	int write = ask_write("b", "new");
	expect_result(write, "{}"); // this answer is short
	fixture_run_for(50);
	assert_int_equal(fixture.answer_count, 1);
	assert_false(toolhost_is_busy(fixture.toolhost)); // the ToolHost only waits for the agent
	fixture.agent_is_slow = false;
	toolhost_resume(fixture.toolhost);
	assert_true(toolhost_is_busy(fixture.toolhost));
	for (int i = 0; i < COUNT; i++) {
		expect_result(reads[i], "{\"content\":\"text\"}");
	}
}

static void test_a_write_waits_for_the_read_before_it_that_waits(void **state)
{
	put_text_file("a", "old");
	fixture.agent_is_slow = true;
	int read = ask_read("a");
	int write = ask_write("a", "new");
	fixture_run_for(50);
	assert_int_equal(fixture.answer_count, 0);
	fixture.agent_is_slow = false;
	toolhost_resume(fixture.toolhost);
	expect_result(read, "{\"content\":\"old\"}");
	expect_result(write, "{}");
	char *text = get_file("a");
	assert_string_equal(text, "new");
	free(text);
}

static void test_what_waits_for_the_agent_ends_with_its_session(void **state)
{
	put_text_file("a", "text");
	fixture.agent_is_slow = true;
	int reads[] = {ask_read("a"), ask_read("a")};
	toolhost_end_session(fixture.toolhost, fixture.session);
	expect_failure(reads[0], "EDITOR_GONE", "has ended");
	expect_failure(reads[1], "EDITOR_GONE", "has ended");
	ask_read("a"); // and one that ends together with the ToolHost
}

static void test_output_waits_for_an_agent_that_does_not_read(void **state)
{
	const char *kept = terminal_open("echo kept");
	const char *released = terminal_open("echo released");
	expect_result(terminal_ask("wait_for_exit", kept), "{\"exitCode\":0,\"signal\":null}");
	fixture.agent_is_slow = true;
	int outputs[] = {terminal_ask("output", kept), terminal_ask("output", released)};
	expect_result(terminal_ask("release", released), "{}");
	fixture_run_for(50);
	assert_false(fixture.answers[outputs[0]].is_there);
	assert_false(toolhost_is_busy(fixture.toolhost));
	fixture.agent_is_slow = false;
	toolhost_resume(fixture.toolhost);
	assert_string_equal(member_of(outputs[0], "output"), "kept\n");
	expect_failure(outputs[1], "INVALID_PARAMS", "was released");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_LOCAL(test_files_wait_for_an_agent_that_does_not_read),
		ON_FAKE(test_files_wait_for_an_agent_that_does_not_read),
		ON_FAKE(test_a_write_waits_for_the_read_before_it_that_waits),
		ON_LOCAL(test_what_waits_for_the_agent_ends_with_its_session),
		ON_LOCAL(test_output_waits_for_an_agent_that_does_not_read),
	};
	return fixture_run(tests, ARRAY_LENGTH(tests));
}
