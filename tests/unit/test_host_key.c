/* SPDX-License-Identifier: MIT */
#include "tests/unit/known_hosts_fixture.h"
#include "tests/support/facts.h"

/* ---- the decision ---- */

static char note[512];
static struct error failure;

static bool is_accepted(const struct ssh_target *target, int key)
{
	snprintf(note, sizeof(note), "old");
	return host_key_decide(target, &known_keys[key], note, sizeof(note), &failure);
}

static void assert_refused(const struct ssh_target *target, int key, const char *reason)
{
	assert_false(is_accepted(target, key));
	assert_int_equal(failure.code, ERROR_DENIED);
	assert_string_equal(failure.reason, reason);
	assert_string_equal(note, "");
}

static void assert_told(const char *part)
{
	if (!strstr(failure.text, part)) {
		fail_msg("\"%s\" is not in: %s", part, failure.text);
	}
}

static void test_a_fingerprint_is_that_of_ssh_keygen(void **state)
{
	for (int i = 0; i < KNOWN_KEYS; i++) {
		char text[HOST_KEY_FINGERPRINT_MAX];
		char *expected = known_fingerprint(i);
		assert_string_equal(host_key_fingerprint(known_keys[i].blob, text), expected);
		free(expected);
	}
}

/* After the command in the error was run, the next attempt succeeds. */
static void test_an_unknown_key_is_refused_with_the_line_to_add(void **state)
{
	for (int i = 0; i < KNOWN_KEYS; i++) {
		struct ssh_target target = known_target("devbox", 2222);
		known_clean(NULL);
		assert_refused(&target, i, "HOST_KEY_UNKNOWN");
		char *expected = known_fingerprint(i);
		char *line = known_hosts_line(&target, &known_keys[i]);
		assert_told(expected);
		assert_told(line);
		const char *command = strstr(failure.text, "echo ");
		assert_non_null(command);
		free(known_output("%s", command));
		assert_true(is_accepted(&target, i));
		free(expected);
		free(line);
	}
}

static void test_accept_new_writes_it_down_and_says_so(void **state)
{
	struct ssh_target target = known_target("devbox", 2222);
	target.host_checking = SSH_HOST_CHECKING_ACCEPT_NEW;
	assert_true(is_accepted(&target, 0));
	assert_non_null(strstr(note, "[devbox]:2222"));
	assert_non_null(strstr(note, known_user_file));
	assert_true(is_accepted(&target, 0));
	assert_string_equal(note, "");
	assert_refused(&target, 1, "HOST_KEY_MISMATCH");
}

static void test_a_changed_key_is_refused_whatever_is_checked(void **state)
{
	static const enum ssh_host_checking checking[] = {
		SSH_HOST_CHECKING_STRICT, SSH_HOST_CHECKING_ACCEPT_NEW, SSH_HOST_CHECKING_OFF};
	for (size_t i = 0; i < ARRAY_LENGTH(checking); i++) {
		struct ssh_target target = known_target("devbox", 22);
		target.host_checking = checking[i];
		KNOWN_WRITE("other $0", "devbox $0");
		assert_refused(&target, 1, "HOST_KEY_MISMATCH");
		char place[PATH_MAX + 8];
		snprintf(place, sizeof(place), "%s:2 ", known_user_file);
		char *known = known_fingerprint(0);
		char *offered = known_fingerprint(1);
		assert_told(place);
		assert_told(known);
		assert_told(offered);
		const char *command = strstr(failure.text, "ssh-keygen -f");
		assert_non_null(command);
		free(known_output("%s 2>&1", command));
		assert_known_verdict(&target, 0, KNOWN_HOSTS_UNKNOWN, "", 0);
		free(known);
		free(offered);
	}
}

/* Somebody who listens in may answer for DNS, and a command may say that it knows any key. */
static void test_nothing_vouches_for_a_key_that_has_changed(void **state)
{
	struct ssh_target target = known_target("devbox", 22);
	char place[PATH_MAX + 8];
	snprintf(place, sizeof(place), "%s:2 ", known_user_file);
	target.client = SSH_CLIENT_AUTO;
	target.ssh_program = (char *)"/usr/bin/ssh";
	KNOWN_WRITE("other $0", "devbox $0");
	target.has_known_hosts_command = true;
	assert_refused(&target, 1, "HOST_KEY_MISMATCH");
	assert_told(place);
	target.has_known_hosts_command = false;
	target.verifies_by_dns = true;
	assert_refused(&target, 1, "HOST_KEY_MISMATCH");
	assert_told(place);
}

static void test_an_authority_is_asked_about_a_changed_key_where_that_can_be(void **state)
{
	struct ssh_target target = known_target("devbox", 22);
	char place[PATH_MAX + 8];
	snprintf(place, sizeof(place), "%s:2 ", known_user_file);
	KNOWN_WRITE("@cert-authority dev* $3", "devbox $0");
	assert_refused(&target, 1, "HOST_KEY_MISMATCH");
	assert_told(place);
	assert_told("@cert-authority");
	assert_told("ssh-client = openssh");
	target.client = SSH_CLIENT_AUTO; // and there is no ssh
	assert_refused(&target, 1, "HOST_KEY_MISMATCH");
	target.ssh_program = (char *)"/usr/bin/ssh";
	assert_false(is_accepted(&target, 1));
	assert_string_equal(failure.reason, "SSH_UNSUPPORTED");
	target.user_is_secret = true;
	assert_refused(&target, 1, "HOST_KEY_MISMATCH");
	assert_null(strstr(failure.text, "openssh"));
}

static void test_a_revoked_key_is_refused_even_where_it_is_pinned(void **state)
{
	struct ssh_target target = known_target("devbox", 22);
	KNOWN_WRITE("devbox $0", "@revoked * $0");
	assert_refused(&target, 0, "HOST_KEY_MISMATCH");
	assert_told("revoked");
	target.host_key_pin = known_fingerprint(0);
	assert_refused(&target, 0, "HOST_KEY_MISMATCH");
	free(target.host_key_pin);
}

static void test_a_pin_decides_alone(void **state)
{
	struct ssh_target target = known_target("devbox", 22);
	KNOWN_WRITE("devbox $1");
	target.host_key_pin = known_fingerprint(0);
	assert_true(is_accepted(&target, 0));
	assert_refused(&target, 1, "HOST_KEY_MISMATCH");
	assert_told(target.host_key_pin);
	target.host_key_pin[10] = '\0'; // a part of a pin is not enough
	assert_refused(&target, 0, "HOST_KEY_MISMATCH");
	target.host_key_pin[7] = '\0';
	assert_refused(&target, 0, "HOST_KEY_MISMATCH");
	free(target.host_key_pin);
}

static void test_what_cannot_be_written_down_is_accepted_where_nothing_is_checked(void **state)
{
	struct ssh_target target = known_target("devbox", 22);
	target.user_known_hosts_files = NULL;
	target.host_checking = SSH_HOST_CHECKING_ACCEPT_NEW;
	assert_false(is_accepted(&target, 0));
	assert_int_equal(failure.code, ERROR_CONFIG);
	target.host_checking = SSH_HOST_CHECKING_OFF;
	assert_true(is_accepted(&target, 0));
	assert_names(note, "known hosts");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KNOWN_TEST(test_a_fingerprint_is_that_of_ssh_keygen),
		KNOWN_TEST(test_an_unknown_key_is_refused_with_the_line_to_add),
		KNOWN_TEST(test_accept_new_writes_it_down_and_says_so),
		KNOWN_TEST(test_a_changed_key_is_refused_whatever_is_checked),
		KNOWN_TEST(test_nothing_vouches_for_a_key_that_has_changed),
		KNOWN_TEST(test_an_authority_is_asked_about_a_changed_key_where_that_can_be),
		KNOWN_TEST(test_a_revoked_key_is_refused_even_where_it_is_pinned),
		KNOWN_TEST(test_a_pin_decides_alone),
		KNOWN_TEST(test_what_cannot_be_written_down_is_accepted_where_nothing_is_checked),
	};
	return cmocka_run_group_tests(tests, known_setup, known_teardown);
}
