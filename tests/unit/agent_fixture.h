/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_AGENT_FIXTURE_H
#define TESTS_UNIT_AGENT_FIXTURE_H

#include "tests/unit/stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acp/places.h"
#include "base/fd.h"
#include "broker/agent/agent.h"
#include "tests/support/facts.h"

enum { TOLD_MAX = 4096 };

/*
 * An agent on a stage, and the events that it raised, one word each: "ready frame:{} down gone ".
 */
struct fixture {
	struct stage stage;
	struct json_places *places;
	struct agent *agent;
	char told[TOLD_MAX];
	char code[64]; // of the failure that down was told with
	char step[32];
	char message[ERROR_TEXT_MAX];
	char detail[AGENT_STDERR_TAIL + 1];
	int refuse; // how many frames are refused yet
	int exits;
	bool is_down;
	bool is_gone;
};

static inline void tell(struct fixture *fixture, const char *format, ...) ATTR_PRINTF(2, 3);

static inline void tell(struct fixture *fixture, const char *format, ...)
{
	size_t len = strlen(fixture->told);
	va_list args;
	va_start(args, format);
	vsnprintf(fixture->told + len, TOLD_MAX - len, format, args);
	va_end(args);
}

static inline void assert_told(struct fixture *fixture, const char *expected)
{
	assert_string_equal(fixture->told, expected);
	fixture->told[0] = '\0';
}

static inline bool on_frame(void *data, const struct frame *frame)
{
	struct fixture *fixture = data;
	bool ok = fixture->refuse-- <= 0;
	tell(fixture, "%s:%.*s ", ok ? "frame" : "refused", (int)frame->bytes.len,
		frame->bytes.data);
	return ok;
}

static inline void on_drained(void *data)
{
	tell(data, "drained ");
}

static inline void on_ready(void *data)
{
	tell(data, "ready ");
}

static inline void on_exited(void *data)
{
	struct fixture *fixture = data;
	fixture->exits++;
	assert_true(agent_has_exited(fixture->agent));
	assert_false(fixture->is_down);
}

static inline void on_down(void *data, const struct error *failure)
{
	struct fixture *fixture = data;
	tell(fixture, "down ");
	snprintf(fixture->code, sizeof(fixture->code), "%s", failure_code_of(failure));
	snprintf(fixture->step, sizeof(fixture->step), "%s", failure->stage);
	snprintf(fixture->message, sizeof(fixture->message), "%s", failure->text);
	snprintf(fixture->detail, sizeof(fixture->detail), "%.*s", (int)failure->detail.len,
		failure->detail.len > 0 ? failure->detail.data : "");
	fixture->is_down = true;
	assert_true(agent_is_down(fixture->agent));
}

static inline void on_gone(void *data)
{
	struct fixture *fixture = data;
	tell(fixture, "gone ");
	fixture->is_gone = true;
}

/* Nobody reads slowly here. */
static uint64_t count_taken(void *data)
{
	return 0;
}

static const struct agent_listener listener = {
	.count_taken = count_taken,
	.on_frame = on_frame,
	.on_drained = on_drained,
	.on_ready = on_ready,
	.on_exited = on_exited,
	.on_down = on_down,
	.on_gone = on_gone,
};

static inline struct profile *profile_of(struct fixture *fixture)
{
	return &fixture->stage.config.profile;
}

static inline int set_up(void **state)
{
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	stage_init(&fixture->stage);
	fixture->places = places_create();
	*state = fixture;
	return 0;
}

static inline int tear_down(void **state)
{
	struct fixture *fixture = *state;
	agent_destroy(fixture->agent);
	stage_finish(&fixture->stage);
	json_places_destroy(fixture->places);
	free(fixture);
	return 0;
}

static inline void create(struct fixture *fixture)
{
	struct agent_config config = {
		.loop = fixture->stage.loop,
		.provider = &fixture->stage.provider,
		.profile = profile_of(fixture),
		.places = fixture->places,
		.listener = &listener,
		.data = fixture,
	};
	fixture->agent = agent_create(&config);
	assert_told(fixture, ""); // never at once
}

/* Creates it and lets it start. */
static inline struct actor *start(struct fixture *fixture)
{
	create(fixture);
	stage_settle(&fixture->stage);
	assert_told(fixture, "ready ");
	return fixture->stage.actors[0];
}

static inline void send_text(struct fixture *fixture, const char *text)
{
	link_send(agent_link(fixture->agent), span_of(text));
}

static inline void assert_down(
	const struct fixture *fixture, const char *code, const char *step, const char *facts)
{
	assert_names(fixture->message, facts);
	assert_string_equal(fixture->code, code);
	assert_string_equal(fixture->step, step);
}

#define AGENT_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

#endif
