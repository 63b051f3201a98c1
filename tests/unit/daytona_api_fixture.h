/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_DAYTONA_API_FIXTURE_H
#define TESTS_UNIT_DAYTONA_API_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "providers/daytona/api.h"
#include "tests/unit/daytona_server_fixture.h"

/* An API whose server is the test's own, and the outcome of the last call. */

#define KEY "dtn_0123456789abcdef0123456789abcdef"

extern struct ev_loop *loop;
extern struct daytona_api *api;
extern struct daytona_api_config config; // a test changes it, then api_again

struct outcome {
	int count; // dones raised
	bool has_failed;
	struct error err;
	struct daytona_sandbox sandbox; // its texts are copies, which live to the test's end
	struct daytona_access access;
	int listed;
	char ids[512]; // of the listed sandboxes, with spaces between
	bool cancels;  // in on_sandbox
	bool destroys; // the API, in done or on_sandbox
	struct daytona_call *call;
};
extern struct outcome outcome;

int api_setup(void **state);
int api_teardown(void **state);
void api_again(void); // with the configuration as it is now

void ask(void);          // for the sandbox "p1"; forgets the earlier outcome
void create_one(void);   // the same with a create
void will_sandbox(void); // the next answer of the server

daytona_sandbox_done on_told;
daytona_access_done on_told_access;
daytona_done on_told_done;
extern const struct daytona_list_listener on_listed;

void wait_done(void);                                      // until outcome.count is 1
void wait_requests(size_t count);                          // until the server has got this many
void loop_for_ms(long long ms);                            // turns
void expect_done(void);                                    // waits, and expects no error
void expect_failed(const char *reason, const char *facts); // waits, and expects an error with both

/* A sandbox in the service's JSON, with this id and state. */
const char *sandbox_text(const char *id, const char *state);

/* Expects these words in a request's text. */
void assert_has(const char *text, const char *words);
void assert_has_not(const char *text, const char *words);

#endif
