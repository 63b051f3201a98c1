/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SSH_CASE_FIXTURE_H
#define TESTS_SSH_CASE_FIXTURE_H

#include <limits.h>

#include "tests/unit/ssh_client_fixture.h"

/* Each case of a test program begins with these: an sshd, a target for it, and one client. */
extern struct sshd sshd;
extern struct ssh_target target;
extern struct client_record client;

/*
 * For cmocka: starts one sshd for all cases, each of which makes its target; or one for each case.
 */
int case_start_sshd(void **state);
int case_stop_sshd(void **state);
int case_begin(void **state);
int case_end(void **state);
int case_begin_with_sshd(void **state);
int case_end_with_sshd(void **state);

/* Continues the case with another sshd, which the case stops itself. */
void case_use_other(struct sshd *other, const char *config);

void case_path(char path[PATH_MAX], const char *name);    // in the folder of the sshd
int run_shell(const char *format, ...) ATTR_PRINTF(1, 2); // its status
void use_no_key(void);
/* Makes a new key, the target's only one. `allowed`: the server accepts it. */
void use_key(const char *name, const char *options, bool allowed);

/* Expects that a command runs on the connection; then closes the connection. */
void echoes(void);
/* It connects, too. */
void logs_in(void);
/* Expects that it does not, for this reason, with these words in the error. */
void fails_and_says(const char *reason, const char *words);

/* Opens a socket that accepts connections and never answers; returns its port. */
int listen_silently(int *out_fd);
struct ssh_target *hop_through(const struct sshd *hop);

bool is_authenticating(void *record);

#endif
