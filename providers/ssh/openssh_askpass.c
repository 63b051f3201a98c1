/* SPDX-License-Identifier: MIT */
#include "providers/ssh/openssh_askpass.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/words.h"

/* What a server asks for begins with "(user@host)": a key's passphrase is never its answer. */
static const char script_text[] =
	"#!/bin/sh\n"
	"case $1 in\n"
	"'Enter passphrase for '*) command=$ACP_BROKER_PASSPHRASE_COMMAND ;;\n"
	"*[Pp]assword*) command=$ACP_BROKER_PASSWORD_COMMAND ;;\n"
	"*) command= ;;\n"
	"esac\n"
	"[ -z \"$command\" ] || exec /bin/sh -c \"$command\"\n"
	"[ -z \"$ACP_BROKER_ASKPASS\" ] || exec \"$ACP_BROKER_ASKPASS\" \"$@\"\n"
	"exit 1\n";

/* What is set anew; the order is that of nothing. */
static const char *const own_names[] = {"LC_ALL", "LANGUAGE", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE",
	"SHELL", "ACP_BROKER_PASSPHRASE_COMMAND", "ACP_BROKER_PASSWORD_COMMAND",
	"ACP_BROKER_ASKPASS"};

/* The command of the target, or of a host on the way where it has none. */
static const char *passphrase_command(const struct ssh_target *target)
{
	while (target && !target->passphrase_command) {
		target = target->via;
	}
	return target ? target->passphrase_command : NULL;
}

static const char *password_command(const struct ssh_target *target)
{
	while (target && !target->password_command) {
		target = target->via;
	}
	return target ? target->password_command : NULL;
}

bool openssh_needs_askpass(const struct ssh_target *target)
{
	return passphrase_command(target) || password_command(target);
}

bool openssh_write_askpass(const char *path, struct error *err)
{
	int fd ATTR_CLEANUP(fd_cleanup) = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	if (fd < 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "making %s", path);
	}
	if (!fd_write_all(fd, span_of(script_text), err)) {
		return error_prefix(err, "writing %s", path);
	}
	if (access(path, X_OK) != 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "%s cannot be run", path);
	}
	return true;
}

static const char *value_of(const char *const *environment, const char *name)
{
	size_t len = strlen(name);
	for (; environment && *environment; environment++) {
		if (strncmp(*environment, name, len) == 0 && (*environment)[len] == '=' &&
			(*environment)[len + 1]) {
			return *environment + len + 1;
		}
	}
	return NULL;
}

static bool is_own(const char *entry)
{
	for (size_t i = 0; i < ARRAY_LENGTH(own_names); i++) {
		size_t len = strlen(own_names[i]);
		if (strncmp(entry, own_names[i], len) == 0 && entry[len] == '=') {
			return true;
		}
	}
	return false;
}

bool openssh_can_ask(const struct ssh_target *target, const char *const *environment)
{
	return openssh_needs_askpass(target) || value_of(environment, "SSH_ASKPASS");
}

static void add(char ***env, const char *name, const char *value)
{
	char *entry = NULL;
	if (value) {
		if (asprintf(&entry, "%s=%s", name, value) < 0) {
			abort();
		}
		words_append(env, entry);
		free(entry);
	}
}

char **openssh_env(
	const struct ssh_target *target, const char *const *environment, const char *script)
{
	char **env = NULL;
	const char *own_askpass = value_of(environment, "SSH_ASKPASS");
	for (const char *const *entry = environment; entry && *entry; entry++) {
		if (!is_own(*entry)) {
			words_append(&env, *entry);
		}
	}
	add(&env, "LC_ALL", "C"); // its words are read
	/* It runs proxy commands; ours are for sh, the user's for the user's. */
	add(&env, "SHELL", target->via ? "/bin/sh" : value_of(environment, "SHELL"));
	add(&env, "SSH_ASKPASS", script ? script : own_askpass);
	if (script || own_askpass) {
		add(&env, "SSH_ASKPASS_REQUIRE", "force");
	}
	if (script) {
		const char *passphrase = passphrase_command(target);
		const char *password = password_command(target);
		add(&env, "ACP_BROKER_PASSPHRASE_COMMAND", passphrase ? passphrase : "");
		add(&env, "ACP_BROKER_PASSWORD_COMMAND", password ? password : "");
		add(&env, "ACP_BROKER_ASKPASS", own_askpass ? own_askpass : "");
	}
	return env;
}
