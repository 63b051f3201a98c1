/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SSH_CASE_FIXTURE_H
#define TESTS_SSH_CASE_FIXTURE_H

#include <limits.h>

#include "tests/unit/ssh_client_fixture.h"

/* What each case of a test program begins with: an sshd, a target that fits, one client. */
extern struct sshd sshd;
extern struct ssh_target target;
extern struct client_record client;

/* For cmocka: one sshd for all cases, which each give it a target; or one for each. */
int case_start_sshd(void **state);
int case_stop_sshd(void **state);
int case_begin(void **state);
int case_end(void **state);
int case_begin_with_sshd(void **state);
int case_end_with_sshd(void **state);

/* The case goes on with another sshd, which it stops itself. */
void case_use_other(struct sshd *other, const char *config);

void case_path(char path[PATH_MAX], const char *name);    // in the folder of the sshd
int run_shell(const char *format, ...) ATTR_PRINTF(1, 2); // its status
void use_no_key(void);
/* A new key, the target's only one. `allowed`: it may log in. */
void use_key(const char *name, const char *options, bool allowed);

/* A command runs on the connection, which is closed. */
void echoes(void);
/* It connects, too. */
void logs_in(void);
/* It does not, for this reason, and these words are in the error. */
void fails_and_says(const char *reason, const char *words);

/* A socket that is listened on and never answered; returns its port. */
int listen_silently(int *out_fd);
struct ssh_target *hop_through(const struct sshd *hop);

bool is_authenticating(void *record);

#endif
