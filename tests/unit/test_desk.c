/* SPDX-License-Identifier: MIT */
#include "broker/desk/desk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "broker/desk/parcel.h"

/* What the editor and the owners were told, in order. */
static char told[512];

static void tell(const char *format, ...) ATTR_PRINTF(1, 2);
static void tell(const char *format, ...)
{
	size_t len = strlen(told);
	va_list args;
	va_start(args, format);
	vsnprintf(told + len, sizeof(told) - len, format, args);
	va_end(args);
}

/* Messages of an agent have an "a" in front. */
static void tell_of(const struct asker *asker)
{
	tell("%s%.*s ", asker->sender ? "a" : "", (int)asker->id.len, asker->id.data);
}

static void fail_request(void *data, const struct asker *asker, const struct error *with)
{
	tell_of(asker);
	tell("%s;", failure_code_of(with));
}

static void answer_request(void *data, struct span id, struct span result)
{
	tell("%.*s %.*s;", (int)id.len, id.data, (int)result.len, result.data);
}

static void cancel_request(void *data, const struct asker *asker)
{
	tell_of(asker);
	tell("cancelled;");
}

/* An owner that knows more about its waiting messages. */
struct owner {
	struct waiting waiting;
	const char *name;
};

static void owner_free(struct waiting *waiting)
{
	struct owner *owner = CONTAINER_OF(waiting, struct owner, waiting);
	desk_drop(waiting);
	free(owner);
}

static void on_left(struct waiting *waiting, const struct error *failure)
{
	tell("%s left;", CONTAINER_OF(waiting, struct owner, waiting)->name);
	owner_free(waiting);
}

static void on_gone(struct waiting *waiting)
{
	tell("%s gone;", CONTAINER_OF(waiting, struct owner, waiting)->name);
	owner_free(waiting);
}

static void on_cancelled(struct peer *peer)
{
	tell("next;");
}

/* Takes the cancel of a message with the id 3, and records that. */
static bool takes_cancel(struct waiting *waiting)
{
	bool is_it = strcmp(waiting->id, "3") == 0;
	tell(is_it ? "taken;" : "not taken;");
	return is_it;
}

static bool is_prompt(const struct call *call)
{
	return call->message.kind != MESSAGE_RESPONSE &&
	       strcmp(call->message.method, "session/prompt") == 0;
}

static const struct desk_ops ops = {fail_request, answer_request, cancel_request, is_prompt};
static const struct stage_row rows[STAGES] = {
	[STAGE_ORDER] = {"session", "requests", "others", .is_turn = false},
	[STAGE_CLAIM] = {"session", "requests", "records", .on_left = on_left, .on_gone = on_gone},
	[STAGE_RESTORE] = {"session", "requests", "its agent", .is_turn = true},
	[STAGE_READY] = {"prepare", "messages", "the sandbox", .outlasts = true},
	[STAGE_LINKS] = {"session", "requests", "links", .most = 4 * PARCEL_OVERHEAD,
		.outlasts = true, .on_cancelled = on_cancelled},
	[STAGE_USER] = {"session", "requests", "a person", .outlasts = true,
		.takes_cancel = takes_cancel},
};
static const struct error failure = {
	.code = ERROR_UNAVAILABLE, .reason = "GONE", .stage = "session", .text = "it is gone"};

static struct json_places *places;
static struct frame_reader *reader;
static struct desk desk;
static char names[2];
static struct peer *const peers[] = {
	(struct peer *)(void *)&names[0], (struct peer *)(void *)&names[1]}; // only compared

static int set_up(void **state)
{
	told[0] = '\0';
	places = places_create();
	reader = frame_reader_create(places, 4096);
	desk_init(&desk, rows, places, &ops, NULL);
	return 0;
}

static int tear_down(void **state)
{
	for (int stage = 0; stage < STAGES; stage++) {
		assert_int_equal(desk.bytes[stage], 0);
	}
	assert_false(desk_has(&desk, (struct desk_pick){.stage = STAGE_NONE}));
	frame_reader_destroy(reader);
	json_places_destroy(places);
	return 0;
}

/* A call as the editor sends it: the members of a message, with ' for ". */
static struct call call_of(const char *members)
{
	static struct frame frame;
	char text[256];
	size_t room;
	struct error err;
	struct call call = {.from = reader, .frame = &frame};
	snprintf(text, sizeof(text), "{'jsonrpc':'2.0',%s}\n", members);
	for (char *at = text; *at; at++) {
		*at = *at == '\'' ? '"' : *at;
	}
	char *space = frame_reader_space(reader, &room);
	assert_true(room >= strlen(text));
	memcpy(space, text, strlen(text));
	frame_reader_fed(reader, strlen(text));
	assert_true(frame_reader_next(reader, &frame));
	assert_true(message_read(&call.message, &frame, &err));
	return call;
}

static struct waiting *hold(enum desk_stage stage, struct peer *peer, const char *members)
{
	struct call call = call_of(members);
	return desk_hold(&desk, NULL, stage, peer, &call);
}

static struct waiting *hold_agents(enum desk_stage stage, struct peer *peer, const char *members)
{
	struct call call = call_of(members);
	call.sender = peer;
	return desk_hold(&desk, NULL, stage, peer, &call);
}

static struct waiting *hold_owned(const char *name, const char *members)
{
	struct call call = call_of(members);
	struct owner *owner = calloc(1, sizeof(*owner));
	owner->name = name;
	return desk_hold(&desk, &owner->waiting, STAGE_CLAIM, NULL, &call);
}

#define PROMPT(id, session)                                                                        \
	"'id':" id ",'method':'session/prompt','params':{'sessionId':'" session "'}"
#define OTHER(id, session) "'id':" id ",'method':'m','params':{'sessionId':'" session "'}"
#define NOTE(session) "'method':'n','params':{'sessionId':'" session "'}"

static void test_what_waits_is_found_by_its_stage_its_agent_and_its_session(void **state)
{
	struct waiting *first = hold(STAGE_READY, peers[0], OTHER("1", "s"));
	struct waiting *second = hold(STAGE_READY, peers[1], PROMPT("2", "t"));
	hold(STAGE_ORDER, NULL, NOTE("s"));
	assert_ptr_equal(desk_first(&desk, (struct desk_pick){STAGE_READY, NULL, NULL}), first);
	assert_ptr_equal(
		desk_first(&desk, (struct desk_pick){STAGE_READY, peers[1], NULL}), second);
	assert_ptr_equal(desk_first(&desk, (struct desk_pick){STAGE_READY, NULL, "t"}), second);
	assert_ptr_equal(desk_first_prompt(&desk, (struct desk_pick){.stage = STAGE_NONE}), second);
	assert_null(desk_first(&desk, (struct desk_pick){STAGE_READY, peers[0], "t"}));
	assert_null(desk_first(&desk, (struct desk_pick){STAGE_MODE, NULL, NULL}));
	assert_true(desk_has(&desk, (struct desk_pick){STAGE_ORDER, NULL, "s"}));
	assert_int_equal(desk_load(&desk, (struct desk_pick){STAGE_READY, NULL, NULL}).count, 2);
	assert_int_equal(desk_load(&desk, (struct desk_pick){STAGE_READY, NULL, NULL}).bytes,
		desk.bytes[STAGE_READY]);
	assert_int_equal(desk_load(&desk, (struct desk_pick){STAGE_ORDER, NULL, "s"}).count, 1);
	assert_int_equal(desk_load(&desk, (struct desk_pick){STAGE_ORDER, NULL, "t"}).bytes, 0);
	desk_forget(&desk, (struct desk_pick){.stage = STAGE_NONE});
	assert_string_equal(told, "");
}

static void test_it_goes_on_and_says_where_it_has_waited(void **state)
{
	struct call call;
	hold(STAGE_READY, peers[0], OTHER("1", "s"));
	struct waiting *waiting = hold(STAGE_ORDER, NULL, PROMPT("2", "t"));
	assert_true(desk.bytes[STAGE_ORDER] > 0);
	assert_true(desk_open(waiting, &call));
	assert_int_equal(desk.bytes[STAGE_ORDER], 0);
	assert_int_equal(call.came_from, STAGE_ORDER);
	assert_true(call_is_new(&call));
	assert_string_equal(call.message.method, "session/prompt");
	assert_int_equal(call.edits->count, 0);
	assert_false(desk_cancel_request(&desk, NULL, SPAN_LITERAL("2"))); // it does not wait
	desk_drop(waiting);
	waiting = desk_first(&desk, (struct desk_pick){STAGE_READY, NULL, NULL});
	assert_true(desk_open(waiting, &call));
	assert_false(call_is_new(&call));
	desk_drop(waiting);
}

static void test_it_keeps_its_method(void **state)
{
	static const char row = 0;
	struct call call = call_of(OTHER("1", "s"));
	call.method = (const void *)&row;
	struct waiting *waiting = desk_hold(&desk, NULL, STAGE_ORDER, NULL, &call);
	desk_move(waiting, STAGE_READY, NULL);
	waiting = desk_first(&desk, (struct desk_pick){STAGE_READY, NULL, NULL});
	assert_true(desk_open(waiting, &call));
	assert_ptr_equal(call.method, &row);
	desk_drop(waiting);
}

static void test_it_may_move_on_to_another_stage(void **state)
{
	struct waiting *waiting = hold_owned("a", OTHER("1", "s"));
	size_t bytes = desk.bytes[STAGE_CLAIM];
	desk_move(waiting, STAGE_READY, peers[1]);
	owner_free(waiting);
	assert_int_equal(desk.bytes[STAGE_CLAIM], 0);
	assert_int_equal(desk.bytes[STAGE_READY], bytes);
	assert_true(desk_has(&desk, (struct desk_pick){STAGE_READY, peers[1], "s"}));
	assert_true(desk_cancel_request(&desk, NULL, SPAN_LITERAL("1")));
	assert_string_equal(told, "1 cancelled;");
}

static void test_it_goes_on_without_its_owner(void **state)
{
	struct call call;
	struct waiting *waiting = hold_owned("a", OTHER("'x'", "s"));
	struct waiting *own = desk_detach(waiting);
	owner_free(waiting);
	assert_true(desk_open(own, &call));
	assert_true(span_is(call.message.id, "\"x\""));
	assert_int_equal(call.came_from, STAGE_CLAIM);
	desk_drop(own);
}

static void test_a_request_is_cancelled_wherever_it_waits(void **state)
{
	hold(STAGE_ORDER, NULL, PROMPT("1", "s"));
	hold(STAGE_RESTORE, NULL, PROMPT("2", "s"));
	hold(STAGE_RESTORE, NULL, OTHER("3", "s"));
	hold(STAGE_READY, peers[0], OTHER("'4'", "s"));
	hold_owned("a", OTHER("5", "s"));
	static const char *const ids[] = {"1", "2", "3", "\"4\"", "5"};
	for (size_t i = 0; i < ARRAY_LENGTH(ids); i++) {
		assert_true(desk_cancel_request(&desk, NULL, span_of(ids[i])));
		assert_false(desk_cancel_request(&desk, NULL, span_of(ids[i])));
	}
	assert_string_equal(told, "1 cancelled;2 {\"stopReason\":\"cancelled\"};3 cancelled;"
				  "\"4\" cancelled;a left;5 cancelled;");
}

static void test_the_prompts_of_a_session_are_cancelled_as_turns(void **state)
{
	hold(STAGE_ORDER, NULL, PROMPT("1", "s"));
	hold(STAGE_ORDER, NULL, OTHER("2", "s"));
	hold(STAGE_ORDER, NULL, PROMPT("3", "t"));
	assert_true(desk_cancel_prompts(&desk, (struct desk_pick){STAGE_ORDER, NULL, "s"}));
	assert_false(desk_cancel_prompts(&desk, (struct desk_pick){STAGE_ORDER, NULL, "s"}));
	assert_string_equal(told, "1 {\"stopReason\":\"cancelled\"};");
	desk_forget(&desk, (struct desk_pick){.stage = STAGE_NONE});
}

static void test_what_an_agent_leaves_behind_fails(void **state)
{
	hold(STAGE_READY, peers[0], OTHER("1", "s"));
	hold(STAGE_READY, peers[0], NOTE("s"));
	hold(STAGE_READY, peers[1], OTHER("2", "s"));
	desk_fail_all(&desk, (struct desk_pick){STAGE_READY, peers[0], NULL}, &failure);
	assert_string_equal(told, "1 GONE;");
	desk_fail(desk_first(&desk, (struct desk_pick){.stage = STAGE_NONE}), &failure);
	assert_string_equal(told, "1 GONE;2 GONE;");
}

static void test_the_end_answers_what_does_not_outlast_it(void **state)
{
	hold(STAGE_READY, peers[0], OTHER("1", "s"));
	hold(STAGE_RESTORE, NULL, PROMPT("2", "s"));
	hold(STAGE_RESTORE, NULL, OTHER("3", "s"));
	hold_owned("a", OTHER("4", "s"));
	hold(STAGE_ORDER, NULL, PROMPT("5", "s"));
	hold(STAGE_ORDER, NULL, NOTE("s"));
	desk_end(&desk, &failure);
	assert_string_equal(told, "5 GONE;a left;4 GONE;2 {\"stopReason\":\"cancelled\"};3 GONE;");
	hold_owned("b", OTHER("6", "s"));
	desk_forget(&desk, (struct desk_pick){.stage = STAGE_NONE});
	assert_string_equal(strrchr(told, ';') - 6, "b gone;");
}

/* ---- messages of agents ---- */

static void test_each_sender_has_ids_of_its_own(void **state)
{
	struct call call;
	struct waiting *waiting = hold_agents(STAGE_READY, peers[0], OTHER("1", "s"));
	hold_agents(STAGE_LINKS, peers[1], OTHER("1", "s"));
	hold(STAGE_LINKS, peers[1], OTHER("2", "s")); // an inquiry of the editor's
	assert_false(desk_cancel_request(&desk, NULL, SPAN_LITERAL("1")));
	assert_false(desk_cancel_request(&desk, peers[1], SPAN_LITERAL("2")));
	assert_true(desk_cancel_request(&desk, peers[1], SPAN_LITERAL("1")));
	assert_false(desk_cancel_request(&desk, peers[1], SPAN_LITERAL("1")));
	assert_true(desk_cancel_request(&desk, NULL, SPAN_LITERAL("2")));
	assert_string_equal(told, "a1 cancelled;next;2 cancelled;next;");
	assert_true(desk_open(waiting, &call));
	assert_ptr_equal(call.sender, peers[0]);
	desk_drop(waiting);
}

static void test_a_cancel_may_be_the_owners(void **state)
{
	hold_agents(STAGE_USER, peers[0], OTHER("3", "s"));
	hold_agents(STAGE_USER, peers[0], OTHER("4", "s"));
	assert_true(desk_cancel_request(&desk, peers[0], SPAN_LITERAL("3")));
	assert_false(desk_cancel_request(&desk, peers[0], SPAN_LITERAL("4")));
	assert_string_equal(told, "taken;not taken;");
	desk_fail_all(&desk, (struct desk_pick){STAGE_USER, peers[0], NULL}, &failure);
	assert_string_equal(told, "taken;not taken;a3 GONE;a4 GONE;");
}

static void test_an_answer_has_no_id_to_be_cancelled_by(void **state)
{
	struct call call;
	struct waiting *waiting = hold_agents(STAGE_READY, peers[0], "'id':5,'result':{}");
	assert_false(desk_cancel_request(&desk, peers[0], SPAN_LITERAL("5")));
	assert_false(desk_cancel_request(&desk, NULL, SPAN_LITERAL("5")));
	assert_true(desk_open(waiting, &call));
	assert_int_equal(call.message.kind, MESSAGE_RESPONSE);
	desk_drop(waiting);
	assert_string_equal(told, "");
}

/* ---- limits, and what cannot be read ---- */

static void test_a_stage_has_room_for_so_many_bytes(void **state)
{
	struct call call = call_of(OTHER("1", "s"));
	assert_true(desk_has_room(&desk, STAGE_LINKS, &call));
	size_t size = desk_hold(&desk, NULL, STAGE_LINKS, peers[0], &call)->size;
	while (desk.bytes[STAGE_LINKS] + size <= rows[STAGE_LINKS].most) {
		call = call_of(OTHER("1", "s"));
		assert_true(desk_has_room(&desk, STAGE_LINKS, &call));
		desk_hold(&desk, NULL, STAGE_LINKS, peers[1], &call);
	}
	call = call_of(OTHER("2", "s"));
	call.sender = peers[0];
	assert_false(desk_has_room(&desk, STAGE_LINKS, &call)); // all agents share the room
	struct desk_pick links = {.stage = STAGE_LINKS};
	assert_int_equal(desk_load(&desk, links).count, 3); // short ones take room, too
	desk_refuse(&desk, &call, &failure);
	call = call_of(NOTE("s"));
	desk_refuse(&desk, &call, &failure);
	assert_string_equal(told, "a2 GONE;");
	desk_forget(&desk, (struct desk_pick){.stage = STAGE_NONE});
}

/* As if memory had gone bad: the bytes that were set aside are not a message any more. */
static void spoil(struct waiting *waiting)
{
	struct buf bytes;
	buf_init(&bytes, 64);
	assert_true(buf_append(&bytes, SPAN_LITERAL("{\"jsonrpc\":\"2.0\"}"), NULL));
	parcel_destroy(waiting->parcel);
	waiting->parcel = parcel_of(&bytes, places);
	buf_finish(&bytes);
}

static void test_who_waits_for_what_cannot_be_read_again_is_told_once(void **state)
{
	struct call call;
	struct waiting *waiting = hold(STAGE_READY, peers[0], OTHER("1", "s"));
	spoil(waiting);
	assert_false(desk_open(waiting, &call));
	assert_string_equal(told, "1 SYSTEM_ERROR;");
	desk_drop(waiting);
	waiting = hold_agents(STAGE_LINKS, peers[0], OTHER("2", "s"));
	spoil(waiting);
	assert_false(desk_read(waiting, &call));
	desk_fail_all(&desk, (struct desk_pick){.stage = STAGE_NONE}, &failure);
	assert_string_equal(told, "1 SYSTEM_ERROR;a2 SYSTEM_ERROR;");
	waiting = hold(STAGE_READY, peers[0], NOTE("s"));
	spoil(waiting);
	assert_false(desk_open(waiting, &call));
	desk_drop(waiting);
	assert_string_equal(told, "1 SYSTEM_ERROR;a2 SYSTEM_ERROR;");
}

#define DESK_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(test_what_waits_is_found_by_its_stage_its_agent_and_its_session),
		DESK_TEST(test_it_goes_on_and_says_where_it_has_waited),
		DESK_TEST(test_it_keeps_its_method),
		DESK_TEST(test_it_may_move_on_to_another_stage),
		DESK_TEST(test_it_goes_on_without_its_owner),
		DESK_TEST(test_a_request_is_cancelled_wherever_it_waits),
		DESK_TEST(test_the_prompts_of_a_session_are_cancelled_as_turns),
		DESK_TEST(test_what_an_agent_leaves_behind_fails),
		DESK_TEST(test_the_end_answers_what_does_not_outlast_it),
		DESK_TEST(test_each_sender_has_ids_of_its_own),
		DESK_TEST(test_a_cancel_may_be_the_owners),
		DESK_TEST(test_an_answer_has_no_id_to_be_cancelled_by),
		DESK_TEST(test_a_stage_has_room_for_so_many_bytes),
		DESK_TEST(test_who_waits_for_what_cannot_be_read_again_is_told_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
