/* SPDX-License-Identifier: MIT */
#ifndef BROKER_AGENT_AGENT_INTERNAL_H
#define BROKER_AGENT_AGENT_INTERNAL_H

#include "base/soon.h"
#include "broker/agent/agent.h"

/* Shared by agent.c (the start and the link) and agent_end.c; nobody else includes this. */

enum { NOISE_MAX = 80 }; // bytes kept of the first line that was not a message

/* The steps of a stop in their order; each has a deadline. */
enum stop_step { STOP_NONE, STOP_EOF, STOP_TERM, STOP_KILL, STOP_FORCED };

struct agent {
	struct agent_config config;
	struct link link;
	struct tail tail;
	struct sandbox *sandbox;     // owned; NULL until prepared
	struct provision *provision; // owned; NULL if the sandbox needs no preparation
	struct exec *exec;           // owned; NULL until the process is requested
	struct ev_timer due;         // prepare-timeout, then start-timeout
	long long away_ms;           // sandbox_extend_timer; of start-timeout
	long long drain_away_ms;     // the same, of drain-timeout
	struct ev_timer wall;        // the deadline of wall
	struct ev_timer stop;        // the deadline of the stop step
	struct ev_timer drain;       // after exit, while its output is still open, or the reverse
	struct soon tell;            // calls the callbacks that are due, once no call is active
	struct soon again;           // starts the process that follows one that has ended
	char subject[80];
	bool is_prepared; // the sandbox can be used
	bool is_lost;     // it no longer can
	const char *step; // the step that it must answer; NULL: none
	enum stop_step stop_step;
	uint64_t stop_taken; // count_taken at the start of the deadline
	int stop_waits;      // how often the stop was extended for a slow reader
	struct process_status status;
	bool is_started;
	bool has_exited;
	bool was_exit_told;
	bool input_ended; // its stdin can no longer be written
	bool output_ended;
	struct error link_error; // caused by the system, not by the agent; or ERROR_NONE
	bool is_empty;           // nothing that it started runs
	bool is_failing;         // `failure` is set and not reported yet
	bool is_withdrawing;     // undoing the preparation of a sandbox that cannot be used
	bool is_withdrawn;       // the withdrawing has ended
	struct error left;       // why the withdrawing failed; or ERROR_NONE
	bool is_down;            // on_down was called
	bool is_gone;            // on_gone was called
	struct error failure;
	int noise_count;
	char noise[NOISE_MAX + 1];
};

/* Initializes the timers; none runs yet. */
void agent_end_init(struct agent *agent);
void agent_end_finish(struct agent *agent);

void agent_timer_start(struct agent *agent, struct ev_timer *timer, int ms);

/* Calls on_exited, on_down and on_gone, those that are due, in the next loop iteration. */
void agent_tell_soon(struct agent *agent);

/* Ends the agent because of an error from a lower layer. */
void agent_fail_with_error(
	struct agent *agent, const char *code, const char *stage, const struct error *err);

/*
 * The agent has exited, or closed its output or input. Exit and closed output together end it. One
 * alone ends it after drain-timeout or, during a stop, after the deadlines of the stop.
 */
void agent_check_ended(struct agent *agent);

/* Notes an error of its descriptors, or NULL; the first one becomes the reason of its end. */
void agent_note_link_error(struct agent *agent, const struct error *err);

/* The process runs: start-timeout begins now. */
void agent_arm_answer(struct agent *agent);
void agent_arm_wall(struct agent *agent); // the same for the deadline of wall

#endif
