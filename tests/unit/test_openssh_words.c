/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "providers/ssh/openssh_words.h"

static char alias[] = "box";
static const struct ssh_target target = {.alias = alias, .host = alias, .port = 22};

/* ssh ends its own lines with "\r\n". */
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

static void test_a_host_that_cuts_after_the_login(void **state)
{
	struct openssh_words words;
	begin(&words, AUTHENTICATING "Connection to 127.0.0.1 closed by remote host.\r\n");
	expect(&words, "HOST_UNREACHABLE", "127.0.0.1");
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

#define OFFERED(name) "debug1: Offering public key: " name " ED25519 SHA256:abc explicit\r\n"
#define TAKEN(name) "debug1: Server accepts key: " name " ED25519 SHA256:abc explicit\r\n"
#define ANSWERED "debug1: Authentications that can continue: publickey\r\n"
#define NO_MORE "debug1: No more authentication methods to try.\r\n"

static void test_a_key_that_is_taken_and_not_used_has_a_passphrase(void **state)
{
	struct openssh_words words;
	begin(&words, AUTHENTICATING OFFERED("/home/kim/other") ANSWERED OFFERED("/home/kim/my key")
			      TAKEN("/home/kim/my key") NO_MORE DENIED);
	assert_string_equal(words.offered, "/home/kim/other, /home/kim/my key");
	assert_string_equal(words.locked, "/home/kim/my key");
	expect(&words, "AUTH_FAILED", "ssh-add");
}

static void test_a_key_that_was_used_in_vain_has_none(void **state)
{
	struct openssh_words words;
	begin(&words, AUTHENTICATING OFFERED("/k") TAKEN("/k") ANSWERED NO_MORE DENIED);
	assert_string_equal(words.locked, "");
	expect(&words, "AUTH_FAILED", "(keys offered: /k)");
}

static void test_a_key_of_which_ssh_complains_has_none(void **state)
{
	struct openssh_words words;
	begin(&words,
		AUTHENTICATING OFFERED("/k") TAKEN(
			"/k") "sign_and_send_pubkey: signing failed: agent refused\r\n" NO_MORE
			DENIED);
	assert_string_equal(words.locked, "");
	openssh_words_finish(&words);
}

#define SHOWN "debug1: Server host key: ssh-rsa SHA256:xyz\r\n"

static void test_what_makes_a_key_of_the_host_known_is_told(void **state)
{
	struct openssh_words words;
	begin(&words, SHOWN "No RSA host key is known for box and you have requested strict "
			    "checking.\r\nHost key verification failed.\r\n");
	expect(&words, "HOST_KEY_UNKNOWN", "/etc/ssh/ssh_host_rsa_key.pub");
	begin(&words, SHOWN "No RSA host key is known for box and you have requested strict "
			    "checking.\r\nHost key verification failed.\r\n");
	expect(&words, "HOST_KEY_UNKNOWN", "ssh-keyscan -t rsa -p 22 box");
}

static void test_a_known_key_that_is_another_is_named_by_its_line(void **state)
{
	static const char text[] =
		SHOWN "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n"
		      "Offending RSA key in /home/kim/my hosts:7\r\n"
		      "Host key verification failed.\r\n";
	struct openssh_words words;
	begin(&words, text);
	expect(&words, "HOST_KEY_MISMATCH", "/home/kim/my hosts:7");
	begin(&words, text);
	expect(&words, "HOST_KEY_MISMATCH", "ssh-keygen -f '/home/kim/my hosts' -R ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_long_banner_does_not_hide_the_reason),
		cmocka_unit_test(test_the_reason_stays_where_much_follows),
		cmocka_unit_test(test_a_host_that_cuts_after_the_login),
		cmocka_unit_test(test_a_banner_is_no_reason),
		cmocka_unit_test(test_one_line_that_is_too_long_is_told_from_its_beginning),
		cmocka_unit_test(test_each_address_is_counted),
		cmocka_unit_test(test_a_key_that_is_taken_and_not_used_has_a_passphrase),
		cmocka_unit_test(test_a_key_that_was_used_in_vain_has_none),
		cmocka_unit_test(test_a_key_of_which_ssh_complains_has_none),
		cmocka_unit_test(test_what_makes_a_key_of_the_host_known_is_told),
		cmocka_unit_test(test_a_known_key_that_is_another_is_named_by_its_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
