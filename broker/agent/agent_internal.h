/* SPDX-License-Identifier: MIT */
#ifndef BROKER_AGENT_AGENT_INTERNAL_H
#define BROKER_AGENT_AGENT_INTERNAL_H

#include "base/soon.h"
#include "broker/agent/agent.h"

/* What agent.c (its start and its link) and agent_end.c share; nobody else includes this. */

enum { NOISE_MAX = 80 }; // bytes of the first line that was no message

/* The steps of a stop, in their order; each has a deadline. */
enum stop_step { STOP_NONE, STOP_EOF, STOP_TERM, STOP_KILL, STOP_FORCED };

struct agent {
	struct agent_config config;
	struct link link;
	struct tail tail;
	struct sandbox *sandbox;     // owned; NULL until prepared
	struct provision *provision; // owned; NULL where nothing has to be in the sandbox first
	struct exec *exec;           // owned; NULL until the process is asked for
	struct ev_timer due;         // prepare-timeout, then start-timeout
	struct ev_timer wall;        // of its process
	struct ev_timer stop;        // the deadline of the stop step
	struct ev_timer drain;       // exited, output still open - or the other way round
	struct soon tell;            // raises what may not be raised from inside a call
	struct soon again;           // starts the process that follows one that has ended
	char subject[80];
	bool is_prepared; // the sandbox can be used
	bool is_lost;     // it cannot any more
	const char *step; // what it has to answer; NULL: nothing
	enum stop_step stop_step;
	uint64_t stop_taken; // count_taken when the deadline began
	int stop_waits;      // for a reader that is slow
	struct process_status status;
	bool is_started;
	bool has_exited;
	bool was_exit_told;
	bool input_ended; // it cannot be written to
	bool output_ended;
	struct error link_error; // of the system's, not the agent's, doing; or ERROR_NONE
	bool is_empty;           // nothing that it started runs
	bool is_failing;         // failure waits to be told
	bool is_withdrawing;     // what was made for it and cannot be used is taken back first
	bool is_withdrawn;       // that is over
	struct error left;       // why that could not be taken back; or ERROR_NONE
	bool is_down;            // on_down was raised
	bool is_gone;            // on_gone was raised
	struct error failure;
	int noise_count;
	char noise[NOISE_MAX + 1];
};

/* Sets up the timers, none of which runs yet. */
void agent_end_init(struct agent *agent);
void agent_end_finish(struct agent *agent);

void agent_timer_start(struct agent *agent, struct ev_timer *timer, int ms);

/* Raises on_exited, on_down and on_gone, as far as they are due, in the next turn of the loop. */
void agent_tell_soon(struct agent *agent);

/* An error of a lower layer ends it. */
void agent_fail_with_error(
	struct agent *agent, const char *code, const char *stage, const struct error *err);

/*
 * It has exited or closed its output or input: the first two together end it,
 * one alone within drain-timeout - or, in a stop, within the deadlines of that.
 */
void agent_check_ended(struct agent *agent);

/* An error of the descriptors to it, or NULL; the first one is told as the reason of its end. */
void agent_note_link_error(struct agent *agent, const struct error *err);

/* The process runs: from now on start-timeout counts. */
void agent_arm_answer(struct agent *agent);
void agent_arm_wall(struct agent *agent); // the same for wall

#endif
