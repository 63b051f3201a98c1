/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_RELAY_FIXTURE_H
#define TESTS_UNIT_RELAY_FIXTURE_H

#include "tests/unit/stage.h"

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/fd.h"
#include "broker/relay/relay.h"

/*
 * A relay on a stage: the test is the editor and every agent. Messages are
 * written without their version and with ' for ":
 *
 *     editor_says(fixture, "'id':1,'method':'session/new','params':{}");
 *     agent_hears(fixture, 0, "'id':0,'method':'session/new','params':{}");
 *
 * stand for {"jsonrpc":"2.0","id":1,…}. Agents are numbered from 0 in the order
 * of their start.
 */
enum { TOOL_CALLS_MAX = 256 };

struct fixture {
	struct stage stage;
	struct relay *relay;
	struct pool *pool;        // owned; NULL: the relay gets none
	const char *state_folder; // borrowed; NULL: the relay gets none
	int to_broker;            // what the editor writes; -1 once closed
	int from_broker;          // what the editor reads; -1 once closed
	struct buf heard;
	char tool_calls[TOOL_CALLS_MAX][2][40]; // the editor's random ids, and their names
	int tool_call_count;
	bool is_gone;                      // on_editor_gone was raised
	bool is_finished;                  // on_finished was raised
	char finish_error[ERROR_TEXT_MAX]; // with this; "" for none
	int sync_moment_ms;                // of the relay; by default no slow sync is shown
	int link_show_ms;                  // of the relay
	bool ends_when_gone;               // then calls relay_end, as the program does; the default
};

int set_up(void **state);    // the relay is not created yet, so that the profile can be changed
int tear_down(void **state); // destroys the relay where it is there

struct profile *profile_of(struct fixture *fixture);

/* Creates and connects the relay. */
void begin(struct fixture *fixture);
void begin_traced(struct fixture *fixture, struct trace *trace);

/*
 * Calls begin; then the editor sends initialize as request 0, and agent 0 answers it in its usual
 * way.
 */
void begin_greeted(struct fixture *fixture);

/*
 * The same, then session/new for each name (NULL ends the list); this uses the agent's ids 1, 2, ….
 */
void begin_with_sessions(struct fixture *fixture, const char *const *names);
void begin_with_session(struct fixture *fixture); // "s"

/* ---- the editor ---- */

void editor_says(struct fixture *fixture, const char *format, ...) ATTR_PRINTF(2, 3);
void editor_writes(struct fixture *fixture, struct span bytes); // as they are
void editor_hears(struct fixture *fixture, const char *format, ...) ATTR_PRINTF(2, 3);
void assert_message(char *line, const char *format, ...) ATTR_PRINTF(2, 3); // frees the line
void editor_hears_nothing(struct fixture *fixture);
void editor_closes(struct fixture *fixture); // what it writes to

/* Expects an error with this raw id, data.code and data.stage, and these words in its message. */
void editor_hears_failure(struct fixture *fixture, const char *id, const char *code,
	const char *stage, const char *words);

/*
 * The next line, owned by the caller; NULL at the end of file. Only the random ids of the broker's
 * tool calls are replaced: that of a question by acp-broker-ID, with the id of its request, that of
 * a notice by acp-broker-notice-NUMBER.
 */
char *editor_line(struct fixture *fixture);

/* ---- agents ---- */

void agent_says(struct fixture *fixture, int index, const char *format, ...) ATTR_PRINTF(3, 4);
void agent_writes(struct fixture *fixture, int index, struct span bytes);
void agent_hears(struct fixture *fixture, int index, const char *format, ...) ATTR_PRINTF(3, 4);
void agent_hears_nothing(struct fixture *fixture, int index);
void agent_hears_failure(struct fixture *fixture, int index, const char *id, const char *code,
	const char *stage, const char *words);
void agent_hears_end(struct fixture *fixture, int index); // the end of file, and no line before it
char *agent_next_line(struct fixture *fixture, int index);
struct actor *agent(struct fixture *fixture, int index); // waits until it was started

/* Its process ends, and nothing of it runs any more. */
void agent_dies(struct fixture *fixture, int index);

/* The editor's initialize, and how an agent answers it; without the ids. */
extern const char initialize_request[];
extern const char initialize_result[];

/* Waits by turning the loop. */
void wait_ms(struct fixture *fixture, int ms);

#define RELAY_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

#endif
