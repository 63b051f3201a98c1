/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_GRANT_FIXTURE_H
#define TESTS_UNIT_GRANT_FIXTURE_H

#include "tests/unit/relay_fixture.h"

#include <semaphore.h>

#include "base/pool.h"

#define OPTIONS_ALWAYS                                                                             \
	"[{'optionId':'allow','name':'Allow','kind':'allow_once'},"                                \
	"{'optionId':'allow-always','name':'Always allow in this session','kind':'allow_always'}," \
	"{'optionId':'reject','name':'Reject','kind':'reject_once'},"                              \
	"{'optionId':'reject-always','name':'Always reject in this session',"                      \
	"'kind':'reject_always'}]"
#define OPTIONS_ONCE                                                                               \
	"[{'optionId':'allow','name':'Allow','kind':'allow_once'},"                                \
	"{'optionId':'reject','name':'Reject','kind':'reject_once'}]"
#define WRITE_REQUEST                                                                              \
	"'method':'fs/write_text_file','params':{'sessionId':'s','path':'/w/f','content':'new'}"

#define POLICY(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A session "s" in /w, and a policy. */
static inline void begin_with_policy(struct fixture *fixture, const char *const *lines)
{
	stage_policy(&fixture->stage, lines);
	begin_with_session(fixture);
}

/* ---- a pool that does nothing for a while ---- */

static sem_t gate;

static inline void wait_at_gate(struct pool_job *job)
{
	sem_wait(&gate);
}

static inline void note_done(struct pool_job *job)
{
}

/* The pool reads nothing until open_gate. */
static inline void close_gate(struct fixture *fixture)
{
	static struct pool_job jobs[POOL_WORK_THREADS];
	struct error err;
	sem_init(&gate, 0, 0);
	for (int i = 0; i < POOL_WORK_THREADS; i++) {
		jobs[i] = (struct pool_job){
			.lane = POOL_LANE_WORK, .run = wait_at_gate, .done = note_done};
		assert_true(pool_submit(fixture->pool, &jobs[i], &err));
	}
}

/* Lets the first job after close_gate run; later jobs wait for open_gate. */
static inline void let_one_pass(struct fixture *fixture)
{
	static struct pool_job behind;
	struct error err;
	behind = (struct pool_job){.lane = POOL_LANE_WORK, .run = wait_at_gate, .done = note_done};
	assert_true(pool_submit(fixture->pool, &behind, &err));
	sem_post(&gate);
}

static inline void open_gate(void)
{
	for (int i = 0; i < POOL_WORK_THREADS; i++) {
		sem_post(&gate);
	}
}

#endif
