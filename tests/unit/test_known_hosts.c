/* SPDX-License-Identifier: MIT */
#include "tests/unit/known_hosts_fixture.h"

/*
 * ssh-keygen writes the files. The lines that name a host are compared with those that ssh-keygen
 * -F finds.
 */

/* ---- compared with ssh-keygen ---- */

static void list_line(void *data, const struct known_hosts_match *match)
{
	char **text = data;
	static const char *const marks[] = {"", " REVOKED", " CA"};
	size_t len = strlen(*text);
	if (!match->is_bare) {
		snprintf(*text + len, KNOWN_TEXT_MAX - len, "%zu%s\n", match->number,
			marks[match->line->marker]);
	}
}

/* Compares which lines of the user's file name this host. */
static void assert_as_ssh_keygen(const char *host, int port)
{
	struct ssh_target target = known_target(host, port);
	struct error err;
	char *name = known_hosts_name(&target);
	char *expected = known_output(
		"ssh-keygen -F '%s' -f %s | sed -n 's/^# Host .* found: line \\([0-9]*\\)/\\1/p' "
		"| sed 's/ *$//'",
		name, known_user_file);
	char *found = mem_alloc_zero(KNOWN_TEXT_MAX);
	assert_true(known_hosts_each(&target, list_line, &found, &err));
	if (strcmp(found, expected) != 0) {
		fail_msg("%s: found %s; ssh-keygen: %s", name, found, expected);
	}
	free(found);
	free(expected);
	free(name);
}

static const struct {
	const char *host;
	int port;
} asked[] = {{"devbox", 22}, {"DevBox", 22}, {"devbox", 2222}, {"192.0.2.7", 22}, {"::1", 22},
	{"::1", 2222}, {"web1.example.com", 22}, {"web12.example.com", 22}, {"bad.example.com", 22},
	{"example.com", 22}, {"other", 22}, {"x", 22}};

static void compare_all(void)
{
	for (size_t i = 0; i < ARRAY_LENGTH(asked); i++) {
		assert_as_ssh_keygen(asked[i].host, asked[i].port);
	}
}

static void test_names_and_patterns_are_those_of_ssh_keygen(void **state)
{
	KNOWN_WRITE("# a comment", "", "devbox $0", "DEVBOX,192.0.2.7 $3 a comment",
		"[devbox]:2222 $1", "[::1]:2222,::1 $2", "*.example.com,!bad.example.com $0",
		"!bad.example.com,web?.example.com $1", "web?.example.com $2", "* $3",
		"@revoked devbox $1", "@cert-authority *.example.com $0", "@unknown devbox $0",
		"devbox ssh-ed25519", "devbox", "  \tdevbox\t$2", "[devbox]:* $0",
		"dev*ox,other $1", "*x* $0", "!x,* $1", "a,,devbox $0", "devbox, $0");
	compare_all();
}

static void test_hashed_names_are_those_of_ssh_keygen(void **state)
{
	KNOWN_WRITE("devbox $0", "192.0.2.7,::1 $3", "[devbox]:2222 $1", "[::1]:2222 $2",
		"|1|AAAA|AAAA $0", "|2|x|y $0", "|1| $0", "| $0", "@revoked other $1");
	free(known_output("ssh-keygen -H -f %s 2>&1", known_user_file));
	char *text = known_read_text(known_user_file);
	assert_null(strstr(text, "devbox"));
	free(text);
	compare_all();
}

/* ---- verdicts ---- */

static void test_a_known_key_matches_and_another_does_not(void **state)
{
	struct ssh_target target = known_target("devbox", 22);
	KNOWN_WRITE("# us", "devbox $3", "devbox $0");
	assert_known_verdict(&target, 0, KNOWN_HOSTS_MATCH, known_user_file, 3);
	assert_known_verdict(&target, 3, KNOWN_HOSTS_MATCH, known_user_file, 2);
	assert_known_verdict(
		&target, 1, KNOWN_HOSTS_MISMATCH, known_user_file, 3); // with a key of its type
	assert_known_verdict(&target, 2, KNOWN_HOSTS_MISMATCH, known_user_file, 2);
	target.host = (char *)"elsewhere";
	assert_known_verdict(&target, 0, KNOWN_HOSTS_UNKNOWN, "", 0);
}

static void assert_revoked(const struct ssh_target *target, int key, bool is_revoked, size_t line)
{
	struct known_hosts_finding finding;
	struct error err;
	assert_true(revoked_keys_check(target, &known_keys[key], &finding, &err));
	assert_int_equal(finding.verdict, is_revoked ? KNOWN_HOSTS_REVOKED : KNOWN_HOSTS_UNKNOWN);
	assert_int_equal(finding.line, line);
}

static void test_what_revoked_host_keys_names_is_refused_though_it_is_known(void **state)
{
	struct ssh_target target = known_target("devbox", 22);
	char note[256];
	struct error err;
	assert_revoked(&target, 0, false, 0);
	KNOWN_WRITE("# stolen", "", "$1 kim@old", "$0");
	assert_int_equal(rename(known_user_file, known_global_file), 0);
	KNOWN_WRITE("devbox $0");
	target.revoked_host_keys = known_global_file;
	target.global_known_hosts_files = NULL;
	assert_revoked(&target, 0, true, 4);
	assert_revoked(&target, 1, true, 3);
	assert_revoked(&target, 2, false, 0);
	assert_false(host_key_decide(&target, &known_keys[0], note, sizeof(note), &err));
	assert_string_equal(err.reason, "HOST_KEY_MISMATCH");
	assert_non_null(strstr(err.text, "revoked"));
}

static void test_revoked_host_keys_that_cannot_be_read_let_no_key_pass(void **state)
{
	struct ssh_target target = known_target("devbox", 22);
	struct known_hosts_finding finding;
	struct error err;
	target.revoked_host_keys = (char *)"/nonexistent/revoked";
	assert_false(revoked_keys_check(&target, &known_keys[0], &finding, &err));
	assert_non_null(strstr(err.text, "RevokedHostKeys (/nonexistent/revoked)"));
	KNOWN_WRITE("$0");
	free(known_output("ssh-keygen -q -k -f '%s' '%s'", known_global_file, known_user_file));
	target.revoked_host_keys = known_global_file;
	assert_false(revoked_keys_check(&target, &known_keys[0], &finding, &err));
	assert_string_equal(err.reason, "SSH_UNSUPPORTED");
}

static void test_a_command_that_may_know_the_key_is_left_to_the_ssh_program(void **state)
{
	struct ssh_target target = known_target("devbox", 22);
	char note[256];
	struct error err;
	target.has_known_hosts_command = true;
	target.host_checking = SSH_HOST_CHECKING_ACCEPT_NEW;
	assert_false(host_key_decide(&target, &known_keys[0], note, sizeof(note), &err));
	assert_string_equal(err.reason, "SSH_UNSUPPORTED");
	KNOWN_WRITE("devbox $0");
	assert_true(host_key_decide(&target, &known_keys[0], note, sizeof(note), &err));
}

static void test_an_authority_and_dns_are_left_to_the_ssh_program(void **state)
{
	static const char *const names[] = {"devbox", "[devbox]:2222", "dev*"};
	struct ssh_target target = known_target("devbox", 2222);
	char note[256];
	struct error err;
	target.host_checking = SSH_HOST_CHECKING_ACCEPT_NEW;
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		char line[64];
		snprintf(line, sizeof(line), "@cert-authority %s $1", names[i]);
		KNOWN_WRITE(line);
		assert_false(host_key_decide(&target, &known_keys[0], note, sizeof(note), &err));
		assert_string_equal(err.reason, "SSH_UNSUPPORTED");
		assert_non_null(strstr(err.text, "@cert-authority"));
		assert_string_equal(note, "");
		KNOWN_WRITE(line, "[devbox]:2222 $0");
		assert_true(host_key_decide(&target, &known_keys[0], note, sizeof(note), &err));
	}
	KNOWN_WRITE("@cert-authority other $1");
	target.verifies_by_dns = true;
	assert_false(host_key_decide(&target, &known_keys[0], note, sizeof(note), &err));
	assert_string_equal(err.reason, "SSH_UNSUPPORTED");
	assert_non_null(strstr(err.text, "VerifyHostKeyDNS"));
	target.verifies_by_dns = false;
	assert_true(host_key_decide(&target, &known_keys[0], note, sizeof(note), &err));
}

static void test_a_missing_file_knows_nothing(void **state)
{
	struct ssh_target target = known_target("devbox", 22);
	assert_known_verdict(&target, 0, KNOWN_HOSTS_UNKNOWN, "", 0);
	target.user_known_hosts_files = NULL;
	assert_known_verdict(&target, 0, KNOWN_HOSTS_UNKNOWN, "", 0);
}

static void test_the_global_file_counts_too(void **state)
{
	struct ssh_target target = known_target("devbox", 22);
	KNOWN_WRITE("devbox $0");
	assert_int_equal(rename(known_user_file, known_global_file), 0);
	assert_known_verdict(&target, 0, KNOWN_HOSTS_MATCH, known_global_file, 1);
	KNOWN_WRITE("devbox $1");
	assert_known_verdict(&target, 0, KNOWN_HOSTS_MATCH, known_global_file, 1);
}

static void test_a_revoked_key_is_revoked_wherever_else_it_is_known(void **state)
{
	struct ssh_target target = known_target("devbox", 22);
	KNOWN_WRITE("devbox $0", "@revoked * $0");
	assert_known_verdict(&target, 0, KNOWN_HOSTS_REVOKED, known_user_file, 2);
	target.port = 2222;
	assert_known_verdict(&target, 0, KNOWN_HOSTS_REVOKED, known_user_file, 2);
	KNOWN_WRITE("[devbox]:2222 $0", "@revoked devbox $0");
	assert_known_verdict(&target, 0, KNOWN_HOSTS_REVOKED, known_user_file, 2);
}

static void test_an_authority_is_told_and_is_no_key_of_the_host(void **state)
{
	struct ssh_target target = known_target("devbox", 22);
	struct known_hosts_finding finding;
	struct error err;
	KNOWN_WRITE("@cert-authority dev* $0");
	assert_true(known_hosts_check(&target, &known_keys[0], &finding, &err));
	assert_int_equal(finding.verdict, KNOWN_HOSTS_UNKNOWN);
	assert_true(finding.has_authority);
	assert_true(known_hosts_check(&target, &known_keys[1], &finding, &err));
	assert_int_equal(finding.verdict, KNOWN_HOSTS_UNKNOWN);
}

static void test_without_its_port_only_a_match_counts(void **state)
{
	struct ssh_target target = known_target("devbox", 2222);
	KNOWN_WRITE("devbox $0");
	assert_known_verdict(&target, 0, KNOWN_HOSTS_MATCH, known_user_file, 1);
	assert_known_verdict(&target, 1, KNOWN_HOSTS_UNKNOWN, "", 0);
	KNOWN_WRITE("devbox $0", "[devbox]:2222 $1");
	assert_known_verdict(&target, 0, KNOWN_HOSTS_MISMATCH, known_user_file, 2);
	assert_known_verdict(&target, 1, KNOWN_HOSTS_MATCH, known_user_file, 2);
}

static void test_an_alias_stands_for_host_and_port(void **state)
{
	struct ssh_target target = known_target("devbox", 2222);
	target.host_key_alias = (char *)"Alias";
	KNOWN_WRITE("devbox $1", "[devbox]:2222 $1", "alias $0");
	assert_known_verdict(&target, 0, KNOWN_HOSTS_MATCH, known_user_file, 3);
	assert_known_verdict(&target, 1, KNOWN_HOSTS_MISMATCH, known_user_file, 3);
}

static void test_a_file_that_cannot_be_read_is_an_error(void **state)
{
	struct ssh_target target = known_target("devbox", 22);
	struct known_hosts_finding finding;
	struct error err;
	assert_int_equal(mkdir(known_user_file, 0700), 0);
	assert_false(known_hosts_check(&target, &known_keys[0], &finding, &err));
	assert_non_null(strstr(err.text, known_user_file));
	assert_int_equal(rmdir(known_user_file), 0);
	assert_int_equal(mkfifo(known_user_file, 0600), 0);
	assert_false(known_hosts_check(&target, &known_keys[0], &finding, &err));
	assert_int_equal(unlink(known_user_file), 0);
	assert_int_equal(symlink("/dev/null", known_user_file), 0);
	assert_known_verdict(&target, 0, KNOWN_HOSTS_UNKNOWN, "", 0);
	assert_int_equal(unlink(known_user_file), 0);
	known_write_text(known_user_file, "");
	assert_int_equal(truncate(known_user_file, KNOWN_HOSTS_FILE_MAX + 1), 0);
	assert_false(known_hosts_check(&target, &known_keys[0], &finding, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
}

/* After each of these lines, the next line is read all the same. */
static void test_lines_that_hold_no_key_are_skipped(void **state)
{
	struct ssh_target target = known_target("devbox", 22);
	KNOWN_WRITE("devbox ssh-ed25519 AAAA", "devbox ssh-ed25519 !", "devbox ssh-ed25519",
		"devbox ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAA", "devbox", "@revoked", "@ devbox $0",
		"@REVOKED devbox $0", "devbox 2048 65537 12345", "\r", "devbox $0\r");
	assert_known_verdict(&target, 0, KNOWN_HOSTS_MATCH, known_user_file, 11);
	assert_known_verdict(&target, 1, KNOWN_HOSTS_MISMATCH, known_user_file, 11);
}

/* ---- types ---- */

static void assert_types(const struct ssh_target *target, const char *expected)
{
	const char *types[8];
	struct error err;
	char text[256] = "";
	assert_true(known_hosts_types(target, types, ARRAY_LENGTH(types), &err));
	for (size_t i = 0; types[i]; i++) {
		strncat(text, types[i], sizeof(text) - strlen(text) - 1);
		strncat(text, " ", sizeof(text) - strlen(text) - 1);
	}
	assert_string_equal(text, expected);
}

static void test_the_types_that_are_known_come_best_first(void **state)
{
	struct ssh_target target = known_target("devbox", 22);
	const char *types[2];
	struct error err;
	assert_types(&target, "");
	KNOWN_WRITE("devbox $3", "devbox $2", "devbox $0", "devbox $1", "other $0");
	assert_types(&target, "ssh-ed25519 ecdsa-sha2-nistp256 rsa-sha2-512 rsa-sha2-256 ssh-rsa ");
	assert_true(known_hosts_types(&target, types, 2, &err));
	assert_string_equal(types[0], "ssh-ed25519");
	assert_null(types[1]);
	KNOWN_WRITE("devbox $3", "@revoked devbox $0", "@cert-authority devbox $2");
	assert_types(&target, "rsa-sha2-512 rsa-sha2-256 ssh-rsa ");
	target.port = 2222;
	assert_types(&target, "rsa-sha2-512 rsa-sha2-256 ssh-rsa ");
	KNOWN_WRITE("devbox $3", "[devbox]:2222 $2");
	assert_types(&target, "ecdsa-sha2-nistp256 ");
}

/* ---- adding ---- */

static void test_an_added_key_is_found_by_ssh_keygen(void **state)
{
	struct error err;
	for (int hashed = 0; hashed < 2; hashed++) {
		for (int port = 22; port <= 2222; port += 2200) {
			struct ssh_target target = known_target("DevBox", port);
			target.hash_known_hosts = hashed;
			known_write_text(known_user_file, "other ssh-ed25519 AAAA"); // no newline
			assert_true(known_hosts_add(&target, &known_keys[0], &err));
			assert_true(known_hosts_add(&target, &known_keys[3], &err));
			assert_known_verdict(&target, 0, KNOWN_HOSTS_MATCH, known_user_file, 2);
			assert_known_verdict(&target, 3, KNOWN_HOSTS_MATCH, known_user_file, 3);
			assert_as_ssh_keygen("devbox", port);
			char *text = known_read_text(known_user_file);
			assert_int_equal(strstr(text, "devbox") != NULL, !hashed);
			assert_memory_equal(text, "other ssh-ed25519 AAAA\n", 23);
			free(text);
		}
	}
}

static void test_the_file_and_its_folder_are_private(void **state)
{
	char path[PATH_MAX];
	char sub[PATH_MAX];
	char *files[] = {path, NULL};
	struct stat status;
	struct error err;
	struct ssh_target target = known_target("devbox", 22);
	target.user_known_hosts_files = files;
	snprintf(sub, sizeof(sub), "%s/.ssh", known_folder);
	assert_in_range(snprintf(path, sizeof(path), "%s/known_hosts", sub), 1, PATH_MAX - 1);
	mode_t before = umask(0);
	assert_true(known_hosts_add(&target, &known_keys[0], &err));
	umask(before);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	assert_int_equal(stat(sub, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
}

static void test_a_key_that_cannot_be_written_down_is_an_error(void **state)
{
	char path[] = "/proc/none/known_hosts";
	char *files[] = {path, NULL};
	struct error err;
	struct ssh_target target = known_target("devbox", 22);
	target.user_known_hosts_files = files;
	assert_false(known_hosts_add(&target, &known_keys[0], &err));
	assert_non_null(strstr(err.text, path));
	target.user_known_hosts_files = NULL;
	assert_false(known_hosts_add(&target, &known_keys[0], &err));
	assert_int_equal(err.code, ERROR_CONFIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KNOWN_TEST(test_names_and_patterns_are_those_of_ssh_keygen),
		KNOWN_TEST(test_hashed_names_are_those_of_ssh_keygen),
		KNOWN_TEST(test_a_known_key_matches_and_another_does_not),
		KNOWN_TEST(test_what_revoked_host_keys_names_is_refused_though_it_is_known),
		KNOWN_TEST(test_revoked_host_keys_that_cannot_be_read_let_no_key_pass),
		KNOWN_TEST(test_a_command_that_may_know_the_key_is_left_to_the_ssh_program),
		KNOWN_TEST(test_an_authority_and_dns_are_left_to_the_ssh_program),
		KNOWN_TEST(test_a_missing_file_knows_nothing),
		KNOWN_TEST(test_the_global_file_counts_too),
		KNOWN_TEST(test_a_revoked_key_is_revoked_wherever_else_it_is_known),
		KNOWN_TEST(test_an_authority_is_told_and_is_no_key_of_the_host),
		KNOWN_TEST(test_without_its_port_only_a_match_counts),
		KNOWN_TEST(test_an_alias_stands_for_host_and_port),
		KNOWN_TEST(test_a_file_that_cannot_be_read_is_an_error),
		KNOWN_TEST(test_lines_that_hold_no_key_are_skipped),
		KNOWN_TEST(test_the_types_that_are_known_come_best_first),
		KNOWN_TEST(test_an_added_key_is_found_by_ssh_keygen),
		KNOWN_TEST(test_the_file_and_its_folder_are_private),
		KNOWN_TEST(test_a_key_that_cannot_be_written_down_is_an_error),
	};
	return cmocka_run_group_tests(tests, known_setup, known_teardown);
}
