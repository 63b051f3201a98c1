/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_TRANSPORT_FIXTURE_H
#define TESTS_UNIT_TRANSPORT_FIXTURE_H

#include "providers/provider.h"
#include "sync/transport.h"
#include "tests/unit/store_fixture.h"

/*
 * A store, a local work tree and a runtime root in a distant sandbox, whose bytes come late and in
 * small pieces. The sandbox uses the real git, which it finds by its PATH; the PATH begins with a
 * folder that is empty at first.
 */
struct stage {
	struct place *place;
	struct ev_loop *loop;
	struct provider_context context;
	struct provider *provider;
	struct settings settings;
	struct sandbox *sandbox;
	const char *root;            // the runtime's
	char bin[FIXTURE_PATH_MAX];  // before all others in the sandbox's PATH
	char path[FIXTURE_PATH_MAX]; // PATH=...
	const char *environment[4];
	struct transport_tools tools;
	struct transport_request request;
	transport_create *create; // by git, unless a test changes it
	struct transport *transport;
	bool is_done, failed;
	struct error err;
	struct transport_collected collected;
	struct transport_delivered delivered;
	char stuck[1024]; // the paths that were in the way, a line each
};

int stage_group_setup(void **state);
int stage_group_teardown(void **state);
int stage_setup(void **state); // *state is a struct stage
/* The same by rsync. The test's main has to begin with rsync_shell_main. */
int stage_setup_rsync(void **state);
int stage_teardown(void **state);

/* Creates the transport again, as another run of the broker would. */
void stage_restart(struct stage *stage);

/* For the ends of operations that a test begins itself; the data is the stage. */
void stage_on_done(void *data, const struct error *err);
void stage_on_collected(
	void *data, const struct transport_collected *collected, const struct error *err);
void stage_on_delivered(
	void *data, const struct transport_delivered *delivered, const struct error *err);

/* Runs the loop until the operation that was begun has ended. */
void stage_wait(struct stage *stage);
/* Run an operation to its end; it must succeed. */
void stage_prepare(struct stage *stage);
git_oid stage_collect(struct stage *stage, const git_oid *base);
void stage_deliver(struct stage *stage, const git_oid *from, const git_oid *to);
/* A script that makes unusual names, links and modes. */
extern const char stage_awkward[];
/* Makes the workspace by the script, delivers it to an empty root, and returns its tree. */
git_oid stage_send_first(struct stage *stage, const char *script);
/* Run an operation that must fail in this way; NULL: with any reason, or any text. */
void stage_collect_fails(
	struct stage *stage, const git_oid *base, enum error_code code, const char *words);
void stage_deliver_fails(struct stage *stage, const git_oid *from, const git_oid *to,
	enum error_code code, const char *words);

/* Runs a shell script in the runtime's root; it must succeed. The caller owns the returned text. */
void stage_there(struct stage *stage, const char *script);
char *stage_ask(struct stage *stage, const char *script);

/* Expects that both trees are equal, except for .git. */
void stage_assert_equal(struct stage *stage);
void stage_assert_same(const git_oid *a, const git_oid *b);
/* Puts a program of that name before all others in the sandbox's PATH. */
void stage_program(struct stage *stage, const char *name, const char *script);

/*
 * Makes the next script there die instead of its call number `at` of git or mv, the calls that
 * change something. stage_heal ends that; false if there were fewer calls.
 */
void stage_cut(struct stage *stage, int at);
bool stage_heal(struct stage *stage, int at);

#endif
