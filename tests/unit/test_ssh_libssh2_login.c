/* SPDX-License-Identifier: MIT */
#include "tests/unit/ssh_case_fixture.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "providers/ssh/libssh2_library.h"
#include "tests/support/facts.h"

/* Logins to a real sshd, and the errors if a login is impossible. */

/* ---- keys ---- */

/* Expects what this version of libssh2 can do. */
static void logs_in_or_says(const char *facts)
{
	client_connect(&client, &target);
	wait_outcome(&client);
	if (client.lost_count > 0) {
		assert_string_equal(client.err.reason, "SSH_UNSUPPORTED");
		assert_names(client.err.text, facts);
		assert_non_null(strstr(client.err.text, "ssh-client = openssh"));
	}
	client_close(&client);
}

static void test_keys_without_passphrase_log_in(void **state)
{
	use_key("ed25519", "-t ed25519 -N ''", true);
	logs_in();
	use_key("ecdsa", "-t ecdsa -b 384 -N ''", true);
	logs_in_or_says("/ecdsa is an ECDSA key");
	use_key("ecdsa_pem", "-t ecdsa -m PEM -N ''", true);
	logs_in_or_says("/ecdsa_pem is an ECDSA key");
	assert_int_equal(run_shell("rm %s/ecdsa_pem.pub", sshd.folder), 0);
	logs_in_or_says("/ecdsa_pem | ECDSA key | may be one");
}

static void test_a_passphrase_comes_from_its_command(void **state)
{
	use_key("locked", "-t ed25519 -N 'open sesame'", true);
	target_set(&target.passphrase_command, "printf 'open sesame\\nmore\\n'");
	logs_in();
	use_key("locked_ecdsa", "-t ecdsa -N 'open sesame'", true);
	logs_in_or_says("/locked_ecdsa is an ECDSA key");
}

static void test_passphrases_that_do_not_come_or_fit_are_told(void **state)
{
	use_key("locked", "-t ed25519 -N 'open sesame'", true);
	fails_and_says("AUTH_FAILED", "no passphrase-command is set");
	target_set(&target.passphrase_command, "echo wrong");
	fails_and_says("AUTH_FAILED", "passphrase | not open");
	target_set(&target.passphrase_command, "exit 3");
	fails_and_says("AUTH_FAILED", "passphrase-command exited with status 3");
	target_set(&target.passphrase_command, "sleep 100");
	target.auth_timeout_ms = 500;
	fails_and_says("TIMEOUT_EXCEEDED", "auth-timeout");
}

static void test_a_refused_key_is_named_with_what_the_server_takes(void **state)
{
	use_key("stranger", "-t ed25519 -N ''", false);
	fails_and_says("AUTH_FAILED", "/stranger: refused | takes publickey");
}

static void test_an_rsa_key_is_unsupported_or_works(void **state)
{
	use_key("rsa", "-t rsa -b 2048 -N ''", true);
	logs_in_or_says("has no rsa-sha2");
}

static void test_a_certificate_beside_the_key_is_unsupported(void **state)
{
	char path[PATH_MAX];
	use_key("certified", "-t ed25519 -N ''", false);
	case_path(path, "certified-cert.pub");
	assert_int_equal(run_shell("cp %s/id.pub %s", sshd.folder, path), 0);
	fails_and_says("SSH_UNSUPPORTED", "certified-cert.pub is a certificate");
}

static void test_a_fido_key_is_unsupported(void **state)
{
	/* The public half is enough to recognise it; the type is the first string of the blob. */
	char path[PATH_MAX];
	case_path(path, "fido.pub");
	assert_int_equal(run_shell("printf 'sk-ssh-ed25519@openssh.com "
				   "AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29t me' > %s; "
				   "printf -- '-----BEGIN OPENSSH PRIVATE KEY-----\\n' > %s/fido",
				 path, sshd.folder),
		0);
	case_path(path, "fido");
	const char *const keys[] = {path, NULL};
	target_set_list(&target.identity_files, keys);
	client_connect(&client, &target);
	wait_lost(&client);
	assert_non_null(client.err.reason);
}

static void test_missing_keys_are_passed_over(void **state)
{
	char missing[PATH_MAX];
	case_path(missing, "missing");
	const char *const keys[] = {missing, "/dev/null", sshd.key, NULL};
	target_set_list(&target.identity_files, keys);
	logs_in();
}

/* ---- password, none ---- */

static void test_a_password_comes_from_its_command(void **state)
{
	if (getuid() != 0) {
		skip();
	}
	use_no_key();
	target_set(&target.password_command, "echo " SSHD_PASSWORD);
	logs_in();
	target_set(&target.password_command, "echo wrong");
	fails_and_says("AUTH_FAILED", "the password: refused");
}

static void test_nothing_to_try_is_told(void **state)
{
	use_no_key();
	fails_and_says("AUTH_FAILED", "no key | no agent | no password-command");
}

static void test_a_secret_name_is_not_shown(void **state)
{
	target.user_is_secret = true;
	logs_in();
	assert_non_null(strstr(client.progress, "Authenticating as (secret)"));
	target_set(&target.user, "tokenof32letters");
	target.allows_none = true;
	use_no_key();
	fails_and_says("AUTH_FAILED", "as (secret) | name alone: refused");
	assert_null(strstr(client.err.text, target.user));
	assert_null(strstr(client.progress, target.user));
	assert_null(strstr(client.err.text, "openssh"));
}

/* ---- what ssh_config says about logins ---- */

static void test_the_ways_that_the_user_prefers_are_the_only_ones(void **state)
{
	target_set(&target.preferred_methods, "keyboard-interactive,publickey");
	logs_in();
	target_set(&target.preferred_methods, "keyboard-interactive,password");
	fails_and_says("AUTH_FAILED", "ssh_config allows | nothing to try");
	target_set(&target.preferred_methods, NULL);
	target.avoids_keys = true;
	fails_and_says("AUTH_FAILED", "PubkeyAuthentication");
	if (getuid() == 0) {
		target_set(&target.password_command, "echo " SSHD_PASSWORD);
		logs_in();
		target.avoids_keys = false;
		use_no_key();
		target_set(&target.preferred_methods, "publickey");
		fails_and_says("AUTH_FAILED", "nothing to try");
	}
}

static void test_other_ways_that_the_server_takes_are_unsupported(void **state)
{
	struct sshd other;
	case_use_other(&other, "GSSAPIAuthentication yes\nHostbasedAuthentication yes\n"
			       "KbdInteractiveAuthentication no\n");
	target.has_kerberos = true;
	target.names_tickets = true;
	target.has_host_login = true;
	target.has_smart_card = true;
	logs_in();
	use_no_key();
	fails_and_says("SSH_UNSUPPORTED",
		"Kerberos (GSSAPIAuthentication) is not tried | (HostbasedAuthentication) is not "
		"tried | (PKCS11Provider) is not tried: set");
	target_set(&target.preferred_methods, "publickey,hostbased");
	target.avoids_keys = true;
	fails_and_says("SSH_UNSUPPORTED",
		"by libssh2: this host's key (HostbasedAuthentication) | not tried | ssh-client");
	sshd_stop(&other);
}

/* Debian's ssh_config has this for every host. */
static void test_kerberos_without_a_ticket_is_no_other_way(void **state)
{
	struct sshd other;
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "/tmp/krb5cc_%u", (unsigned int)getuid());
	if (access(path, F_OK) == 0) {
		skip(); // the user who runs the test has a ticket
	}
	case_use_other(&other, "GSSAPIAuthentication yes\nKbdInteractiveAuthentication no\n");
	target.has_kerberos = true;
	use_no_key();
	fails_and_says("AUTH_FAILED", "no key | no agent | no password-command | Kerberos "
				      "(GSSAPIAuthentication) | KRB5CCNAME");
	use_key("stranger", "-t ed25519 -N ''", false);
	fails_and_says(
		"AUTH_FAILED", "/stranger: refused | Kerberos (GSSAPIAuthentication) | KRB5CCNAME");
	sshd_stop(&other);
}

static void test_other_ways_that_the_server_does_not_take_are_not_told(void **state)
{
	use_no_key();
	target.has_kerberos = true;
	target.has_host_login = true;
	fails_and_says("AUTH_FAILED", "no key, no agent");
}

static void test_a_setting_that_libssh2_does_not_know_is_unsupported(void **state)
{
	const struct ssh_client_listener nothing = {0};
	struct error err;
	target_set(&target.unknown_setting, "BindInterface lo");
	assert_null(ssh_libssh2_connect(&client_world, &target, &nothing, NULL, &err));
	assert_string_equal(err.reason, "SSH_UNSUPPORTED");
	assert_names(err.text, "BindInterface lo | libssh2 | ssh-client = openssh");
	assert_non_null(strstr(err.text, SSHD_ALIAS));
}

static void test_addresses_are_of_the_family_that_the_user_says(void **state)
{
	target.address_family = AF_INET;
	logs_in();
	target.address_family = AF_INET6;
	fails_and_says("HOST_NOT_FOUND", "127.0.0.1");
}

/* ---- host keys ---- */

static void test_an_unknown_host_is_refused(void **state)
{
	const char *const none[] = {"/dev/null", NULL};
	target_set_list(&target.user_known_hosts_files, none);
	fails_and_says("HOST_KEY_UNKNOWN", "SHA256:");
}

static void test_a_changed_host_key_is_refused(void **state)
{
	char path[PATH_MAX];
	case_path(path, "known_other");
	assert_int_equal(run_shell("(printf '[127.0.0.1]:%d '; cut -d' ' -f1,2 %s/id.pub) > %s",
				 sshd.port, sshd.folder, path),
		0);
	const char *const changed[] = {path, NULL};
	target_set_list(&target.user_known_hosts_files, changed);
	client_connect_fails(&client, &target, "HOST_KEY_MISMATCH");
}

/* Without knowledge of the known keys, libssh2 would negotiate ecdsa. */
static void test_the_known_type_of_key_is_negotiated(void **state)
{
	char path[PATH_MAX];
	case_path(path, "known_one");
	const char *const known[] = {path, NULL};
	target_set_list(&target.user_known_hosts_files, known);
	assert_int_equal(run_shell("grep ssh-ed25519 %s > %s", sshd.known_hosts, path), 0);
	logs_in();
	assert_int_equal(run_shell("grep ecdsa %s > %s", sshd.known_hosts, path), 0);
	logs_in();
}

/* ---- what libssh2 cannot do ---- */

static void test_a_server_with_nothing_in_common_is_unsupported(void **state)
{
	struct sshd other;
	case_use_other(&other, "MACs hmac-sha2-256-etm@openssh.com\n"
			       "Ciphers aes256-ctr\n");
	client_connect(&client, &target);
	wait_outcome(&client);
	if (client.lost_count > 0) {
		assert_string_equal(client.err.reason, "SSH_UNSUPPORTED");
		assert_names(client.err.text,
			"no MAC | server has hmac-sha2-256-etm@openssh.com | offered");
		assert_non_null(strstr(client.err.text, "ssh-client = openssh"));
	}
	client_close(&client);
	sshd_stop(&other);
}

static void test_a_dialogue_is_unsupported(void **state)
{
	struct sshd other;
	case_use_other(&other, "KbdInteractiveAuthentication yes\n"
			       "AuthenticationMethods keyboard-interactive\n");
	fails_and_says("SSH_UNSUPPORTED", "keyboard-interactive");
	sshd_stop(&other);
}

static void test_new_keys_are_agreed_on_in_the_middle(void **state)
{
	struct sshd other;
	struct channel_record echo;
	struct channel_record source;
	static char much[256 * 1024];
	case_use_other(&other, "RekeyLimit 1M\n");
	client_connect_ready(&client, &target);
	channel_open(&echo, &client, "wc -c");
	channel_open(&source, &client, "yes | head -c 8388608");
	for (size_t written = 0; written < 8388608;) {
		struct span bytes = {much, sizeof(much)};
		bytes.len = 8388608 - written < bytes.len ? 8388608 - written : bytes.len;
		written += ssh_channel_write(echo.channel, bytes);
		loop_for_ms(1);
	}
	ssh_channel_send_eof(echo.channel);
	wait_event(&source, 'c');
	wait_event(&echo, 'c');
	assert_int_equal(source.counts[SSH_STREAM_OUT], 8388608);
	assert_string_equal(echo.heads[SSH_STREAM_OUT], "8388608\n");
	channel_close(&echo);
	channel_close(&source);
	client_close(&client);
	sshd_stop(&other);
}

/*
 * libssh2 sends the amount of its first call, and then counts the amount of its last call. A read
 * in between changes the amount.
 */
static __typeof__(libssh2_channel_read_ex) *read_really;
static __typeof__(libssh2_channel_receive_window_adjust2) *adjust_really;
static unsigned long begun; // and not sent yet
static size_t begun_count;
static size_t wrong_count;

static ssize_t read_and_look(LIBSSH2_CHANNEL *channel, int stream, char *bytes, size_t size)
{
	ssize_t count = read_really(channel, stream, bytes, size);
	wrong_count += begun > 0 && count > 0;
	return count;
}

static int adjust_and_look(
	LIBSSH2_CHANNEL *channel, unsigned long amount, unsigned char force, unsigned int *window)
{
	int outcome = adjust_really(channel, amount, force, window);
	wrong_count += begun > 0 && begun != amount;
	begun_count += begun == 0 && outcome == LIBSSH2_ERROR_EAGAIN;
	begun = outcome == LIBSSH2_ERROR_EAGAIN ? amount : 0;
	return outcome;
}

static void test_new_keys_in_the_middle_cost_nothing_of_the_window(void **state)
{
	struct sshd other;
	struct channel_record source;
	struct error err;
	struct ssh2 *ssh2 = (struct ssh2 *)(uintptr_t)ssh2_open(&err);
	case_use_other(&other, "RekeyLimit 1M\n");
	client_connect_ready(&client, &target);
	read_really = ssh2->channel_read_ex;
	adjust_really = ssh2->channel_receive_window_adjust2;
	ssh2->channel_read_ex = read_and_look;
	ssh2->channel_receive_window_adjust2 = adjust_and_look;
	channel_run(&source, &client, "yes | head -c 33554432");
	ssh2->channel_read_ex = read_really;
	ssh2->channel_receive_window_adjust2 = adjust_really;
	assert_int_equal(source.counts[SSH_STREAM_OUT], 33554432);
	print_message("widened during %zu exchanges of keys\n", begun_count);
	assert_int_equal(wrong_count, 0);
	channel_close(&source);
	client_close(&client);
	sshd_stop(&other);
}

#define login_test(name) cmocka_unit_test_setup_teardown(name, case_begin, case_end)

int main(void)
{
	client_world_begin();
	const struct CMUnitTest tests[] = {
		login_test(test_keys_without_passphrase_log_in),
		login_test(test_a_passphrase_comes_from_its_command),
		login_test(test_passphrases_that_do_not_come_or_fit_are_told),
		login_test(test_a_refused_key_is_named_with_what_the_server_takes),
		login_test(test_an_rsa_key_is_unsupported_or_works),
		login_test(test_a_certificate_beside_the_key_is_unsupported),
		login_test(test_a_fido_key_is_unsupported),
		login_test(test_missing_keys_are_passed_over),
		login_test(test_a_password_comes_from_its_command),
		login_test(test_nothing_to_try_is_told),
		login_test(test_a_secret_name_is_not_shown),
		login_test(test_the_ways_that_the_user_prefers_are_the_only_ones),
		login_test(test_other_ways_that_the_server_takes_are_unsupported),
		login_test(test_kerberos_without_a_ticket_is_no_other_way),
		login_test(test_other_ways_that_the_server_does_not_take_are_not_told),
		login_test(test_a_setting_that_libssh2_does_not_know_is_unsupported),
		login_test(test_addresses_are_of_the_family_that_the_user_says),
		login_test(test_an_unknown_host_is_refused),
		login_test(test_a_changed_host_key_is_refused),
		login_test(test_the_known_type_of_key_is_negotiated),
		login_test(test_a_server_with_nothing_in_common_is_unsupported),
		login_test(test_a_dialogue_is_unsupported),
		login_test(test_new_keys_are_agreed_on_in_the_middle),
		login_test(test_new_keys_in_the_middle_cost_nothing_of_the_window),
	};
	int failed = cmocka_run_group_tests(tests, case_start_sshd, case_stop_sshd);
	client_world_end();
	return failed;
}
