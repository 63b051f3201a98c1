/* SPDX-License-Identifier: MIT */
#ifndef TESTS_TOOLHOST_FIXTURE_H
#define TESTS_TOOLHOST_FIXTURE_H

/*
 * A ToolHost on a real sandbox, which tests ask as an agent does. Unit tests give it a sandbox of
 * its own; the conformance table gives it an existing one. Include this file first.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "acp/message.h"
#include "base/json_doc.h"
#include "broker/toolhost/toolhost.h"
#include "tests/support/fake/fake.h"

enum { FIXTURE_DEADLINE_MS = 60000, FIXTURE_ANSWERS_MAX = 4096, FIXTURE_UPDATES_MAX = 4096 };

/* The answer to one call. */
struct answer {
	bool is_there;
	bool is_failure;
	const char *code; // of a failure
	char *text;       // the result, or the failure's message; owned
	char *detail;     // owned
};

/* One message to the editor. */
struct update {
	double at; // ev_now
	char *text;
	struct json_doc *doc;
};

struct toolhost_fixture {
	struct ev_loop *loop;
	struct spawner *spawner;
	struct provider_context context;
	bool is_fake;
	bool editor_shows_terminals;
	const char *agent_name;
	struct toolhost_limits limits;

	char folder[64]; // everything; removed at the end
	char root[128];  // folder/root: the session's cwd, as the editor knows it
	char files[256]; // the same, where the sandbox's files are
	const char *roots[4];
	const char *session;
	const char *resolved; // the path that policy decided about; NULL: none
	struct provider *provider;
	struct settings settings;
	struct sandbox *sandbox;
	struct path_map map;
	struct toolhost *toolhost;
	struct json_places *places;
	int fd_count;

	int last_id;
	int answer_count;
	struct answer answers[FIXTURE_ANSWERS_MAX];
	int update_count;
	struct update updates[FIXTURE_UPDATES_MAX];
	bool editor_is_slow; // takes no update
	bool agent_is_slow;  // is to be given nothing long
	bool may_be_lost;    // the sandbox may be lost
	bool is_inside;      // in toolhost_call, which may raise nothing
};

extern struct toolhost_fixture fixture;

/* ---- before and after a test ---- */

int fixture_set_up(void **state); // on the local provider
int fixture_tear_down(void **state);
int fixture_set_up_fake(void **state); // on a slow one with roots elsewhere
int fixture_tear_down_fake(void **state);

/*
 * Begins on an existing sandbox, which outlives the fixture, with the session s1 in all its roots.
 * The members about this machine (folder, root, files) are not set then.
 */
void fixture_begin(struct ev_loop *loop, struct sandbox *sandbox);
void fixture_end(void);

#define ON_LOCAL(test) cmocka_unit_test_setup_teardown(test, fixture_set_up, fixture_tear_down)
#define ON_FAKE(test)                                                                              \
	cmocka_unit_test_setup_teardown(test, fixture_set_up_fake, fixture_tear_down_fake)

/* Creates the ToolHost again, with the fixture's present settings. */
void fixture_open(void);

/* A further root of the sandbox; returns its name in there. */
const char *fixture_add_root(const char *path);

/* Runs the tests with a loop, a spawner and a pool; returns the status for main. */
int fixture_run(const struct CMUnitTest *tests, size_t count);

/* ---- the loop ---- */

/* Runs the loop until `holds` returns true, or until the time has passed. */
bool fixture_turn(bool (*holds)(const void *data), const void *data, int ms);
void fixture_run_for(int ms);

/* ---- asking ---- */

/* Hands over a message as the relay would; the message is valid until `use` returns. */
void fixture_with_message(
	const char *text, void (*use)(const struct message *message, void *data), void *data);

/*
 * Sends a request; `params` is the text inside the braces, without the session. Returns the call's
 * id.
 */
int ask_text(const char *method, const char *params);
int ask(const char *method, const char *format, ...) ATTR_PRINTF(2, 3);

/* Waits for the answer of a call; borrowed. */
const struct answer *wait_for(int id);
const char *result_of(int id);
void expect_result(int id, const char *result);

/* Expects that the call fails with this code and a message that has these words. */
const struct answer *expect_failure(int id, const char *code, const char *facts);

/* A member of a result, decoded; valid until the next call. */
const char *member_of(int id, const char *path);

/* ---- terminals ---- */

/* Runs a shell line; returns the terminal's id, valid until the fourth call after it. */
const char *terminal_open(const char *command);

/* Sends terminal/METHOD for a terminal; returns the call's id. */
int terminal_ask(const char *method, const char *id);

/* Asks for the output until it has these words; returns the last output, valid as for member_of. */
const char *terminal_wait_output(const char *id, const char *words);

/* ---- the sandbox's files, from outside ---- */

/* A path below the root, on this machine; valid until the fourth call after it. */
const char *local_path(const char *name);

void put_file(const char *name, const void *bytes, size_t len);
void put_text_file(const char *name, const char *text);
char *get_file(const char *name); // owned by the caller; NULL where it is missing

#endif
