/* SPDX-License-Identifier: MIT */
#include "tests/unit/ssh_case_fixture.h"
#include "tests/support/facts.h"

#include <stdio.h>
#include <string.h>

/* What ssh_config allows to negotiate, to show and to try, with a real sshd. */

static void allow(enum ssh_algorithms kind, const char *names)
{
	target_set(&target.algorithms[kind], names);
}

/* ---- the negotiation ---- */

static void test_a_list_is_all_that_is_offered(void **state)
{
	static const struct {
		enum ssh_algorithms kind;
		const char *theirs; // the server's line
		const char *good;
		const char *bad;
		const char *words;
	} lists[] = {
		{SSH_KEX_ALGORITHMS, "KexAlgorithms diffie-hellman-group14-sha256\n",
			"sntrup761x25519-sha512@openssh.com,diffie-hellman-group14-sha256",
			"diffie-hellman-group16-sha512",
			"no key exchange | server has diffie-hellman-group14-sha256"},
		{SSH_CIPHERS, "Ciphers aes256-ctr\n", "chacha20-poly1305@openssh.com,aes256-ctr",
			"aes128-ctr,aes192-ctr",
			"no cipher | server has aes256-ctr | offered: aes128-ctr,aes192-ctr"},
		{SSH_MACS, "MACs hmac-sha2-512\nCiphers aes128-ctr\n",
			"umac-64@openssh.com,hmac-sha2-512", "hmac-sha2-256",
			"no MAC | server has hmac-sha2-512 | offered: hmac-sha2-256"},
		{SSH_HOST_KEY_ALGORITHMS, "HostKeyAlgorithms ssh-ed25519\n",
			"ssh-ed25519-cert-v01@openssh.com,ssh-ed25519", "ecdsa-sha2-nistp256",
			"type of host key | server has ssh-ed25519 | offered: ecdsa-sha2-nistp256"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(lists); i++) {
		struct sshd other;
		case_use_other(&other, lists[i].theirs);
		logs_in();
		allow(lists[i].kind, lists[i].good);
		logs_in();
		allow(lists[i].kind, lists[i].bad);
		fails_and_says("SSH_UNSUPPORTED", lists[i].words);
		assert_non_null(strstr(client.err.text, "ssh-client = openssh"));
		allow(lists[i].kind, NULL);
		sshd_stop(&other);
	}
}

static void test_a_list_of_which_libssh2_knows_nothing_is_unsupported(void **state)
{
	allow(SSH_CIPHERS, "chacha20-poly1305@openssh.com,none");
	fails_and_says("SSH_UNSUPPORTED",
		"no cipher | Ciphers | (chacha20-poly1305@openssh.com,none) | "
		"ssh-client = openssh");
	allow(SSH_CIPHERS, NULL);
	allow(SSH_MACS, "umac-128@openssh.com");
	fails_and_says(
		"SSH_UNSUPPORTED", "no MAC | MACs | umac-128@openssh.com | ssh-client = openssh");
	allow(SSH_MACS, NULL);
	allow(SSH_KEX_ALGORITHMS, "sntrup761x25519-sha512@openssh.com");
	/* Other facts about a client are in the same list; they are no key exchange. */
	client_connect(&client, &target);
	wait_outcome(&client);
	assert_int_equal(client.lost_count, 1);
	assert_string_equal(client.err.reason, "SSH_UNSUPPORTED");
	client_close(&client);
}

/* ---- host keys ---- */

/*
 * The server has a key of another type, too, which nobody knows. If this library cannot verify the
 * known type, that does not count as a changed key.
 */
static void test_a_host_that_is_known_by_its_rsa_key_alone(void **state)
{
	struct sshd other;
	char path[PATH_MAX];
	case_use_other(&other, "# with a key of rsa\n");
	snprintf(path, sizeof(path), "%s/known_rsa", other.folder);
	assert_int_equal(run_shell("(printf '[127.0.0.1]:%d '; cut -d' ' -f1,2 %s/host_rsa.pub) > "
				   "%s && test -s %s/host_ed25519.pub",
				 other.port, other.folder, path, other.folder),
		0);
	const char *const known[] = {path, NULL};
	target_set_list(&target.user_known_hosts_files, known);
	for (int turn = 0; turn < 2; turn++) {
		client_connect(&client, &target);
		wait_outcome(&client);
		if (client.lost_count > 0) {
			assert_string_equal(client.err.reason, "SSH_UNSUPPORTED");
			assert_names(client.err.text, turn == 0 ? "type of host key | in common"
								: "known | types | libssh2 cannot");
			assert_non_null(strstr(client.err.text, "ssh-client = openssh"));
		}
		client_close(&client);
		allow(SSH_HOST_KEY_ALGORITHMS, "ssh-ed25519,rsa-sha2-512,rsa-sha2-256");
	}
	sshd_stop(&other);
}

static void test_this_machine_needs_no_known_key_where_the_user_says_so(void **state)
{
	const char *const none[] = {"/dev/null", NULL};
	target_set_list(&target.user_known_hosts_files, none);
	target.trusts_loopback = true;
	logs_in();
	target_set(&target.host_key_alias, "elsewhere");
	fails_and_says("HOST_KEY_UNKNOWN", "elsewhere");
	target_set(&target.host_key_alias, NULL);
	target_set(&target.host_key_pin, "SHA256:AAAA");
	fails_and_says("HOST_KEY_MISMATCH", "SHA256:AAAA");
	target_set(&target.host_key_pin, NULL);
	/* Behind another host, it is not this machine. */
	target.via = hop_through(&sshd);
	fails_and_says("HOST_KEY_UNKNOWN", "SHA256:");
}

/* ---- proofs ---- */

static void test_keys_that_the_user_does_not_accept_are_not_offered(void **state)
{
	allow(SSH_PUBKEY_ALGORITHMS, "ecdsa-sha2-nistp256,ssh-ed25519");
	logs_in();
	allow(SSH_PUBKEY_ALGORITHMS, "ecdsa-sha2-nistp256,rsa-sha2-512");
	fails_and_says("AUTH_FAILED", "PubkeyAcceptedAlgorithms does not allow ssh-ed25519");
	use_key("rsa", "-t rsa -b 2048 -N ''", true);
	client_connect(&client, &target);
	wait_outcome(&client);
	if (client.lost_count > 0) {
		assert_string_equal(client.err.reason, "SSH_UNSUPPORTED");
		assert_non_null(strstr(client.err.text, "has no rsa-sha2"));
		assert_null(strstr(client.err.text, "refused"));
	}
	client_close(&client);
	allow(SSH_PUBKEY_ALGORITHMS, "ssh-ed25519");
	fails_and_says("AUTH_FAILED", "PubkeyAcceptedAlgorithms | not allow ssh-rsa");
}

static void test_passwords_that_the_user_does_not_want_are_not_sent(void **state)
{
	struct sshd other;
	case_use_other(&other, "KbdInteractiveAuthentication yes\nPasswordAuthentication yes\n");
	use_no_key();
	target_set(&target.password_command, "echo " SSHD_PASSWORD);
	target.avoids_password = true;
	target.avoids_questions = true;
	fails_and_says("AUTH_FAILED", "PasswordAuthentication, KbdInteractiveAuthentication");
	assert_null(strstr(client.err.text, "the password: refused"));
	sshd_stop(&other);
}

#define algorithms_test(name) cmocka_unit_test_setup_teardown(name, case_begin, case_end)

int main(void)
{
	client_world_begin();
	const struct CMUnitTest tests[] = {
		algorithms_test(test_a_list_is_all_that_is_offered),
		algorithms_test(test_a_list_of_which_libssh2_knows_nothing_is_unsupported),
		algorithms_test(test_a_host_that_is_known_by_its_rsa_key_alone),
		algorithms_test(test_this_machine_needs_no_known_key_where_the_user_says_so),
		algorithms_test(test_keys_that_the_user_does_not_accept_are_not_offered),
		algorithms_test(test_passwords_that_the_user_does_not_want_are_not_sent),
	};
	int failed = cmocka_run_group_tests(tests, case_start_sshd, case_stop_sshd);
	client_world_end();
	return failed;
}
