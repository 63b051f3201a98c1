/* SPDX-License-Identifier: MIT */
#ifndef TESTS_DISPLAY_FIXTURE_H
#define TESTS_DISPLAY_FIXTURE_H

/*
 * The messages in which an agent shows terminals, and the updates that the editor gets. Include it
 * first.
 */
#include "tests/support/toolhost/fixture.h"

#define UPDATE(members)                                                                            \
	"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s1\","     \
	"\"update\":{" members "}}}"
#define TERMINAL(id) "{\"type\":\"terminal\",\"terminalId\":\"" id "\"}"
#define TEXT(text) "{\"type\":\"content\",\"content\":{\"type\":\"text\",\"text\":\"" text "\"}}"

/* Commands wait for these. */
#define UNTIL_GO "while ! [ -e go ]; do sleep 0.01; done; "
#define UNTIL_END "while ! [ -e end ]; do sleep 0.01; done; "
void let_go(void);
void let_end(void);

/* term-1 in the tool call t1. */
extern const char call_of_one[];
extern const char update_of_one[];

/*
 * The message that is sent instead of this one, after another edit: `replaced` becomes `with`; both
 * may be NULL. Valid until the next call.
 */
const char *edited(const char *message, const char *replaced, const char *with);

/* Creates term-1, term-2, …; waits for the end of one. */
void create(const char *command);
void finish(const char *id);

/* ---- what the editor is told ---- */

/* The next unseen update; owned by the fixture. */
const struct update *next_update(int *seen);
const struct update *last_update(void);
void expect_no_more(int seen);

/* A string of an update, and the text of an item of its content; valid until the next call. */
const char *update_string(const struct update *update, const char *path);
const char *item_text(const struct update *update, int index);

/* Everything that terminal_output has sent for a terminal; valid until the next call. */
const char *all_told(const char *id);
void wait_for_told_exit(const char *id);

#endif
