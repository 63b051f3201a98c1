/* SPDX-License-Identifier: MIT */
#include "tests/support/toolhost/fixture.h"

#include "broker/toolhost/terminal.h"
#include "providers/impl.h"

/* One terminal, and the events that it raised: s, f, o(nce), x, e. */
struct record {
	struct terminal *terminal;
	char told[8];
	struct error err;
	bool is_over; // it has failed or emptied
	bool has_exited;
	bool destroys; // the terminal, in the handler of the exit
	uint64_t total_at_exit;
	bool had_ended_at_exit;
};

static char read_buffer[TERMINAL_READ_SIZE];

static void note(struct record *record, char event)
{
	size_t len = strlen(record->told);
	assert_true(len + 1 < sizeof(record->told));
	record->told[len] = event;
}

static void on_started(void *data)
{
	note(data, 's');
}

static void on_failed(void *data, const struct error *err)
{
	struct record *record = data;
	note(record, 'f');
	record->err = *err;
	record->is_over = true;
}

static void on_output(void *data)
{
	const struct record *record = data;
	assert_true(terminal_output(record->terminal)->total > 0 ||
		    terminal_output_has_ended(record->terminal));
}

static void on_exited(void *data)
{
	struct record *record = data;
	note(record, 'x');
	record->has_exited = true;
	record->total_at_exit = terminal_output(record->terminal)->total;
	record->had_ended_at_exit = terminal_output_has_ended(record->terminal);
	assert_true(terminal_end(record->terminal).has_exited);
	if (record->destroys) {
		terminal_destroy(record->terminal);
		record->terminal = NULL;
	}
}

static void on_emptied(void *data)
{
	struct record *record = data;
	note(record, 'e');
	record->is_over = true;
}

static const struct terminal_listener listener = {
	.on_started = on_started,
	.on_failed = on_failed,
	.on_output = on_output,
	.on_exited = on_exited,
	.on_emptied = on_emptied,
};

static void start(struct record *record, const char *command, size_t limit, int timeout_ms)
{
	const char *const argv[] = {"/bin/sh", "-c", command, NULL};
	struct terminal_config config = {
		.loop = fixture.loop,
		.sandbox = fixture.sandbox,
		.argv = argv,
		.env = sandbox_environment(fixture.sandbox),
		.cwd = fixture.roots[0],
		.output_limit = limit,
		.timeout_ms = timeout_ms,
		.read_buffer = read_buffer,
	};
	struct error err;
	*record = (struct record){0};
	record->terminal = terminal_start(&config, &listener, record, &err);
	assert_non_null(record->terminal);
	assert_string_equal(record->told, "");
}

static bool is_set(const void *data)
{
	return *(const bool *)data;
}

static void wait_for_flag(const bool *flag)
{
	assert_true(fixture_turn(is_set, flag, FIXTURE_DEADLINE_MS));
}

struct growth {
	const struct record *record;
	uint64_t from;
};

static bool has_grown(const void *data)
{
	const struct growth *growth = data;
	return growth->record->told[0] == 's' &&
	       terminal_output(growth->record->terminal)->total > growth->from;
}

static void wait_for_more(const struct record *record, uint64_t from)
{
	struct growth growth = {record, from};
	assert_true(fixture_turn(has_grown, &growth, FIXTURE_DEADLINE_MS));
}

static const char *text_of(const struct record *record)
{
	static char text[1024];
	struct buf out;
	buf_init(&out, sizeof(text) - 1);
	output_tail_text(terminal_output(record->terminal), 256, true, &out);
	snprintf(text, sizeof(text), "%.*s", (int)out.len, buf_span(&out).data);
	buf_finish(&out);
	return text;
}

static void test_events_come_in_order(void **state)
{
	struct record record;
	start(&record, "echo hello; exit 4", 1000, 0);
	wait_for_flag(&record.is_over);
	assert_string_equal(record.told, "sxe");
	assert_string_equal(text_of(&record), "hello\n");
	assert_int_equal(terminal_end(record.terminal).status.code, 4);
	terminal_destroy(record.terminal);
}

static void test_the_exit_comes_after_the_last_byte(void **state)
{
	for (int i = 0; i < 20; i++) {
		struct record record;
		start(&record, "head -c 300000 /dev/zero; echo -n end", 10, 0);
		wait_for_flag(&record.has_exited);
		assert_int_equal(record.total_at_exit, 300003);
		assert_true(record.had_ended_at_exit);
		terminal_destroy(record.terminal);
	}
}

static void test_a_child_that_holds_the_output_does_not_hold_the_exit(void **state)
{
	struct record record;
	start(&record, "(while ! [ -e go ]; do echo noise; sleep 0.02; done) & echo first", 100000,
		0);
	wait_for_flag(&record.has_exited);
	assert_false(record.had_ended_at_exit);
	assert_string_equal(record.told, "sx");
	wait_for_more(&record, terminal_output(record.terminal)->total);
	put_text_file("go", "");
	wait_for_flag(&record.is_over);
	assert_string_equal(record.told, "sxe");
	terminal_destroy(record.terminal);
}

static void test_much_output_needs_little_memory(void **state)
{
	struct record record;
	start(&record, "head -c 104857600 /dev/zero; echo end", 65536, 0);
	wait_for_flag(&record.is_over);
	const struct output_tail *tail = terminal_output(record.terminal);
	assert_int_equal(tail->total, 104857604);
	assert_int_equal(tail->capacity, 65536);
	assert_int_equal(tail->len, 65536);
	terminal_destroy(record.terminal);
}

static void test_ignored_output_is_read_all_the_same(void **state)
{
	struct record record;
	start(&record,
		"echo kept; while ! [ -e go ]; do sleep 0.01; done; head -c 1000000 /dev/zero",
		1000, 0);
	fixture_run_for(50);
	terminal_ignore_output(record.terminal);
	put_text_file("go", "");
	wait_for_flag(&record.is_over);
	assert_int_equal(terminal_output(record.terminal)->total, 1000005);
	assert_int_equal(terminal_output(record.terminal)->capacity, 0);
	terminal_destroy(record.terminal);
}

static void test_a_timeout_kills(void **state)
{
	struct record record;
	start(&record, "sleep 1000", 1000, 50);
	wait_for_flag(&record.has_exited);
	struct terminal_end end = terminal_end(record.terminal);
	assert_true(end.timed_out);
	assert_int_equal(end.status.signal, 9);
	terminal_destroy(record.terminal);
	start(&record, "sleep 0.01", 1000, FIXTURE_DEADLINE_MS);
	wait_for_flag(&record.is_over);
	assert_false(terminal_end(record.terminal).timed_out);
	terminal_destroy(record.terminal);
}

static bool has_started(const void *data)
{
	const struct record *record = data;
	return record->told[0] == 's';
}

/* Between the loss and the return of the connection, nobody learns of its end. */
static void test_a_timeout_stops_while_the_connection_is_lost(void **state)
{
	struct record record;
	start(&record, "while ! [ -e go ]; do sleep 0.01; done", 1000, 50);
	assert_true(fixture_turn(has_started, &record, FIXTURE_DEADLINE_MS));
	sandbox_note_link(fixture.sandbox, false);
	fixture_run_for(200);
	assert_string_equal(record.told, "s");
	put_text_file("go", "");
	wait_for_flag(&record.is_over);
	sandbox_note_link(fixture.sandbox, true);
	assert_false(terminal_end(record.terminal).timed_out);
	assert_int_equal(terminal_end(record.terminal).status.signal, 0);
	terminal_destroy(record.terminal);
}

/* The exit has come, and the output is still under way when the connection is lost. */
static void test_the_exit_waits_for_output_while_the_connection_is_lost(void **state)
{
	struct record record;
	start(&record, "(while ! [ -e go ]; do sleep 0.01; done; echo last) & echo first", 1000, 0);
	assert_true(fixture_turn(has_started, &record, FIXTURE_DEADLINE_MS));
	sandbox_note_link(fixture.sandbox, false);
	fixture_run_for(500);
	assert_string_equal(record.told, "s");
	sandbox_note_link(fixture.sandbox, true);
	put_text_file("go", "");
	wait_for_flag(&record.has_exited);
	assert_string_equal(text_of(&record), "first\nlast\n");
	wait_for_flag(&record.is_over);
	terminal_destroy(record.terminal);
}

static void test_a_handler_may_destroy_it(void **state)
{
	struct record record;
	start(&record, "echo hello", 1000, 0);
	record.destroys = true;
	wait_for_flag(&record.has_exited);
	fixture_run_for(50);
	assert_string_equal(record.told, "sx");
}

static void test_a_failed_start_is_told(void **state)
{
	struct record record;
	fake_behaviour(fixture.provider)->failures[FAKE_START] = 1;
	start(&record, "true", 1000, 0);
	wait_for_flag(&record.is_over);
	assert_string_equal(record.told, "f");
	terminal_destroy(record.terminal);
}

static void test_a_lost_link_ends_it(void **state)
{
	struct record record;
	start(&record, "echo hello; sleep 1000", 1000, 0);
	wait_for_more(&record, 0);
	fixture.may_be_lost = true;
	fake_lose(fixture.provider, "cut");
	wait_for_flag(&record.is_over);
	assert_string_equal(record.told, "sxe");
	assert_true(terminal_end(record.terminal).is_lost);
	terminal_kill(record.terminal); // nothing is left to be killed
	terminal_destroy(record.terminal);
	start(&record, "sleep 1000 & echo hello", 1000, 0);
	terminal_destroy(record.terminal);
}

static void test_a_link_lost_before_the_start_is_a_failed_start(void **state)
{
	struct record record;
	start(&record, "sleep 1000", 1000, 0);
	fixture.may_be_lost = true;
	fake_lose(fixture.provider, "cut");
	wait_for_flag(&record.is_over);
	assert_string_equal(record.told, "f");
	assert_non_null(strstr(record.err.text, "cut"));
	terminal_destroy(record.terminal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_LOCAL(test_events_come_in_order),
		ON_LOCAL(test_the_exit_comes_after_the_last_byte),
		ON_LOCAL(test_a_child_that_holds_the_output_does_not_hold_the_exit),
		ON_LOCAL(test_much_output_needs_little_memory),
		ON_LOCAL(test_ignored_output_is_read_all_the_same),
		ON_LOCAL(test_a_timeout_kills),
		ON_LOCAL(test_a_timeout_stops_while_the_connection_is_lost),
		ON_LOCAL(test_the_exit_waits_for_output_while_the_connection_is_lost),
		ON_LOCAL(test_a_handler_may_destroy_it),
		ON_FAKE(test_events_come_in_order),
		ON_FAKE(test_a_child_that_holds_the_output_does_not_hold_the_exit),
		ON_FAKE(test_a_failed_start_is_told),
		ON_FAKE(test_a_lost_link_ends_it),
		ON_FAKE(test_a_link_lost_before_the_start_is_a_failed_start),
	};
	return fixture_run(tests, ARRAY_LENGTH(tests));
}
