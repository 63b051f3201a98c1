/* SPDX-License-Identifier: MIT */
#include "broker/ledger/record.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "broker/ledger/record_owner.h"

static char state_folder[64];
static int folder_fd;

static int set_up(void **state)
{
	struct error err;
	snprintf(state_folder, sizeof(state_folder), "/tmp/test-record-XXXXXX");
	assert_non_null(mkdtemp(state_folder));
	folder_fd = record_folder_open(state_folder, &err);
	return folder_fd >= 0 ? 0 : -1;
}

static void remove_record(void *data, const char *id)
{
	struct error err;
	assert_true(record_remove(folder_fd, id, &err));
}

static int tear_down(void **state)
{
	struct error err;
	char path[96];
	assert_true(record_visit(folder_fd, remove_record, NULL, &err));
	fd_close(&folder_fd);
	snprintf(path, sizeof(path), "%s/sessions", state_folder);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(state_folder), 0);
	return 0;
}

static void fill(struct record *record)
{
	record_init(record);
	record->state = RECORD_ACTIVE;
	record->profile = mem_strdup("dev\"box");
	record->backend = mem_strdup("local");
	record->sync = mem_strdup("turn-bidirectional");
	record->persistence = mem_strdup("reuse");
	record->agent = mem_strdup("claude");
	record->local_root = mem_strdup("/home/me/pr\xc3\xb6ject");
	assert_true(record_add_session(record, "s-1"));
	assert_true(record_add_session(record, "s-2"));
	assert_true(record_add_session(record, "s-1"));
}

static void save(const struct record *record)
{
	struct error err;
	struct buf json;
	buf_init(&json, RECORD_FILE_MAX);
	assert_true(record_write_json(record, &json, &err));
	assert_true(record_save(folder_fd, record->id, buf_span(&json), &err));
	buf_finish(&json);
}

static void write_raw(const char *id, const char *text)
{
	struct error err;
	assert_true(record_save(folder_fd, id, span_of(text), &err));
}

static void expect_refused(const char *id, enum error_code code, const char *words)
{
	struct error err;
	struct record record = {0};
	assert_false(record_load(folder_fd, id, &record, &err));
	assert_int_equal(err.code, code);
	if (!strstr(err.text, words) || !strstr(err.text, id)) {
		fail_msg("\"%s\" lacks \"%s\" or the id", err.text, words);
	}
	assert_null(record.profile);
}

static void test_what_was_saved_is_loaded(void **state)
{
	struct error err;
	struct record record;
	fill(&record);
	snprintf(record.receipt.runtime_tree, RECORD_TREE_SIZE, "%040d", 1);
	snprintf(record.receipt.merged_tree, RECORD_TREE_SIZE, "%040d", 2);
	snprintf(record.receipt.time, sizeof(record.receipt.time), "2026-01-31T12:00:00.000Z");
	record.receipt.conflicts = 3;
	record.error = mem_strdup("the link broke");
	assert_int_equal(record_set_choices(&record, "s-2", span_of("[{\"kind\":\"mode\"}]")),
		RECORD_CHOICES_CHANGED);
	save(&record);

	struct record loaded;
	assert_true(record_load(folder_fd, record.id, &loaded, &err));
	assert_string_equal(loaded.id, record.id);
	assert_int_equal(loaded.state, RECORD_ACTIVE);
	assert_string_equal(loaded.profile, record.profile);
	assert_string_equal(loaded.local_root, record.local_root);
	assert_string_equal(loaded.agent, "claude");
	assert_null(loaded.runtime_root);
	assert_string_equal(loaded.error, "the link broke");
	assert_string_equal(loaded.created, record.created);
	assert_int_equal(loaded.session_count, 2);
	assert_string_equal(loaded.sessions[1], "s-2");
	assert_null(record_choices(&loaded, "s-1"));
	assert_string_equal(record_choices(&loaded, "s-2"), "[{\"kind\":\"mode\"}]");
	assert_memory_equal(&loaded.receipt, &record.receipt, sizeof(record.receipt));
	record_finish(&loaded);
	record_finish(&record);
}

static void test_ids_differ_and_files_are_private(void **state)
{
	struct record one;
	struct record two;
	struct stat status;
	char name[64];
	fill(&one);
	fill(&two);
	assert_string_not_equal(one.id, two.id);
	save(&one);
	snprintf(name, sizeof(name), "%s.json", one.id);
	assert_int_equal(fstatat(folder_fd, name, &status, 0), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_int_equal(fstat(folder_fd, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0700);
	record_finish(&one);
	record_finish(&two);
}

static void test_a_record_nobody_wrote_is_refused_by_name(void **state)
{
	static const char id[] = "00112233445566aa";
	expect_refused(id, ERROR_NOT_FOUND, "No such file");
	write_raw(id, "{\"version\":1");
	expect_refused(id, ERROR_PROTOCOL, "");
	write_raw(id, "[]");
	expect_refused(id, ERROR_PROTOCOL, "not an object");
	write_raw(id, "{\"version\":2,\"state\":\"dreaming\"}");
	expect_refused(id, ERROR_UNAVAILABLE, "newer acp-broker");
	write_raw(id, "{\"version\":1,\"state\":\"dreaming\"}");
	expect_refused(id, ERROR_PROTOCOL, "\"state\"");
}

static void test_a_damaged_part_is_named(void **state)
{
	struct error err;
	struct record record;
	struct buf json;
	fill(&record);
	save(&record);
	static const struct {
		const char *from, *to, *words;
	} damages[] = {
		{"\"backend\":\"local\"", "\"backend\":null   ", "backend"},
		{"\"sessions\":[", "\"sessionz\":[", "sessions"},
		{"\"receipt\":null", "\"receipt\":true", "receipt"},
		{"\"s-1\"", "    7", "sessions"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(damages); i++) {
		buf_init(&json, RECORD_FILE_MAX);
		assert_true(record_write_json(&record, &json, &err));
		assert_true(buf_append(&json, (struct span){"", 1}, &err));
		char *text = mem_strdup(buf_span(&json).data);
		char *at = strstr(text, damages[i].from);
		assert_non_null(at);
		memcpy(at, damages[i].to, strlen(damages[i].to));
		write_raw(record.id, text);
		expect_refused(record.id, ERROR_PROTOCOL, damages[i].words);
		free(text);
		buf_finish(&json);
	}
	record_finish(&record);
}

static void test_who_holds_a_lock_is_told(void **state)
{
	struct error err;
	struct record record;
	struct record_owner owner;
	char pid[32];
	fill(&record);
	save(&record);
	record_owner_find(folder_fd, record.id, &owner);
	assert_false(owner.is_held);
	int lock = record_lock(folder_fd, record.id, &err);
	record_owner_find(folder_fd, record.id, &owner);
	assert_true(owner.is_held && owner.is_session);
	assert_int_equal(owner.pid, getpid());
	assert_false(record_owner_stop(&owner, &err)); // we are not a broker, and still here
	assert_int_equal(err.code, ERROR_DENIED);
	record_owner_finish(&owner);
	record_owner_note(lock, false);
	record_owner_find(folder_fd, record.id, &owner);
	assert_false(owner.is_session);
	record_owner_finish(&owner);
	assert_int_equal(record_lock(folder_fd, record.id, &err), -1);
	snprintf(pid, sizeof(pid), "process %d", (int)getpid());
	assert_non_null(strstr(err.text, pid));
	/* A number that is not the holder's, and a missing number, name nobody. */
	static const char *const notes[] = {"1\n", "", "-5\n", "99999999999999\n", "x"};
	for (size_t i = 0; i < ARRAY_LENGTH(notes); i++) {
		assert_int_equal(ftruncate(lock, 0), 0);
		assert_int_equal(pwrite(lock, notes[i], strlen(notes[i]), 0), strlen(notes[i]));
		record_owner_find(folder_fd, record.id, &owner);
		assert_true(owner.is_held);
		assert_int_equal(owner.pid, 0);
		record_owner_finish(&owner);
	}
	fd_close(&lock);
	record_finish(&record);
}

static void test_a_record_under_another_name_is_refused(void **state)
{
	struct error err;
	struct record record;
	struct buf json;
	fill(&record);
	buf_init(&json, RECORD_FILE_MAX);
	assert_true(record_write_json(&record, &json, &err));
	assert_true(record_save(folder_fd, "ffffffffffffffff", buf_span(&json), &err));
	expect_refused("ffffffffffffffff", ERROR_PROTOCOL, record.id);
	buf_finish(&json);
	record_finish(&record);
}

static void test_the_lock_is_held_until_it_is_closed(void **state)
{
	struct error err;
	struct record record;
	fill(&record);
	save(&record);
	int lock = record_lock(folder_fd, record.id, &err);
	assert_true(lock >= 0);
	assert_int_equal(record_lock(folder_fd, record.id, &err), -1);
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	fd_close(&lock);
	lock = record_lock(folder_fd, record.id, &err);
	assert_true(lock >= 0);
	fd_close(&lock);
	record_finish(&record);
}

static void count_record(void *data, const char *id)
{
	assert_int_equal(strlen(id), 16);
	(*(int *)data)++;
}

static void test_without_a_state_folder_one_is_told_what_to_set(void **state)
{
	struct error err;
	assert_int_equal(record_folder_open("", &err), -1);
	assert_int_equal(err.code, ERROR_CONFIG);
	assert_non_null(strstr(err.text, "XDG_STATE_HOME"));
}

static void test_a_write_that_fails_is_told_with_its_folder(void **state)
{
	struct error err;
	struct rlimit limit;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	struct rlimit none = {0, limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	bool is_saved = record_save(folder_fd, "0123456789abcdef", span_of("{}"), &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_false(is_saved);
	assert_non_null(strstr(err.text, "session record 0123456789abcdef in /"));
	assert_non_null(strstr(err.text, "/sessions: writing 2 bytes: File too large"));
}

static void test_a_missing_state_folder_is_made_with_its_parents(void **state)
{
	struct error err;
	struct stat status;
	char path[128];
	snprintf(path, sizeof(path), "%s/a/b", state_folder);
	int fd = record_folder_open(path, &err);
	assert_true(fd >= 0);
	fd_close(&fd);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0700);
	static const char *const made[] = {"a/b/sessions", "a/b", "a"};
	for (size_t i = 0; i < ARRAY_LENGTH(made); i++) {
		snprintf(path, sizeof(path), "%s/%s", state_folder, made[i]);
		assert_int_equal(rmdir(path), 0);
	}
}

static void test_only_records_are_visited(void **state)
{
	struct error err;
	struct record record;
	fill(&record);
	save(&record);
	int lock = record_lock(folder_fd, record.id, &err);
	int other = openat(folder_fd, "README.json", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	int count = 0;
	assert_true(record_visit(folder_fd, count_record, &count, &err));
	assert_int_equal(count, 1);
	assert_true(record_remove(folder_fd, record.id, &err));
	assert_true(record_remove(folder_fd, record.id, &err));
	count = 0;
	assert_true(record_visit(folder_fd, count_record, &count, &err));
	assert_int_equal(count, 0);
	assert_int_equal(unlinkat(folder_fd, "README.json", 0), 0);
	fd_close(&other);
	fd_close(&lock);
	record_finish(&record);
}

static bool has_file(const char *id, const char *ending)
{
	char name[64];
	snprintf(name, sizeof(name), "%s%s", id, ending);
	return faccessat(folder_fd, name, F_OK, 0) == 0;
}

static void make_draft(const char *id)
{
	char name[64];
	snprintf(name, sizeof(name), "%s.new", id);
	int fd = openat(folder_fd, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	fd_close(&fd);
}

static void test_drafts_of_killed_brokers_are_swept(void **state)
{
	static const char never_saved[] = "00112233445566aa";
	static const char alive[] = "00112233445566bb";
	struct error err;
	struct record record;
	fill(&record);
	save(&record);
	make_draft(record.id);
	make_draft(never_saved);
	int lock = record_lock(folder_fd, alive, &err);
	assert_true(lock >= 0);
	make_draft(alive);
	assert_true(record_sweep(folder_fd, &err));
	assert_true(has_file(record.id, ".json"));
	assert_false(has_file(record.id, ".new"));
	assert_false(has_file(never_saved, ".new"));
	assert_false(has_file(never_saved, ".lock"));
	assert_true(has_file(alive, ".new"));
	assert_true(has_file(alive, ".lock"));
	fd_close(&lock);
	assert_true(record_remove(folder_fd, alive, &err));
	assert_true(record_remove(folder_fd, record.id, &err));
	record_finish(&record);
}

static void test_the_oldest_stopped_records_are_pruned(void **state)
{
	enum { COUNT = 6 };
	struct error err;
	char ids[COUNT][RECORD_ID_SIZE];
	int locked = -1;
	for (int i = 0; i < COUNT; i++) {
		struct record record;
		fill(&record);
		record.state = i == 1 ? RECORD_FAILED : RECORD_STOPPED;
		snprintf(
			record.updated, sizeof(record.updated), "2026-01-0%dT00:00:00.000Z", i + 1);
		memcpy(ids[i], record.id, sizeof(ids[i]));
		save(&record);
		record_finish(&record);
	}
	write_raw("00112233445566aa", "garbage");
	locked = record_lock(folder_fd, ids[2], &err);
	assert_true(record_prune(folder_fd, 2, &err));
	for (int i = 0; i < COUNT; i++) {
		struct record record = {0};
		bool is_there = record_load(folder_fd, ids[i], &record, &err);
		assert_int_equal(is_there, i != 0 && i != 3);
		record_finish(&record);
	}
	assert_false(record_load(folder_fd, "00112233445566aa", &(struct record){0}, &err));
	assert_int_equal(err.code, ERROR_PROTOCOL); // still there
	fd_close(&locked);
}

static void test_sessions_are_bounded(void **state)
{
	struct record record;
	record_init(&record);
	char id[32];
	for (int i = 0; i < RECORD_SESSIONS_MAX; i++) {
		snprintf(id, sizeof(id), "s-%d", i);
		assert_true(record_add_session(&record, id));
	}
	assert_false(record_add_session(&record, "one more"));
	assert_true(record_add_session(&record, "s-7"));
	record_finish(&record);
}

static void test_choices_are_bounded_and_go_with_their_session(void **state)
{
	struct record record;
	fill(&record);
	char *most = malloc(RECORD_CHOICES_MAX);
	memset(most, '1', RECORD_CHOICES_MAX);
	struct span all = {most, RECORD_CHOICES_MAX};
	assert_int_equal(record_set_choices(&record, "other", all), RECORD_CHOICES_UNCHANGED);
	assert_int_equal(record_set_choices(&record, "s-2", all), RECORD_CHOICES_CHANGED);
	assert_int_equal(record_set_choices(&record, "s-2", all), RECORD_CHOICES_UNCHANGED);
	assert_int_equal(
		record_set_choices(&record, "s-1", span_of("[]")), RECORD_CHOICES_TOO_LONG);
	record_remove_session(&record, "s-1");
	assert_non_null(record_choices(&record, "s-2"));
	assert_int_equal(record_set_choices(&record, "s-2", span_of("")), RECORD_CHOICES_CHANGED);
	assert_null(record_choices(&record, "s-2"));
	free(most);
	record_finish(&record);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_was_saved_is_loaded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_ids_differ_and_files_are_private, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_record_nobody_wrote_is_refused_by_name, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_damaged_part_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_who_holds_a_lock_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_record_under_another_name_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_the_lock_is_held_until_it_is_closed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_write_that_fails_is_told_with_its_folder, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_only_records_are_visited, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_drafts_of_killed_brokers_are_swept, set_up, tear_down),
		cmocka_unit_test(test_without_a_state_folder_one_is_told_what_to_set),
		cmocka_unit_test_setup_teardown(
			test_a_missing_state_folder_is_made_with_its_parents, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_the_oldest_stopped_records_are_pruned, set_up, tear_down),
		cmocka_unit_test(test_sessions_are_bounded),
		cmocka_unit_test(test_choices_are_bounded_and_go_with_their_session),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
