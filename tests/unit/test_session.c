/* SPDX-License-Identifier: MIT */
#include "broker/session/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "broker/policy/memory.h"
#include "tests/support/facts.h"
#include "tests/unit/subject_fixture.h"

enum { MAX = 300 };

/* The table only compares agents, and never looks into them. */
static char agents[2];
static struct peer *const first = (struct peer *)(void *)&agents[0];
static struct peer *const second = (struct peer *)(void *)&agents[1];

static struct session_table table;

static int set_up(void **state)
{
	session_table_init(&table, MAX);
	return 0;
}

static int tear_down(void **state)
{
	session_table_finish(&table);
	assert_int_equal(table.count, 0);
	return 0;
}

static struct session *take(const char *id, struct peer *peer)
{
	struct error err;
	struct session *session = session_bind(&table, id, peer, &err);
	if (!session) {
		fail_msg("%s: %s", id, err.text);
	}
	return session;
}

static void test_a_bound_session_is_found(void **state)
{
	assert_null(session_find(&table, "s"));
	struct session *session = take("s", first);
	assert_ptr_equal(session_find(&table, "s"), session);
	assert_string_equal(session->id, "s");
	assert_ptr_equal(session->peer, first);
	assert_int_equal(session->prompts, 0);
	assert_null(session->roots);
	assert_null(session_find(&table, "S"));
	assert_null(session_find(&table, ""));
}

static void test_many_sessions_are_told_apart(void **state)
{
	char id[16];
	for (int i = 0; i < MAX; i++) {
		snprintf(id, sizeof(id), "s%d", i);
		take(id, i % 2 ? first : second);
	}
	assert_int_equal(table.count, MAX);
	for (int i = 0; i < MAX; i++) {
		snprintf(id, sizeof(id), "s%d", i);
		struct session *session = session_find(&table, id);
		assert_non_null(session);
		assert_string_equal(session->id, id);
		assert_ptr_equal(session->peer, i % 2 ? first : second);
	}
}

static void test_binding_again_keeps_the_session(void **state)
{
	struct session *session = take("s", first);
	session->prompts = 2;
	assert_ptr_equal(take("s", first), session);
	assert_int_equal(session->prompts, 2);
	assert_int_equal(table.count, 1);
}

static void test_a_session_of_another_living_agent_is_a_conflict(void **state)
{
	struct error err;
	take("s \"1\"", first);
	assert_null(session_bind(&table, "s \"1\"", second, &err));
	assert_int_equal(err.code, ERROR_DENIED);
	assert_string_equal(err.reason, "SESSION_CONFLICT");
	assert_non_null(strstr(err.text, "\"s \"1\"\" belongs to another agent"));
	assert_ptr_equal(session_find(&table, "s \"1\"")->peer, first);
}

static void test_an_agents_end_leaves_its_sessions_to_nobody(void **state)
{
	take("mine", first)->prompts = 3;
	take("other", second)->prompts = 1;
	session_table_orphan(&table, first);
	assert_null(session_find(&table, "mine")->peer);
	assert_int_equal(session_find(&table, "mine")->prompts, 0);
	assert_ptr_equal(session_find(&table, "other")->peer, second);
	assert_int_equal(session_find(&table, "other")->prompts, 1);
	assert_ptr_equal(take("mine", second)->peer, second); // the next agent has loaded it
	assert_int_equal(table.count, 2);
}

static void test_a_full_table_takes_only_what_it_knows(void **state)
{
	struct error err;
	char id[16];
	for (int i = 0; i < MAX; i++) {
		snprintf(id, sizeof(id), "s%d", i);
		take(id, first);
	}
	assert_null(session_bind(&table, "one more", first, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_string_equal(err.reason, "RESOURCE_LIMIT_EXCEEDED");
	assert_names(err.text, "300 sessions | max-sessions");
	take("s7", first);
	session_forget(&table, session_find(&table, "s7"));
	assert_null(session_find(&table, "s7"));
	take("one more", first);
}

static void count_forgotten(void *data, const struct session *session)
{
	int *told = data;
	assert_ptr_equal(session_find(&table, session->id), session); // it is there yet
	(*told)++;
}

static void test_sessions_of_ended_agents_make_room_when_it_is_needed(void **state)
{
	char id[16];
	for (int i = 0; i < MAX; i++) {
		snprintf(id, sizeof(id), "s%d", i);
		take(id, i % 2 ? first : second);
	}
	assert_false(session_table_has_room(&table));
	session_table_orphan(&table, second);
	assert_non_null(session_find(&table, "s0")); // as long as there is room for it
	int told = 0;
	table.on_forget = count_forgotten;
	table.data = &told;
	assert_true(session_table_has_room(&table));
	assert_true(table.count < MAX);
	assert_int_equal(told, MAX - table.count);
	take("one more", first);
	for (int i = 1; i < MAX; i += 2) {
		snprintf(id, sizeof(id), "s%d", i);
		assert_non_null(session_find(&table, id));
	}
}

static void test_roots_are_taken_and_replaced(void **state)
{
	struct session *session = take("s", first);
	for (int i = 0; i < 2; i++) {
		char **roots = mem_alloc_zero(2 * sizeof(*roots));
		roots[0] = mem_strdup(i == 0 ? "/old" : "/new");
		session_set_roots(session, roots);
	}
	assert_string_equal(session->roots[0], "/new");
	session_set_roots(session, NULL);
	assert_null(session->roots);
}

static void count_visit(void *data, struct session *session)
{
	int *count = data;
	++*count;
}

static void test_visits_are_of_one_agent_or_of_all(void **state)
{
	int count = 0;
	take("a", first);
	take("b", first);
	take("c", second);
	session_table_visit(&table, first, count_visit, &count);
	assert_int_equal(count, 2);
	session_table_visit(&table, NULL, count_visit, &count);
	assert_int_equal(count, 5);
	session_table_orphan(&table, first);
	session_table_visit(&table, first, count_visit, &count);
	assert_int_equal(count, 5);
}

/* ---- two agents that call their sessions the same ---- */

static struct session *take_new(const char *agent_id, struct peer *peer, int number)
{
	struct error err;
	struct session *session = session_bind_new(&table, agent_id, peer, number, &err);
	if (!session) {
		fail_msg("%s: %s", agent_id, err.text);
	}
	return session;
}

static void test_a_name_that_another_agent_has_gets_its_number(void **state)
{
	struct session *mine = take_new("s", first, 1);
	struct session *other = take_new("s", second, 2);
	assert_string_equal(mine->id, "s");
	assert_false(session_has_alias(mine));
	assert_string_equal(other->id, "s~2");
	assert_string_equal(other->agent_id, "s");
	assert_true(session_has_alias(other));
	assert_ptr_equal(session_find(&table, "s"), mine);
	assert_ptr_equal(session_find(&table, "s~2"), other);
}

static void test_an_agent_finds_its_own_by_the_name_it_gave(void **state)
{
	struct session *mine = take_new("s", first, 1);
	assert_ptr_equal(session_find_agent(&table, first, "s"), mine);
	assert_null(session_find_agent(&table, second, "s"));
	struct session *other = take_new("s", second, 2);
	assert_ptr_equal(session_find_agent(&table, first, "s"), mine);
	assert_ptr_equal(session_find_agent(&table, second, "s"), other);
	assert_null(session_find_agent(&table, second, "s~2")); // the editor's name
}

static void test_a_name_of_a_dead_agent_is_free(void **state)
{
	take_new("s", first, 1);
	session_table_orphan(&table, first);
	assert_string_equal(take_new("s", second, 2)->id, "s");
	assert_int_equal(table.aliases, 0);
	assert_int_equal(table.count, 1);
}

static void test_a_new_session_remembers_nothing_of_one_that_was_called_the_same(void **state)
{
	struct session *session = take_new("s", first, 1);
	struct subject subject =
		subject_of(POLICY_TERMINAL, "{\"command\":\"make\",\"args\":[\"all\"]}");
	memory_add(session->memory, &subject, true);
	session->usage.prompts = 3;
	session_table_orphan(&table, first);
	assert_int_equal(memory_count(take("s", second)->memory), 1); // it was loaded
	session_table_orphan(&table, second);
	session = take_new("s", second, 2);
	assert_int_equal(memory_count(session->memory), 0);
	assert_int_equal(session->usage.prompts, 0);
	assert_int_equal(table.count, 1);
}

static void test_aliases_are_counted_once_each(void **state)
{
	take_new("s", first, 1);
	struct session *other = take_new("s", second, 2);
	assert_ptr_equal(take_new("s", second, 2), other); // the agent made the id again
	assert_int_equal(table.aliases, 1);
	session_forget(&table, other);
	assert_int_equal(table.aliases, 0);
	assert_int_equal(table.count, 1);
}

static void test_an_alias_that_is_taken_is_a_conflict(void **state)
{
	struct error err;
	take_new("s", first, 1);
	take_new("s~2", first, 1);
	assert_null(session_bind_new(&table, "s", second, 2, &err));
	assert_string_equal(err.reason, "SESSION_CONFLICT");
}

#define SESSION_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SESSION_TEST(test_a_bound_session_is_found),
		SESSION_TEST(test_many_sessions_are_told_apart),
		SESSION_TEST(test_binding_again_keeps_the_session),
		SESSION_TEST(test_a_session_of_another_living_agent_is_a_conflict),
		SESSION_TEST(test_an_agents_end_leaves_its_sessions_to_nobody),
		SESSION_TEST(test_a_full_table_takes_only_what_it_knows),
		SESSION_TEST(test_sessions_of_ended_agents_make_room_when_it_is_needed),
		SESSION_TEST(test_roots_are_taken_and_replaced),
		SESSION_TEST(test_visits_are_of_one_agent_or_of_all),
		SESSION_TEST(test_a_name_that_another_agent_has_gets_its_number),
		SESSION_TEST(test_an_agent_finds_its_own_by_the_name_it_gave),
		SESSION_TEST(test_a_name_of_a_dead_agent_is_free),
		SESSION_TEST(test_a_new_session_remembers_nothing_of_one_that_was_called_the_same),
		SESSION_TEST(test_aliases_are_counted_once_each),
		SESSION_TEST(test_an_alias_that_is_taken_is_a_conflict),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
