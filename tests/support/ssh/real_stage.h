/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SSH_REAL_STAGE_H
#define TESTS_SSH_REAL_STAGE_H

#include "tests/support/ssh/host_fixture.h"

/*
 * A stage over a client that the program chooses at its start: "pipe", or a real client. For a real
 * client, an sshd is started before the tests.
 */
bool real_stage_begin(const char *client); // first thing in main: forks a spawner
void real_stage_end(void);
bool real_stage_is_real(void);

int real_stage_set_up(void **state); // of the group
int real_stage_tear_down(void **state);

/* Like stage_init, over that client. */
void real_stage_init(struct stage *stage);

bool real_stage_is_apart(void); // "CLIENT-apart": ssh_host_request.stderr_apart
struct sshd *real_stage_sshd(void);

#endif
