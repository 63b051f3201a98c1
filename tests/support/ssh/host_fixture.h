/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SSH_HOST_FIXTURE_H
#define TESTS_SSH_HOST_FIXTURE_H

/* cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "providers/ssh/host.h"

/* A host over some client, the processes that it runs, and all events that were raised. */
enum { STAGE_DEADLINE_MS = 60000, HEARD_MAX = 80 << 20 };

struct stage {
	struct ev_loop *loop;
	struct provider_context context;
	struct ssh_target target;
	struct ssh_host_request request;
	struct ssh_host *host;
	bool is_ready;
	bool has_failed;
	struct error err;
	char progress[4096]; // all lines of progress
	size_t losses;       // number of losses of the link
	size_t returns;
	bool has_loop; // the loop belongs to somebody else
};

/* Fills in the request with the settings for tests; opens nothing yet. */
void stage_init(struct stage *stage);
void stage_open(struct stage *stage); // and waits until it is ready
void stage_start(struct stage *stage);
void stage_finish(struct stage *stage); // closes it; everything must be freed

void stage_run_until(struct stage *stage, const bool *flag);
void stage_run_for(struct stage *stage, int ms);

struct heard {
	struct stage *stage;
	struct exec *exec;
	char told[8]; // s, f, x, e, l
	struct process_status status;
	struct error err;
	int in;
	int fds[2];
	ev_io io[2];
	struct buf bytes[2];
	bool is_at_end[2];
};

/* Runs it and reads its output. */
void heard_start(struct heard *heard, struct stage *stage, const struct exec_spec *spec);
void heard_start_shell(struct heard *heard, struct stage *stage, const char *script);
void heard_wait(struct heard *heard, const char *told); // until exactly this was told
void heard_wait_output(struct heard *heard);            // to the end of both streams
void heard_wait_text(struct heard *heard, const char *text);
const char *heard_text(struct heard *heard, int which);
void heard_finish(struct heard *heard);

/* Runs a script to its end and returns its output, which is static. */
const char *stage_shell(struct stage *stage, const char *script);

/* How many processes of this machine have the mark of the host's run. */
size_t stage_count_left(const char *token);
void stage_expect_none_left(const char *token); // within the deadline

#endif
