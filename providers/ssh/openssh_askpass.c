/* SPDX-License-Identifier: MIT */
#include "providers/ssh/openssh_askpass.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/words.h"

enum { TERMINAL_NAME_MAX = 256 };

/*
 * A server's question begins with "(user@host)", so it never gets a key's passphrase. Two questions
 * get the account's password: sshd's, and ssh's own ("kim@box's password: "). The user answers a
 * question for a new password, or for one of several ("One-time password (OATH) for `kim':").
 */
static const char script_text[] =
	"#!/bin/sh\n"
	"command=\n"
	"asked=${1#'('*@*') '}\n"
	"case ${asked% } in\n"
	"[Pp]assword:) command=$ACP_BROKER_PASSWORD_COMMAND ;;\n"
	"esac\n"
	"case ${1% } in\n"
	"'Enter passphrase for '*) command=$ACP_BROKER_PASSPHRASE_COMMAND ;;\n"
	"*' '*\"'s password:\") ;;\n"
	"*@*\"'s password:\") command=$ACP_BROKER_PASSWORD_COMMAND ;;\n"
	"esac\n"
	"[ -z \"$command\" ] || exec /bin/sh -c \"$command\"\n"
	"[ -z \"$ACP_BROKER_ASKPASS\" ] || exec \"$ACP_BROKER_ASKPASS\" \"$@\"\n"
	"[ -n \"$ACP_BROKER_TERMINAL\" ] || exit 1\n"
	"exec 3<>\"$ACP_BROKER_TERMINAL\" || exit 1\n"
	"printf '%s' \"$1\" >&3\n"
	/* The request to touch a key is only shown; it expects no answer. */
	"[ \"$SSH_ASKPASS_PROMPT\" != none ] || { echo >&3; exit 0; }\n"
	"shown=$(stty -g <&3) || exit 1\n"
	"trap 'stty \"$shown\" <&3' EXIT\n"
	"trap 'exit 1' HUP INT TERM\n"
	"case $1 in *'(yes/no'*) ;; *) stty -echo <&3 ;; esac\n"
	"IFS= read -r answer <&3 || exit 1\n"
	"echo >&3\n"
	"printf '%s\\n' \"$answer\"\n";

/* Variables that we set; the order does not matter. */
static const char *const own_names[] = {"LC_ALL", "LANGUAGE", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE",
	"SHELL", "ACP_BROKER_PASSPHRASE_COMMAND", "ACP_BROKER_PASSWORD_COMMAND",
	"ACP_BROKER_ASKPASS", "ACP_BROKER_TERMINAL"};

/* The target's command, or that of a host before it if the target has none. */
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

/* ---- a user to ask ---- */

static bool requires(const char *const *environment, const char *word)
{
	const char *value = value_of(environment, "SSH_ASKPASS_REQUIRE");
	return value && strcmp(value, word) == 0;
}

static const char *own_askpass(const char *const *environment)
{
	return requires(environment, "never") ? NULL : value_of(environment, "SSH_ASKPASS");
}

/* The broker must be in the terminal's foreground: otherwise another program uses the terminal. */
static bool find_terminal(const char *const *environment, char *name, size_t size)
{
	bool prefers_askpass = own_askpass(environment) &&
	                       (requires(environment, "prefer") || requires(environment, "force"));
	return !prefers_askpass && tcgetpgrp(STDERR_FILENO) == getpgrp() &&
	       ttyname_r(STDERR_FILENO, name, size) == 0;
}

bool openssh_has_user(const char *const *environment)
{
	char name[TERMINAL_NAME_MAX];
	return own_askpass(environment) || find_terminal(environment, name, sizeof(name));
}

bool openssh_has_command(const struct ssh_target *target)
{
	return passphrase_command(target) || password_command(target);
}

bool openssh_can_ask(const struct ssh_target *target, const char *const *environment)
{
	return openssh_has_command(target) || openssh_has_user(environment);
}

bool openssh_needs_askpass(const struct ssh_target *target, const char *const *environment)
{
	char name[TERMINAL_NAME_MAX];
	return openssh_has_command(target) || find_terminal(environment, name, sizeof(name));
}

void openssh_terminal_keep(struct openssh_terminal *terminal, const char *const *environment)
{
	char name[TERMINAL_NAME_MAX];
	terminal->is_kept = find_terminal(environment, name, sizeof(name)) &&
	                    tcgetattr(STDERR_FILENO, &terminal->settings) == 0;
}

void openssh_terminal_restore(struct openssh_terminal *terminal)
{
	struct termios now;
	sigset_t stop;
	sigset_t before;
	if (!terminal->is_kept) {
		return;
	}
	terminal->is_kept = false;
	bool was_shown = terminal->settings.c_lflag & ECHO;
	if (!was_shown || tcgetattr(STDERR_FILENO, &now) != 0 || (now.c_lflag & ECHO)) {
		return;
	}
	/* The broker may have been put into the background since. */
	sigemptyset(&stop);
	sigaddset(&stop, SIGTTOU);
	pthread_sigmask(SIG_BLOCK, &stop, &before);
	(void)tcsetattr(STDERR_FILENO, TCSADRAIN, &terminal->settings);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- the environment ---- */

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
	char terminal[TERMINAL_NAME_MAX];
	bool has_terminal = find_terminal(environment, terminal, sizeof(terminal));
	const char *own = own_askpass(environment);
	for (const char *const *entry = environment; entry && *entry; entry++) {
		if (!is_own(*entry)) {
			words_append(&env, *entry);
		}
	}
	add(&env, "LC_ALL", "C"); // we parse ssh's messages
	/* ssh runs proxy commands with it: ours need sh, the user's need the user's shell. */
	add(&env, "SHELL", target->via ? "/bin/sh" : value_of(environment, "SHELL"));
	add(&env, "SSH_ASKPASS", script ? script : own);
	if (script || own) {
		add(&env, "SSH_ASKPASS_REQUIRE", "force");
	}
	if (script) {
		const char *passphrase = passphrase_command(target);
		const char *password = password_command(target);
		add(&env, "ACP_BROKER_PASSPHRASE_COMMAND", passphrase ? passphrase : "");
		add(&env, "ACP_BROKER_PASSWORD_COMMAND", password ? password : "");
		add(&env, "ACP_BROKER_ASKPASS", own && !has_terminal ? own : "");
		add(&env, "ACP_BROKER_TERMINAL", has_terminal ? terminal : "");
	}
	return env;
}
