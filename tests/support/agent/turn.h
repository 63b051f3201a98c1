/* SPDX-License-Identifier: MIT */
#ifndef TESTS_AGENT_TURN_H
#define TESTS_AGENT_TURN_H

#include "tests/support/agent/agent.h"

/* One prompt in progress: its script, and the position in it. */
struct turn {
	struct list link; // agent.turns
	struct agent *agent;
	struct session *session; // borrowed; outlives its turns
	char *request_id;        // raw
	char *script;
	char *next;           // the line to run next; NULL at the end
	char *command;        // the line under way, or NULL
	int step;             // how often its command was run
	char *waits_for;      // raw id of the agent's request under way, or NULL
	char *terminal;       // raw id of the terminal under way, or NULL
	char *call_id;        // raw id of the tool call under way, or NULL
	long long wake_at_ms; // sleeps until then; 0: does not sleep
	long done;            // updates already streamed
	bool deaf;            // does not hear a cancel
	bool answered;
};

/* The client's answer: a result or an error; the other one is empty. */
struct reply {
	struct span result;
	struct span error;
};

enum progress {
	COMMAND_DONE,  // go on with the next line
	COMMAND_WAITS, // for the reply to turn_call, or for wake_at_ms
	COMMAND_AGAIN, // run once more when the output queue has room
	COMMAND_ENDED, // the turn was answered
};

/* Runs a command: at first with reply NULL, then once for each reply. argument is never NULL. */
typedef enum progress command_run(
	struct turn *turn, const char *argument, const struct reply *reply);

struct command {
	const char *name;
	command_run *run;
	const char *help;
};

extern const struct command update_commands[];  // commands.c
extern const struct command call_commands[];    // calls.c
extern const struct command trouble_commands[]; // trouble.c; each table ends with a NULL name

void turn_start(struct agent *agent, struct session *session, struct span request_id, char *script);

/* Runs every turn that can go on. Returns whether one of them can go on again without waiting. */
bool turns_run(struct agent *agent);

/* Milliseconds until a sleeping turn goes on, -1 when none sleeps. */
int turns_timeout(const struct agent *agent);

/* Passes an answer to its turn; false if it belongs to none. */
bool turns_take_reply(struct agent *agent, struct span id, const struct reply *reply);

/* session/cancel and session/close; $/cancel_request. */
void turns_cancel_session(struct agent *agent, const struct session *session);
void turns_cancel_request(struct agent *agent, struct span request_id);
void turns_destroy(struct agent *agent);

/* Answers the prompt. */
void turn_answer(struct turn *turn, const char *format, ...) ATTR_PRINTF(2, 3);

/* Sends a request with the agent's next id and remembers that the turn waits for it. */
void turn_call(struct turn *turn, const char *method, const char *format, ...) ATTR_PRINTF(3, 4);

/* session/update with the update given as JSON. */
void turn_update(struct turn *turn, const char *format, ...) ATTR_PRINTF(2, 3);
void turn_say(struct turn *turn, const char *format, ...) ATTR_PRINTF(2, 3);

/*
 * Says "METHOD -> RESULT" with the raw result, so that the client sees which answer the agent got.
 */
void turn_say_reply(struct turn *turn, const char *method, const struct reply *reply);

/* Every command with its help, for --help. */
void turn_print_commands(void);

#endif
