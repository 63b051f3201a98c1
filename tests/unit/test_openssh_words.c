/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "providers/ssh/openssh_words.h"

static char alias[] = "box";
static const struct ssh_target target = {.alias = alias, .host = alias};

/* ssh's own lines end in "\r\n". */
#define AUTHENTICATING "debug1: SSH2_MSG_SERVICE_ACCEPT received\r\n"
#define DENIED "kim@box: Permission denied (publickey).\r\n"

static void begin(struct openssh_words *words, const char *text)
{
	openssh_words_init(words, &target);
	openssh_words_read(words, span_of(text));
}

static void expect(struct openssh_words *words, const char *reason, const char *said)
{
	struct error err;
	openssh_words_explain(words, "exited", &err);
	if (!err.reason || strcmp(err.reason, reason) != 0 || !strstr(err.text, said)) {
		fail_msg("%s: %s", err.reason ? err.reason : "-", err.text);
	}
	openssh_words_finish(words);
}

static void read_often(struct openssh_words *words, const char *line)
{
	for (int i = 0; i < 30; i++) {
		openssh_words_read(words, span_of(line));
	}
}

static void test_a_long_banner_does_not_hide_the_reason(void **state)
{
	struct openssh_words words;
	begin(&words, AUTHENTICATING);
	read_often(&words, "This system is for authorised users alone, and is watched.\n");
	openssh_words_read(&words, SPAN_LITERAL(DENIED));
	expect(&words, "AUTH_FAILED", "Permission denied (publickey). (keys offered: none)");
}

static void test_the_reason_stays_where_much_follows(void **state)
{
	struct openssh_words words;
	begin(&words, AUTHENTICATING DENIED);
	read_often(&words, "cleaning up what there was\r\n");
	expect(&words, "AUTH_FAILED",
		// exact: these words are ssh's and a host's
		": kim@box: Permission denied (publickey).; cleaning up what there was; cl");
}

static void test_a_banner_is_no_reason(void **state)
{
	struct openssh_words words;
	begin(&words, AUTHENTICATING "HOST IDENTIFICATION HAS CHANGED\n"
				     "Idle sessions are terminating, and have timed out\n"
				     "debug1: Offering public key: none of yours\n" DENIED);
	expect(&words, "AUTH_FAILED", "(keys offered: none)");
}

static void test_one_line_that_is_too_long_is_told_from_its_beginning(void **state)
{
	struct openssh_words words;
	begin(&words, "first\r\nlong: ");
	read_often(&words, "a line that does not end, which ");
	openssh_words_read(&words, SPAN_LITERAL("\r\n"));
	assert_memory_equal(words.said, "long: a line", 12);
	openssh_words_finish(&words);
}

static void test_each_address_is_counted(void **state)
{
	struct openssh_words words;
	begin(&words, "debug1: Connecting to box [::1] port 22.\r\n"
		      "debug1: connect to address ::1 port 22: Connection timed out\r\n"
		      "debug1: Connecting to box [127.0.0.1] port 22.\r\n");
	assert_int_equal(words.addresses, 2);
	assert_string_equal(words.progress, "Connecting to box (127.0.0.1 port 22)");
	openssh_words_finish(&words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_long_banner_does_not_hide_the_reason),
		cmocka_unit_test(test_the_reason_stays_where_much_follows),
		cmocka_unit_test(test_a_banner_is_no_reason),
		cmocka_unit_test(test_one_line_that_is_too_long_is_told_from_its_beginning),
		cmocka_unit_test(test_each_address_is_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
