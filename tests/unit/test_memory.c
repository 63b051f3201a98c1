/* SPDX-License-Identifier: MIT */
#include "broker/policy/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "tests/unit/subject_fixture.h"

static struct memory *memory;

static int set_up(void **state)
{
	memory = memory_create();
	return 0;
}

static int tear_down(void **state)
{
	memory_destroy(memory);
	return 0;
}

static void remember(enum policy_operation operation, const char *params, bool allow)
{
	struct subject subject = subject_of(operation, params);
	assert_true(memory_has_room(memory, &subject));
	memory_add(memory, &subject, allow);
	subject_finish(&subject);
}

static enum policy_decision find(enum policy_operation operation, const char *params)
{
	struct subject subject = subject_of(operation, params);
	enum policy_decision decision = memory_find(memory, &subject);
	subject_finish(&subject);
	return decision;
}

static void assert_listed(const char *expected)
{
	struct buf out;
	struct json_writer writer;
	struct error err;
	buf_init(&out, 1 << 20);
	json_write_begin(&writer, &out);
	memory_write(memory, &writer);
	assert_true(json_write_end(&writer, &err));
	if (!span_is(buf_span(&out), expected)) {
		fail_msg("%.*s", (int)out.len, buf_span(&out).data);
	}
	buf_finish(&out);
}

/* A subject that was answered with "always", and whether this answer holds for another subject. */
static const struct {
	enum policy_operation operation;
	const char *remembered;
	enum policy_operation asked_operation;
	const char *asked;
	bool is_same;
} cases[] = {
	{POLICY_WRITE, "{\"path\":\"/w/a\"}", POLICY_WRITE, "{\"path\":\"/w/a\"}", true},
	{POLICY_WRITE, "{\"path\":\"/w/a\"}", POLICY_WRITE, "{\"path\":\"/w/a/b\"}", false},
	{POLICY_WRITE, "{\"path\":\"/w/a\"}", POLICY_WRITE, "{\"path\":\"/w/./a\"}", false},
	{POLICY_WRITE, "{\"path\":\"/w/a\"}", POLICY_READ, "{\"path\":\"/w/a\"}", false},
	{POLICY_READ, "{\"path\":\"/w/a\"}", POLICY_WRITE, "{\"path\":\"/w/a\"}", false},
	{POLICY_TERMINAL, "{\"command\":\"make\"}", POLICY_TERMINAL, "{\"command\":\"make\"}",
		true},
	{POLICY_TERMINAL, "{\"command\":\"make\"}", POLICY_TERMINAL,
		"{\"command\":\"make\",\"args\":[],\"env\":[],\"cwd\":null}", true},
	{POLICY_TERMINAL, "{\"command\":\"make\"}", POLICY_TERMINAL,
		"{\"command\":\"make install\"}", false},
	{POLICY_TERMINAL, "{\"command\":\"a b\"}", POLICY_TERMINAL,
		"{\"command\":\"a\",\"args\":[\"b\"]}", false},
	{POLICY_TERMINAL, "{\"command\":\"a\",\"args\":[\"b\"]}", POLICY_TERMINAL,
		"{\"command\":\"a\",\"args\":[\"b\"]}", true},
	{POLICY_TERMINAL, "{\"command\":\"a\",\"args\":[\"b\"]}", POLICY_TERMINAL,
		"{\"command\":\"a\",\"args\":[\"b\",\"c\"]}", false},
	{POLICY_TERMINAL, "{\"command\":\"a\",\"args\":[\"b\",\"c\"]}", POLICY_TERMINAL,
		"{\"command\":\"a\",\"args\":[\"b\"]}", false},
	{POLICY_TERMINAL, "{\"command\":\"a\",\"args\":[\"b c\"]}", POLICY_TERMINAL,
		"{\"command\":\"a\",\"args\":[\"b\",\"c\"]}", false},
	{POLICY_TERMINAL, "{\"command\":\"make\",\"cwd\":\"/w\"}", POLICY_TERMINAL,
		"{\"command\":\"make\",\"cwd\":\"/w/x\"}", false},
	{POLICY_TERMINAL, "{\"command\":\"make\"}", POLICY_TERMINAL,
		"{\"command\":\"make\",\"cwd\":\"/w\"}", false},
	{POLICY_TERMINAL, "{\"command\":\"make\"}", POLICY_TERMINAL,
		"{\"command\":\"make\",\"env\":[{\"name\":\"CC\",\"value\":\"x\"}]}", false},
	{POLICY_TERMINAL, "{\"command\":\"make\",\"env\":[{\"name\":\"CC\",\"value\":\"x\"}]}",
		POLICY_TERMINAL,
		"{\"command\":\"make\",\"env\":[{\"name\":\"CC\",\"value\":\"x\"}]}", true},
};

static void test_an_answer_holds_for_the_same_thing_alone(void **state)
{
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		memory_destroy(memory);
		memory = memory_create();
		remember(cases[i].operation, cases[i].remembered, true);
		enum policy_decision expected =
			cases[i].is_same ? POLICY_ALLOW_ALWAYS : POLICY_PENDING;
		if (find(cases[i].asked_operation, cases[i].asked) != expected) {
			fail_msg("%s after %s", cases[i].asked, cases[i].remembered);
		}
	}
}

static void test_nothing_is_remembered_at_first(void **state)
{
	struct subject subject = subject_of(POLICY_READ, "{\"path\":\"/a\"}");
	assert_int_equal(memory_find(memory, &subject), POLICY_PENDING);
	assert_int_equal(memory_find(NULL, &subject), POLICY_PENDING);
	subject_finish(&subject);
	assert_listed("[]");
}

static void test_a_newer_answer_takes_the_place_of_an_older_one(void **state)
{
	remember(POLICY_READ, "{\"path\":\"/a\"}", true);
	remember(POLICY_READ, "{\"path\":\"/b\"}", true);
	remember(POLICY_READ, "{\"path\":\"/a\"}", false);
	assert_int_equal(find(POLICY_READ, "{\"path\":\"/a\"}"), POLICY_REJECT_ALWAYS);
	assert_listed("[{\"operation\":\"fs/read_text_file\",\"decision\":\"allow-always\","
		      "\"path\":\"/b\"},{\"operation\":\"fs/read_text_file\","
		      "\"decision\":\"reject-always\",\"path\":\"/a\"}]");
}

static void test_commands_are_listed_with_their_words_and_directory(void **state)
{
	remember(POLICY_TERMINAL, "{\"command\":\"a; b\"}", true);
	remember(POLICY_TERMINAL, "{\"command\":\"a\",\"args\":[\"b\"],\"cwd\":\"/w\"}", true);
	assert_listed("[{\"operation\":\"terminal/create\",\"decision\":\"allow-always\","
		      "\"command\":\"a; b\"},{\"operation\":\"terminal/create\","
		      "\"decision\":\"allow-always\",\"command\":\"a\",\"args\":[\"b\"],"
		      "\"cwd\":\"/w\"}]");
}

static void test_no_more_than_so_many_are_kept(void **state)
{
	char params[64];
	for (int i = 0; i < MEMORY_MAX; i++) {
		snprintf(params, sizeof(params), "{\"path\":\"/%d\"}", i);
		remember(POLICY_READ, params, true);
	}
	struct subject further = subject_of(POLICY_READ, "{\"path\":\"/further\"}");
	assert_false(memory_has_room(memory, &further));
	subject_finish(&further);
	struct subject known = subject_of(POLICY_READ, "{\"path\":\"/7\"}");
	assert_true(memory_has_room(memory, &known));
	memory_add(memory, &known, false);
	subject_finish(&known);
	assert_int_equal(find(POLICY_READ, "{\"path\":\"/7\"}"), POLICY_REJECT_ALWAYS);
	assert_int_equal(find(POLICY_READ, "{\"path\":\"/8\"}"), POLICY_ALLOW_ALWAYS);
}

static void test_what_is_too_long_is_not_kept(void **state)
{
	char *params = mem_alloc_zero(MEMORY_ENTRY_MAX + 64);
	memcpy(params, "{\"command\":\"", 12);
	memset(params + 12, 'x', MEMORY_ENTRY_MAX);
	memcpy(params + 12 + MEMORY_ENTRY_MAX, "\"}", 3);
	struct subject subject = subject_of(POLICY_TERMINAL, params);
	assert_false(memory_has_room(memory, &subject));
	subject_finish(&subject);
	free(params);
}

static void test_an_agents_own_question_is_not_kept(void **state)
{
	struct subject subject = subject_of(POLICY_GRANT, "{\"toolKind\":\"edit\"}");
	assert_false(memory_has_room(memory, &subject));
	subject_finish(&subject);
}

#define MEMORY_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* ---- once more ---- */

static void allow_once(const char *params)
{
	struct subject subject = subject_of(POLICY_WRITE, params);
	memory_add_once(memory, &subject);
	subject_finish(&subject);
}

static bool take_once(enum policy_operation operation, const char *params)
{
	struct subject subject = subject_of(operation, params);
	char *old_text = NULL;
	bool was_taken = memory_take_once(memory, &subject, &old_text);
	assert_null(old_text);
	subject_finish(&subject);
	return was_taken;
}

static void test_what_is_allowed_once_more_is_used_up(void **state)
{
	allow_once("{\"path\":\"/a\"}");
	assert_false(take_once(POLICY_WRITE, "{\"path\":\"/b\"}"));
	assert_false(take_once(POLICY_READ, "{\"path\":\"/a\"}"));
	assert_int_equal(find(POLICY_WRITE, "{\"path\":\"/a\"}"), POLICY_PENDING);
	assert_true(take_once(POLICY_WRITE, "{\"path\":\"/a\"}"));
	assert_false(take_once(POLICY_WRITE, "{\"path\":\"/a\"}"));
	allow_once("{\"path\":\"/a\"}");
	memory_end_turn(memory);
	assert_false(take_once(POLICY_WRITE, "{\"path\":\"/a\"}"));
}

static void test_of_too_much_that_is_allowed_once_more_the_oldest_is_forgotten(void **state)
{
	char params[32];
	for (int i = 0; i <= MEMORY_ONCE_MAX; i++) {
		snprintf(params, sizeof(params), "{\"path\":\"/%d\"}", i);
		allow_once(params);
	}
	assert_false(take_once(POLICY_WRITE, "{\"path\":\"/0\"}"));
	assert_true(take_once(POLICY_WRITE, "{\"path\":\"/1\"}"));
	assert_true(take_once(POLICY_WRITE, params));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MEMORY_TEST(test_an_answer_holds_for_the_same_thing_alone),
		MEMORY_TEST(test_nothing_is_remembered_at_first),
		MEMORY_TEST(test_a_newer_answer_takes_the_place_of_an_older_one),
		MEMORY_TEST(test_commands_are_listed_with_their_words_and_directory),
		MEMORY_TEST(test_no_more_than_so_many_are_kept),
		MEMORY_TEST(test_what_is_too_long_is_not_kept),
		MEMORY_TEST(test_an_agents_own_question_is_not_kept),
		MEMORY_TEST(test_what_is_allowed_once_more_is_used_up),
		MEMORY_TEST(test_of_too_much_that_is_allowed_once_more_the_oldest_is_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
