/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SSH_SSHD_H
#define TESTS_SSH_SSHD_H

/* cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <sys/types.h>

/*
 * A real OpenSSH sshd on 127.0.0.1: an ordinary process with its own keys and configuration in its
 * own folder, which start_sshd.sh fills. If a function fails, it fails the test and prints the log
 * of sshd.
 */
enum { SSHD_FOLDER_MAX = 64, SSHD_PATH_MAX = 128 };

#define SSHD_ALIAS "box"       // the host's name in `config`
#define SSHD_PASSWORD "sesame" // the user's, for root alone

struct sshd_spec {
	/* Lines of sshd_config(5) that go before the fixture's own; may be NULL. */
	const char *config;
	/*
	 * The user's login shell: "/usr/bin/fish", "/usr/bin/busybox"; NULL: as the system has it.
	 */
	const char *shell;
};

struct sshd {
	pid_t pid; // 0: it does not run
	int port;
	char user[64];
	char folder[SSHD_FOLDER_MAX];    // removed by sshd_stop
	char home[SSHD_PATH_MAX];        // the user's home there; empty at first
	char config[SSHD_PATH_MAX];      // for ssh -F
	char key[SSHD_PATH_MAX];         // it may log in; no passphrase
	char known_hosts[SSHD_PATH_MAX]; // has all of its host keys
	char log[SSHD_PATH_MAX];
};

/* Starts it and waits until it listens. A NULL spec means all defaults. */
void sshd_start(struct sshd *sshd, const struct sshd_spec *spec);

/* Kills it, its connections and their processes, and removes the folder. Zeroed is fine. */
void sshd_stop(struct sshd *sshd);

/* Sends SIGSTOP or SIGCONT to it, its connections and their processes. */
void sshd_freeze(struct sshd *sshd);
void sshd_thaw(struct sshd *sshd);

/* SIGKILL to each connection's processes; sshd itself goes on listening. */
void sshd_kill_connections(struct sshd *sshd);

/* The processes directly below sshd: one for each connection. */
size_t sshd_count_connections(const struct sshd *sshd);

/* Appends lines to the host "box" of `config`: ssh_config(5). */
void sshd_add_client_config(struct sshd *sshd, const char *lines);

/* Whether its log already has these words. */
bool sshd_has_logged(const struct sshd *sshd, const char *words);
size_t sshd_count_logged(const struct sshd *sshd, const char *words);
void sshd_print_log(const struct sshd *sshd); // to stderr

#endif
