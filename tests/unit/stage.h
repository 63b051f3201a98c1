/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_STAGE_H
#define TESTS_UNIT_STAGE_H

/* cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ev.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/soon.h"
#include "broker/config/config.h"
#include "providers/impl.h"

/*
 * A provider whose processes the test itself plays: instead of a process that the broker starts,
 * there are only the other ends of its descriptors. Everything happens on one loop and without
 * waiting, unless a test waits for a deadline of the broker.
 */
enum { STAGE_TOLD_MAX = 256, STAGE_ACTORS_MAX = 8 };

/*
 * A process that the broker started. The test may examine it even after the broker has destroyed
 * it.
 */
struct actor {
	struct exec exec;
	struct stage *stage;
	const struct exec_listener *listener; // NULL once destroyed
	void *data;
	int in;  // what the broker writes to it; -1 once closed
	int out; // what it writes; -1 once closed
	int err;
	struct buf heard; // from in, less the lines that were taken
	char **argv;
	char **env;
	bool was_foreground;
	bool has_started;
	bool was_killed;
	bool has_exited;
	bool has_emptied;
	struct soon start;
	struct soon killed;
	char told[STAGE_TOLD_MAX]; // what the broker did: "TERM kill destroyed "
};

struct stage {
	struct provider provider;
	struct ev_loop *loop;
	struct registry *registry;
	struct config config; // config.profile; everything has its default until a test changes it
	struct sandbox_capabilities capabilities;
	const char *no_terminals;   // NULL: no reason
	bool holds_ready;           // a sandbox is not ready until stage_ready
	bool holds_start;           // a process has not started until stage_start
	bool can_withdraw;          // a sandbox can be withdrawn
	int withdrawn;              // number of withdrawn sandboxes
	bool ignores_kill;          // a killed tree does not end by itself
	struct error prepare_error; // if its code is set: a prepare is refused at once
	struct error ready_error;   // the sandbox fails instead of becoming ready
	struct error exec_error;    // an exec is refused at once
	struct error start_error;   // the process fails instead of starting
	bool holds_suspend;         // a suspend or a resume waits for stage_go_on
	struct error suspend_error; // a suspend fails
	int suspended;              // number of suspended sandboxes
	sandbox_done *held_done;    // of the suspend or resume that waits
	void *held_data;
	bool held_is_suspend;
	const char *runtime;                    // where mapped roots are; NULL: "/runtime"
	size_t roots_max;                       // number of roots that a sandbox takes; 0: any
	struct list sandboxes;                  // of struct stage_sandbox (private), open ones
	int prepared;                           // number of prepared sandboxes, in all
	const char *program;                    // the program that wishes; NULL: ""
	char decided[STAGE_TOLD_MAX];           // wishes: "1 yes, 2 no, 3 no told, "
	struct actor *actors[STAGE_ACTORS_MAX]; // owned; in the order of their start
	int actor_count;
};

/* Everything at its defaults; the agent is called "agent" and started as "/bin/agent --acp". */
void stage_init(struct stage *stage);
void stage_finish(struct stage *stage); // once the broker's side has released everything

/*
 * Replaces the profile's policy by one of lines "mode = pass", "deny = write /x"; NULL ends them.
 */
void stage_policy(struct stage *stage, const char *const *lines);

/* ---- time ---- */

/* Runs the loop until everything has happened that needs no waiting. */
void stage_settle(struct stage *stage);

/* Runs the loop once; a millisecond may pass. */
void stage_wait_turn(struct stage *stage);

/* Runs the loop until *flag is set; fails the test if that takes seconds. */
void stage_until(struct stage *stage, const bool *flag);

/* ---- sandboxes ---- */

void stage_ready(struct stage *stage);                       // the newest one, with holds_ready
void stage_lose(struct stage *stage, const char *text);      // the newest one fails
void stage_lose_link(struct stage *stage, const char *text); // to "box", the newest one
void stage_find_link(struct stage *stage);                   // it is back
int stage_open_sandboxes(const struct stage *stage);
void stage_go_on(struct stage *stage); // with holds_suspend

/* Raises a wish for a connection in the newest sandbox, or its end. */
void stage_wishes(struct stage *stage, uint32_t id, const char *host, uint16_t port);
void stage_wish_goes(struct stage *stage, uint32_t id);

/* From now on the newest sandbox counts as a cell. */
void stage_confine(struct stage *stage);

/* Compares the decisions since the last call. */
void stage_assert_decided(struct stage *stage, const char *expected);

/* ---- processes ---- */

void actor_start(struct actor *actor); // with holds_start
void actor_writes(struct actor *actor, struct span bytes);
void actor_closes(struct actor *actor, int *fd); // one of its three

/*
 * Ends the process: closes its descriptors and raises exited. actor_exits_holding leaves the output
 * open, as if descendants held it.
 */
void actor_exits(struct actor *actor, int code, int signal);
void actor_exits_holding(struct actor *actor, int code, int signal);
void actor_empties(struct actor *actor);                    // nothing that it started runs any more
void actor_dies(struct actor *actor, int code, int signal); // exits and empties
void actor_is_lost(struct actor *actor, const char *text);

/* Reads the input of the process and keeps it. False once it has read the end of file. */
bool actor_reads(struct actor *actor);

/*
 * Waits for the next line that was sent to the process and takes it; NULL at the end. The caller
 * frees it.
 */
char *actor_line(struct actor *actor);

/* The same for any descriptor. */
char *stage_line(struct stage *stage, int fd, struct buf *heard);

/* Compares the broker's actions on the process since the last call. */
void actor_assert_told(struct actor *actor, const char *expected);

/* ---- between stage.c and stage_actor.c ---- */

struct stage *stage_of(struct sandbox *sandbox);
struct exec *stage_exec(struct sandbox *sandbox, const struct exec_spec *spec,
	const struct exec_listener *listener, void *data, struct error *err);
void actors_free(struct stage *stage);

#endif
