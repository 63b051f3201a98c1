/* SPDX-License-Identifier: MIT */
#include "tests/support/ssh/client_cases.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

/*
 * What concerns only the ssh program: its process, its questions, and servers that libssh2 cannot
 * talk to.
 */
static void test_without_the_program(struct client_world *world)
{
	struct error err;
	static const struct ssh_client_listener nothing;
	client_world_start(world, NULL);
	client_set(&world->target.ssh_program, NULL);
	assert_null(ssh_openssh_connect(&world->context, &world->target, &nothing, NULL, &err));
	assert_string_equal(err.reason, "SSH_UNSUPPORTED");
	assert_non_null(strstr(err.text, "PATH"));
	client_set(&world->target.ssh_program, "/no/such/ssh");
	struct connection connection = {0};
	connection_open(&connection, world);
	client_run_until(world, &connection.is_lost);
	assert_non_null(strstr(connection.err.text, "/no/such/ssh"));
	connection_close(&connection);
}

/* The command line of ssh would show it. */
static void test_a_secret_name_is_no_name_for_it(struct client_world *world)
{
	struct error err;
	static const struct ssh_client_listener nothing;
	client_world_start(world, NULL);
	world->target.user_is_secret = true;
	assert_null(ssh_openssh_connect(&world->context, &world->target, &nothing, NULL, &err));
	assert_string_equal(err.reason, "SSH_UNSUPPORTED");
	assert_non_null(strstr(err.text, "ssh-client = libssh2"));
	assert_null(strstr(err.text, world->target.user));
}

static void test_a_server_of_modern_algorithms_alone(struct client_world *world)
{
	client_world_start(
		world, &(struct sshd_spec){.config = "Ciphers chacha20-poly1305@openssh.com\n"
						     "MACs hmac-sha2-512-etm@openssh.com\n"});
	struct connection connection = {0};
	connection_expect_ready(&connection, world);
	connection_close(&connection);
}

static void test_a_server_with_an_rsa_key_alone(struct client_world *world)
{
	struct connection connection = {0};
	client_world_start(world,
		&(struct sshd_spec){.config = "HostKeyAlgorithms rsa-sha2-512,rsa-sha2-256\n"});
	connection_expect_ready(&connection, world);
	connection_close(&connection);
}

/* Certificates of a host and of a user; no other key would be accepted. */
static void test_certificates(struct client_world *world)
{
	char line[1024];
	client_world_start(world, NULL);
	snprintf(line, sizeof(line),
		"cd %s && ssh-keygen -q -N '' -t ed25519 -f ca && "
		"ssh-keygen -q -s ca -I user -n \"$(id -un)\" id.pub && "
		"ssh-keygen -q -s ca -I host -h -n 127.0.0.1 host_ed25519.pub && "
		"echo \"cert-authority $(cat ca.pub)\" > authorized_keys && "
		"echo \"@cert-authority * $(cat ca.pub)\" > known_hosts && "
		"echo HostCertificate $PWD/host_ed25519-cert.pub >> sshd_config",
		world->sshd.folder);
	assert_int_equal(system(line), 0);
	size_t listened = sshd_count_logged(&world->sshd, "Server listening");
	kill(world->sshd.pid, SIGHUP); // reads its configuration again
	struct connection connection = {0};
	long long deadline_ms = clock_now_ms() + CLIENT_DEADLINE_MS;
	while (sshd_count_logged(&world->sshd, "Server listening") == listened &&
		clock_now_ms() < deadline_ms) {
		client_run_for(world, 10);
	}
	connection_expect_ready(&connection, world);
	assert_true(sshd_has_logged(&world->sshd, "ED25519-CERT"));
	connection_close(&connection);
}

/* ssh would take the key that the command prints for known. */
static void test_a_command_that_the_target_does_not_have_vouches_for_nothing(
	struct client_world *world)
{
	char line[1024];
	struct connection connection = {0};
	client_world_start(world, NULL);
	sshd_add_client_config(&world->sshd, "\tKnownHostsCommand /bin/echo %H %t %K\n");
	snprintf(line, sizeof(line),
		"cd %s && echo \"[127.0.0.1]:%d $(cut -d' ' -f1,2 id.pub)\" > known_hosts",
		world->sshd.folder, world->sshd.port);
	assert_int_equal(system(line), 0);
	connection_expect_failure(&connection, world, "HOST_KEY_MISMATCH", "");
	connection_close(&connection);
	world->target.has_known_hosts_command = true;
	connection = (struct connection){0};
	connection_expect_ready(&connection, world);
	connection_close(&connection);
}

static void test_the_users_own_askpass(struct client_world *world)
{
	char path[SSHD_PATH_MAX], entry[SSHD_PATH_MAX + 16], line[512];
	client_world_start(world, NULL);
	snprintf(line, sizeof(line), "ssh-keygen -q -p -N 'open it' -f %s > /dev/null",
		world->sshd.key);
	assert_int_equal(system(line), 0);
	snprintf(path, sizeof(path), "%s/askpass", world->sshd.folder);
	client_write_file(path, "#!/bin/sh\necho 'open it'\n");
	snprintf(line, sizeof(line), "chmod 700 %s", path);
	assert_int_equal(system(line), 0);
	snprintf(entry, sizeof(entry), "SSH_ASKPASS=%s", path);
	const char *const environment[] = {"PATH=/usr/bin:/bin", entry, NULL};
	const char *const *before = world->context.environment;
	world->context.environment = environment;
	struct connection connection = {0};
	connection_expect_ready(&connection, world);
	connection_close(&connection);
	world->context.environment = before;
}

/* Options of the user's that would change the purpose of the connection. */
static void test_users_options_that_do_not_fit(struct client_world *world)
{
	client_world_start(world, NULL);
	sshd_add_client_config(&world->sshd,
		"\tRemoteCommand echo no\n\tRequestTTY force\n\tForkAfterAuthentication yes\n"
		"\tSessionType none\n\tStdinNull yes\n\tLogLevel QUIET\n\tControlMaster auto\n"
		"\tControlPersist 1h\n\tPermitLocalCommand yes\n\tLocalCommand touch "
		"/dev/null/no\n\tBatchMode no\n\tLocalForward 1 127.0.0.1:1\n");
	struct connection connection = {0};
	struct flow flow = {0};
	connection_expect_ready(&connection, world);
	flow_run(&flow, &connection, "tty; cat", "plain");
	client_run_until(world, &flow.is_over);
	assert_string_equal(flow_text(&flow, SSH_STREAM_OUT), "not a tty\nplain");
	flow_close(&flow);
	connection_close(&connection);
	client_expect_no_connection(world); // nothing is left
}

/* The number of folders of control sockets that this program has made. */
static int count_folders(const char *place)
{
	char line[256];
	snprintf(line, sizeof(line), "ls -d %s/acp-ssh-* 2>/dev/null | wc -l", place);
	FILE *pipe = popen(line, "re");
	assert_non_null(pipe);
	char text[32] = "";
	assert_non_null(fgets(text, sizeof(text), pipe));
	pclose(pipe);
	return (int)strtol(text, NULL, 10);
}

static void test_its_folder_is_private_and_goes_with_it(struct client_world *world)
{
	char entry[SSHD_PATH_MAX + 32], line[256];
	client_world_start(world, NULL);
	snprintf(entry, sizeof(entry), "XDG_RUNTIME_DIR=%s", world->sshd.home);
	const char *const environment[] = {"PATH=/usr/bin:/bin", entry, NULL};
	const char *const *before = world->context.environment;
	world->context.environment = environment;
	struct connection connection = {0}, other = {0};
	snprintf(line, sizeof(line), "cd %s && mkdir acp-ssh-1 && touch acp-ssh-1/s",
		world->sshd.home);
	assert_int_equal(system(line), 0); // a killed program's
	connection_expect_ready(&connection, world);
	assert_int_equal(count_folders(world->sshd.home), 1);
	connection_expect_ready(&other, world); // it takes away nobody's folder
	assert_int_equal(count_folders(world->sshd.home), 2);
	connection_close(&other);
	snprintf(line, sizeof(line), "test $(stat -c %%a %s/acp-ssh-*) = 700", world->sshd.home);
	assert_int_equal(system(line), 0);
	connection_close(&connection);
	assert_int_equal(count_folders(world->sshd.home), 0);
	world->context.environment = before;
}

/* No file below it can be locked, as in an NFS folder that is open for reading. */
static const char *without_locks;

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the system's are reserved */
int flock(int fd, int operation)
{
	char name[32], path[SSHD_PATH_MAX] = "";
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	if (without_locks && readlink(name, path, sizeof(path) - 1) > 0 &&
		strncmp(path, without_locks, strlen(without_locks)) == 0) {
		errno = EBADF;
		return -1;
	}
	return (int)syscall(SYS_flock, fd, operation);
}

static void test_where_nothing_can_be_locked_nothing_is_left(struct client_world *world)
{
	char entry[SSHD_PATH_MAX + 32];
	client_world_start(world, NULL);
	snprintf(entry, sizeof(entry), "XDG_RUNTIME_DIR=%s", world->sshd.home);
	const char *const environment[] = {"PATH=/usr/bin:/bin", entry, NULL};
	const char *const *before = world->context.environment;
	world->context.environment = environment;
	without_locks = world->sshd.home;
	struct connection connection = {0};
	connection_expect_ready(&connection, world); // by a folder elsewhere
	assert_int_equal(count_folders(world->sshd.home), 0);
	connection_close(&connection);
	without_locks = NULL;
	world->context.environment = before;
}

/* A passphrase is in no command line and no environment while ssh uses it. */
static void test_secrets_are_in_no_command_line(struct client_world *world)
{
	char line[1024];
	client_world_start(world, NULL);
	snprintf(line, sizeof(line), "ssh-keygen -q -p -N 'sec''ret-4711' -f %s > /dev/null",
		world->sshd.key);
	assert_int_equal(system(line), 0);
	snprintf(line, sizeof(line),
		"cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ > %s/seen 2>/dev/null; "
		"echo sec''ret-4711",
		world->sshd.folder);
	client_set(&world->target.passphrase_command, line);
	struct connection connection = {0};
	connection_expect_ready(&connection, world);
	snprintf(line, sizeof(line), "test -s %s/seen && ! grep -aq secret-4711 %s/seen",
		world->sshd.folder, world->sshd.folder);
	assert_int_equal(system(line), 0);
	connection_close(&connection);
}

/* Runs these lines of sh before the program itself. */
static void use_slow_ssh(struct client_world *world, const char *before)
{
	char path[SSHD_PATH_MAX], script[1024];
	snprintf(path, sizeof(path), "%s/slow-ssh", world->sshd.folder);
	snprintf(script, sizeof(script), "#!/bin/sh\n%s\nexec %s \"$@\"\n", before,
		world->target.ssh_program);
	client_write_file(path, script);
	assert_int_equal(chmod(path, 0700), 0);
	client_set(&world->target.ssh_program, path);
}

#define SAY_CONNECTING "printf 'debug1: Connecting to box [192.0.2.1] port 22.\\r\\n' >&2; "

static void test_each_address_has_the_time_to_connect(struct client_world *world)
{
	struct connection connection = {0};
	client_world_start(world, NULL);
	world->target.connect_timeout_ms = 2000;
	use_slow_ssh(world, "for i in 1 2 3; do " SAY_CONNECTING "sleep 1.5; done");
	connection_expect_ready(&connection, world);
	connection_close(&connection);
}

static void test_addresses_without_end_come_to_an_end(struct client_world *world)
{
	struct connection connection = {0};
	client_world_start(world, NULL);
	world->target.connect_timeout_ms = 100;
	use_slow_ssh(world, "while :; do " SAY_CONNECTING "sleep 0.1; done");
	connection_expect_failure(
		&connection, world, "TIMEOUT_EXCEEDED", ": not done within connect-timeout");
	connection_close(&connection);
}

static void test_a_name_that_is_stuck_is_told(struct client_world *world)
{
	struct connection connection = {0};
	client_world_start(world, NULL);
	world->target.connect_timeout_ms = 100;
	client_set(&world->target.host, "stuck.invalid");
	use_slow_ssh(world, "sleep 60");
	connection_expect_failure(&connection, world, "TIMEOUT_EXCEEDED",
		": resolving stuck.invalid: not done within connect-timeout");
	connection_close(&connection);
}

#define CASE(name)                                                                                 \
	{                                                                                          \
#name, name                                                                        \
	}

static const struct client_case cases[] = {
	CASE(test_without_the_program),
	CASE(test_a_secret_name_is_no_name_for_it),
	CASE(test_a_server_of_modern_algorithms_alone),
	CASE(test_a_server_with_an_rsa_key_alone),
	CASE(test_certificates),
	CASE(test_a_command_that_the_target_does_not_have_vouches_for_nothing),
	CASE(test_the_users_own_askpass),
	CASE(test_users_options_that_do_not_fit),
	CASE(test_its_folder_is_private_and_goes_with_it),
	CASE(test_where_nothing_can_be_locked_nothing_is_left),
	CASE(test_secrets_are_in_no_command_line),
	CASE(test_each_address_has_the_time_to_connect),
	CASE(test_addresses_without_end_come_to_an_end),
	CASE(test_a_name_that_is_stuck_is_told),
};

int main(int argc, char **argv)
{
	const struct client_table own = {cases, sizeof(cases) / sizeof(cases[0])};
	const struct client_table *const tables[] = {
		&client_channel_cases, &client_connect_cases, &client_trouble_cases, &own, NULL};
	return client_cases_run(argc, argv, "openssh", ssh_openssh_connect, tables);
}
