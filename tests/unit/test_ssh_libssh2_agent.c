/* SPDX-License-Identifier: MIT */
#include "tests/unit/ssh_case_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

/* Logging in by the keys of a real ssh-agent, and by more than one proof. */

/* ---- the agent ---- */

enum { AGENT_START_MS = 30000 };

static pid_t agent_pid;

/* The socket has its name before the agent listens. */
static bool listens(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool is_connected = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	close(fd);
	return is_connected;
}

/* Starts a real agent as a child; its socket is `path`. */
static void start_agent(const char *path)
{
	agent_pid = fork();
	if (agent_pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		execlp("ssh-agent", "ssh-agent", "-D", "-a", path, (char *)NULL);
		_exit(127);
	}
	long long deadline_ms = clock_now_ms() + AGENT_START_MS;
	while (!listens(path) && clock_now_ms() < deadline_ms) {
		usleep(10000);
	}
	assert_true(listens(path));
}

static void stop_agent(void)
{
	kill(agent_pid, SIGCONT);
	kill(agent_pid, SIGKILL);
	waitpid(agent_pid, NULL, 0);
}

static void use_agent_with(const char *path, const char *keys)
{
	start_agent(path);
	assert_int_equal(
		run_shell("cd %s && SSH_AUTH_SOCK=%s ssh-add -q %s 2>&1", sshd.folder, path, keys),
		0);
	target_set(&target.identity_agent, path);
}

static void test_the_agents_keys_log_in(void **state)
{
	char path[PATH_MAX];
	char key[PATH_MAX];
	case_path(path, "agent");
	case_path(key, "other");
	start_agent(path);
	use_key("other", "-t ed25519 -N '' -C other-key", false);
	use_no_key();
	target_set(&target.identity_agent, path);
	fails_and_says("AUTH_FAILED", "has no keys");
	assert_int_equal(run_shell("SSH_AUTH_SOCK=%s ssh-add -q %s 2>&1", path, key), 0);
	fails_and_says("AUTH_FAILED", "the agent's ssh-ed25519 key other-key: refused");
	assert_int_equal(run_shell("SSH_AUTH_SOCK=%s ssh-add -q %s 2>&1", path, sshd.key), 0);
	logs_in();
	/* Only the named keys count, and the agent has none of them. */
	target.identities_only = true;
	fails_and_says("AUTH_FAILED", "no key");
	char public_half[PATH_MAX];
	case_path(public_half, "id.pub");
	const char *const named[] = {public_half, NULL};
	target_set_list(&target.identity_files, named);
	logs_in();
	stop_agent();
	unlink(path);
}

/*
 * The library says which signature it has promised to the server, and the agent has to make that
 * one.
 */
static void test_an_rsa_key_of_the_agent_is_unsupported_or_works(void **state)
{
	char path[PATH_MAX];
	case_path(path, "rsa_agent");
	use_key("rsa", "-t rsa -b 2048 -N ''", true);
	use_agent_with(path, "rsa");
	use_no_key();
	client_connect(&client, &target);
	wait_outcome(&client);
	if (client.lost_count > 0) {
		assert_string_equal(client.err.reason, "SSH_UNSUPPORTED");
		assert_non_null(strstr(client.err.text, "has no rsa-sha2"));
	}
	client_close(&client);
	stop_agent();
	unlink(path);
}

static void test_an_agent_that_does_not_answer_is_bounded(void **state)
{
	char path[PATH_MAX];
	case_path(path, "stopped");
	start_agent(path);
	kill(agent_pid, SIGSTOP);
	target_set(&target.identity_agent, path);
	target.auth_timeout_ms = 700;
	fails_and_says("TIMEOUT_EXCEEDED", "auth-timeout");
	/* The client can be closed at any time. */
	target.auth_timeout_ms = 60 * 1000;
	client_connect(&client, &target);
	loop_until(is_authenticating, &client);
	loop_for_ms(50);
	long long begun_ms = clock_now_ms();
	client_close(&client);
	assert_true(clock_now_ms() - begun_ms < target.auth_timeout_ms / 2);
	stop_agent();
}

static void test_an_agent_that_is_not_there_is_passed_over(void **state)
{
	target_set(&target.identity_agent, "/nonexistent/agent");
	logs_in();
}

static void make_keys(const char *names)
{
	assert_int_equal(run_shell("cd %s && for name in %s; do rm -f $name $name.pub; "
				   "ssh-keygen -q -t ed25519 -N '' -f $name || exit; done",
				 sshd.folder, names),
		0);
}

/* The target's keys are these files in the folder. */
static void name_keys(const char *const *names)
{
	char paths[8][PATH_MAX];
	const char *list[9] = {NULL};
	for (size_t i = 0; names[i]; i++) {
		case_path(paths[i], names[i]);
		list[i] = paths[i];
	}
	target_set_list(&target.identity_files, list);
}

/* The server ends the connection at the fourth refusal. */
static void test_a_key_of_the_agent_and_of_a_file_is_offered_once(void **state)
{
	char path[PATH_MAX];
	struct sshd other;
	case_use_other(&other, "MaxAuthTries 4\n");
	assert_int_equal(run_shell("cp %s/authorized_keys %s/", sshd.folder, other.folder), 0);
	case_path(path, "once");
	make_keys("a b c");
	use_agent_with(path, "a b c");
	static const char *const names[] = {"a", "b", "c", "a", "b.pub", "id", NULL};
	name_keys(names);
	logs_in();
	stop_agent();
	unlink(path);
	sshd_stop(&other);
}

static void test_the_agents_named_keys_come_first(void **state)
{
	char path[PATH_MAX];
	struct sshd other;
	case_use_other(&other, "MaxAuthTries 2\n");
	assert_int_equal(run_shell("cp %s/authorized_keys %s/", sshd.folder, other.folder), 0);
	case_path(path, "first");
	make_keys("a b c");
	use_agent_with(path, "a b c id");
	static const char *const names[] = {"id.pub", NULL};
	name_keys(names);
	target.identities_only = false;
	logs_in();
	stop_agent();
	unlink(path);
	sshd_stop(&other);
}

/* "ssh-add -c" asks through a program, which does not exist. */
static void test_a_key_that_the_agent_does_not_sign_with_is_read_from_its_file(void **state)
{
	char path[PATH_MAX];
	case_path(path, "unwilling");
	use_agent_with(path, "-c id");
	logs_in();
	use_no_key();
	fails_and_says("AUTH_FAILED", "agent | refuses to sign");
	stop_agent();
	unlink(path);
}

/* ---- more than one proof ---- */

static void test_a_key_and_a_password_together_log_in(void **state)
{
	struct sshd other;
	if (getuid() != 0) {
		skip();
	}
	case_use_other(&other, "AuthenticationMethods publickey,password password,publickey\n");
	target_set(&target.password_command, "echo " SSHD_PASSWORD);
	logs_in();
	target_set(&target.password_command, "echo wrong");
	fails_and_says("AUTH_FAILED", "id: accepted | password: refused");
	target_set(&target.password_command, NULL);
	fails_and_says("AUTH_FAILED", "another proof | takes password");
	sshd_stop(&other);
}

static void test_a_password_and_then_a_key_log_in(void **state)
{
	struct sshd other;
	if (getuid() != 0) {
		skip();
	}
	case_use_other(&other, "AuthenticationMethods password,publickey\n");
	target_set(&target.password_command, "echo " SSHD_PASSWORD);
	logs_in();
	use_no_key();
	fails_and_says("AUTH_FAILED", "password: accepted | another proof");
	sshd_stop(&other);
}

static void test_two_keys_together_log_in(void **state)
{
	struct sshd other;
	case_use_other(&other, "AuthenticationMethods publickey,publickey\n");
	make_keys("second");
	assert_int_equal(run_shell("cat %s/id.pub %s/second.pub > %s/authorized_keys", sshd.folder,
				 sshd.folder, other.folder),
		0);
	static const char *const names[] = {"id", "id", "second", NULL};
	name_keys(names);
	logs_in();
	sshd_stop(&other);
}

static void test_a_dialogue_after_a_key_is_unsupported(void **state)
{
	struct sshd other;
	case_use_other(&other, "KbdInteractiveAuthentication yes\n"
			       "AuthenticationMethods publickey,keyboard-interactive\n");
	fails_and_says("SSH_UNSUPPORTED", "keyboard-interactive): set ssh-client = openssh");
	sshd_stop(&other);
}

/* sshd accepts the user's name alone if the password is empty. */
static void test_the_name_alone_logs_in_where_that_is_enough(void **state)
{
	struct sshd other;
	if (getuid() != 0) {
		skip();
	}
	case_use_other(&other, "PermitEmptyPasswords yes\n");
	use_no_key();
	target.allows_none = true;
	logs_in();
	sshd_stop(&other);
	case_use_other(&other, "KbdInteractiveAuthentication no\n");
	use_no_key();
	target.allows_none = true;
	fails_and_says("AUTH_FAILED", "name alone: refused");
	sshd_stop(&other);
}

#define agent_test(name) cmocka_unit_test_setup_teardown(name, case_begin, case_end)

int main(void)
{
	client_world_begin();
	const struct CMUnitTest tests[] = {
		agent_test(test_the_agents_keys_log_in),
		agent_test(test_an_rsa_key_of_the_agent_is_unsupported_or_works),
		agent_test(test_an_agent_that_does_not_answer_is_bounded),
		agent_test(test_an_agent_that_is_not_there_is_passed_over),
		agent_test(test_a_key_of_the_agent_and_of_a_file_is_offered_once),
		agent_test(test_the_agents_named_keys_come_first),
		agent_test(test_a_key_that_the_agent_does_not_sign_with_is_read_from_its_file),
		agent_test(test_a_key_and_a_password_together_log_in),
		agent_test(test_a_password_and_then_a_key_log_in),
		agent_test(test_two_keys_together_log_in),
		agent_test(test_a_dialogue_after_a_key_is_unsupported),
		agent_test(test_the_name_alone_logs_in_where_that_is_enough),
	};
	int failed = cmocka_run_group_tests(tests, case_start_sshd, case_stop_sshd);
	client_world_end();
	return failed;
}
