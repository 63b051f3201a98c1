/* SPDX-License-Identifier: MIT */
#include "tests/unit/ssh_case_fixture.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "tests/support/facts.h"

struct sshd sshd;
struct ssh_target target;
struct client_record client;

int case_start_sshd(void **state)
{
	struct sshd_spec spec = {.config = "KbdInteractiveAuthentication no\n"
					   "MaxAuthTries 20\n"};
	sshd_start(&sshd, &spec);
	return 0;
}

int case_stop_sshd(void **state)
{
	sshd_stop(&sshd);
	return 0;
}

int case_begin(void **state)
{
	target_for(&target, &sshd);
	return 0;
}

int case_end(void **state)
{
	client_close(&client);
	ssh_target_finish(&target);
	return 0;
}

int case_begin_with_sshd(void **state)
{
	case_start_sshd(state);
	return case_begin(state);
}

int case_end_with_sshd(void **state)
{
	case_end(state);
	return case_stop_sshd(state);
}

void case_use_other(struct sshd *other, const char *config)
{
	struct sshd_spec spec = {.config = config};
	sshd_start(other, &spec);
	ssh_target_finish(&target);
	target_for(&target, other);
}

void case_path(char path[PATH_MAX], const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", sshd.folder, name);
}

int run_shell(const char *format, ...)
{
	char command[2 * PATH_MAX];
	va_list args;
	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	return system(command);
}

void use_no_key(void)
{
	const char *const none[] = {NULL};
	target_set_list(&target.identity_files, none);
}

void use_key(const char *name, const char *options, bool allowed)
{
	char path[PATH_MAX];
	case_path(path, name);
	assert_int_equal(
		run_shell("rm -f %s %s.pub; ssh-keygen -q -f %s %s", path, path, path, options), 0);
	if (allowed) {
		assert_int_equal(
			run_shell("cat %s.pub >> %s/authorized_keys", path, sshd.folder), 0);
	}
	const char *const keys[] = {path, NULL};
	target_set_list(&target.identity_files, keys);
}

void echoes(void)
{
	struct channel_record channel;
	channel_run(&channel, &client, "echo in");
	assert_string_equal(channel.heads[SSH_STREAM_OUT], "in\n");
	client_close(&client);
}

void logs_in(void)
{
	client_connect_ready(&client, &target);
	echoes();
}

void fails_and_says(const char *reason, const char *facts)
{
	client_connect_fails(&client, &target, reason);
	assert_names(client.err.text, facts);
}

int listen_silently(int *out_fd)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(address);
	*out_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(*out_fd, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(*out_fd, 8), 0);
	assert_int_equal(getsockname(*out_fd, (struct sockaddr *)&address, &size), 0);
	return ntohs(address.sin_port);
}

struct ssh_target *hop_through(const struct sshd *hop)
{
	struct ssh_target *via = mem_alloc(sizeof(*via));
	target_for(via, hop);
	target_set(&via->alias, "hop");
	return via;
}

bool is_authenticating(void *data)
{
	return strstr(((const struct client_record *)data)->progress, "Authenticating") != NULL;
}
