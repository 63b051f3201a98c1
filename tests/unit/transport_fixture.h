/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_TRANSPORT_FIXTURE_H
#define TESTS_UNIT_TRANSPORT_FIXTURE_H

#include "providers/provider.h"
#include "sync/transport.h"
#include "tests/unit/store_fixture.h"

/*
 * A store, a local work tree and a runtime root in a sandbox that is far away: late, and in small
 * pieces. What git does there is done by the real one, found by the sandbox's PATH, which
 * begins with a folder that is empty at first.
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

/* Makes the transport anew, as another run of the broker would. */
void stage_restart(struct stage *stage);

/* The ends of operations that a test begins itself; its data is the stage. */
void stage_on_done(void *data, const struct error *err);
void stage_on_collected(
	void *data, const struct transport_collected *collected, const struct error *err);
void stage_on_delivered(
	void *data, const struct transport_delivered *delivered, const struct error *err);

/* Runs the loop until the operation that was begun has ended. */
void stage_wait(struct stage *stage);
/* Operations, waited for; they have to succeed. */
void stage_prepare(struct stage *stage);
git_oid stage_collect(struct stage *stage, const git_oid *base);
void stage_deliver(struct stage *stage, const git_oid *from, const git_oid *to);
/* Makes names, links and modes that are awkward each in their own way. */
extern const char stage_awkward[];
/* The script makes the workspace, which goes to a root that has nothing; its tree. */
git_oid stage_send_first(struct stage *stage, const char *script);
/* They have to fail so; NULL: whatever the reason, the text. */
void stage_collect_fails(
	struct stage *stage, const git_oid *base, enum error_code code, const char *words);
void stage_deliver_fails(struct stage *stage, const git_oid *from, const git_oid *to,
	enum error_code code, const char *words);

/* A shell script in the runtime's root; it must succeed. The text is the caller's. */
void stage_there(struct stage *stage, const char *script);
char *stage_ask(struct stage *stage, const char *script);

/* Both trees are the same but for .git. */
void stage_assert_equal(struct stage *stage);
void stage_assert_same(const git_oid *a, const git_oid *b);
/* Puts a program of that name before all others in the sandbox's PATH. */
void stage_program(struct stage *stage, const char *name, const char *script);

/*
 * The script that runs there next is killed in place of its call `at` of git or mv, which change
 * something. stage_heal ends that; false where there were not as many calls.
 */
void stage_cut(struct stage *stage, int at);
bool stage_heal(struct stage *stage, int at);

#endif
