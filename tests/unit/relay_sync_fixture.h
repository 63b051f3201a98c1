/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_RELAY_SYNC_FIXTURE_H
#define TESTS_UNIT_RELAY_SYNC_FIXTURE_H

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/dir_transport.h"
#include "tests/unit/relay_fixture.h"

/* A workspace "w" and its runtime root "r/FOLDER/w", with a sync that the test can hold up. */
static char folder[64];
static char workspace[96];
static char runtime[200];
static char prefix[96];
static char state_folder[96];

static inline int set_up_sync(void **state)
{
	set_up(state);
	struct fixture *fixture = *state;
	char command[512];
	snprintf(folder, sizeof(folder), "/tmp/test-relay-sync-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(workspace, sizeof(workspace), "%s/w", folder);
	snprintf(prefix, sizeof(prefix), "%s/r", folder);
	snprintf(runtime, sizeof(runtime), "%s%s", prefix, workspace);
	snprintf(state_folder, sizeof(state_folder), "%s/state", folder);
	snprintf(command, sizeof(command), "mkdir -p %s %s", workspace, runtime);
	assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): of the test's own
	dir_transport_hooks = (struct dir_transport_hooks){0};
	fixture->pool = pool_create(fixture->stage.loop);
	fixture->state_folder = state_folder;
	fixture->stage.runtime = prefix;
	fixture->stage.capabilities.isolated = true;
	fixture->stage.capabilities.maps_paths = true;
	struct profile *profile = profile_of(fixture);
	profile->toolhost = TOOLHOST_EDITOR;
	profile->sync.mode = SYNC_MODE_TURN;
	profile->sync.persistence = PERSISTENCE_REUSE;
	profile->sync.create_transport = dir_transport_create;
	return 0;
}

static inline int tear_down_sync(void **state)
{
	char command[128];
	int result = tear_down(state);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): of the test's own
	return result;
}

static inline void write_file(const char *where, const char *name, const char *text)
{
	char path[300];
	snprintf(path, sizeof(path), "%s/%s", where, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static inline void ask_for_session(struct fixture *fixture)
{
	editor_says(fixture, "'id':'new','method':'session/new','params':{'cwd':'%s'}", workspace);
}

static inline void give_session(struct fixture *fixture)
{
	agent_hears(fixture, 0, "'id':1,'method':'session/new','params':{'cwd':'%s'}", runtime);
	agent_says(fixture, 0, "'id':1,'result':{'sessionId':'s'}");
	editor_hears(fixture, "'id':'new','result':{'sessionId':'s'}");
}

static inline void begin_synced(struct fixture *fixture)
{
	begin_greeted(fixture);
	ask_for_session(fixture);
	give_session(fixture);
}

static inline void wait_held(struct fixture *fixture)
{
	while (!dir_transport_hooks.held) {
		stage_wait_turn(&fixture->stage);
	}
}

static inline void let_go(struct fixture *fixture)
{
	dir_transport_hooks.holds = false;
	dir_transport_release();
	stage_settle(&fixture->stage);
}

static inline void prompt(struct fixture *fixture, const char *id)
{
	editor_says(fixture, "'id':%s,'method':'session/prompt','params':{'sessionId':'s'}", id);
}

static inline void agent_hears_prompt(struct fixture *fixture, int id)
{
	agent_hears(fixture, 0, "'id':%d,'method':'session/prompt','params':{'sessionId':'s'}", id);
}

/* A prompt that waits for its sync. */
static inline void hold_prompt(struct fixture *fixture, const char *id)
{
	dir_transport_hooks.holds = true;
	prompt(fixture, id);
	wait_held(fixture);
	agent_hears_nothing(fixture, 0);
}

/* A prompt's answer that waits for its sync. */
static inline void hold_answer(struct fixture *fixture)
{
	prompt(fixture, "7");
	agent_hears_prompt(fixture, 2);
	dir_transport_hooks.holds = true;
	agent_says(fixture, 0, "'id':2,'result':{'stopReason':'end_turn'}");
	wait_held(fixture);
	editor_hears_nothing(fixture);
}

#define SYNC_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_sync, tear_down_sync)

#endif
