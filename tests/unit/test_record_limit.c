/* SPDX-License-Identifier: MIT */
#include "broker/ledger/record_limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "broker/ledger/record.h"
#include "broker/ledger/record_owner.h"
#include "tests/unit/record_folder.h"

enum { RECORDS_MAX = 8 };

struct fixture {
	struct record_folder folder;
	char ids[RECORDS_MAX][RECORD_ID_SIZE];
	int locks[RECORDS_MAX];
	size_t count;
};

static int set_up(void **state)
{
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	record_folder_make(&fixture->folder);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	for (size_t i = 0; i < fixture->count; i++) {
		fd_close(&fixture->locks[i]);
	}
	record_folder_drop(&fixture->folder, fixture->ids, fixture->count);
	free(fixture);
	return 0;
}

/* A record of a broker that lives. */
static void add(struct fixture *fixture, const char *profile, enum record_state record_state)
{
	struct record record;
	struct buf json;
	struct error err;
	record_init(&record);
	record.state = record_state;
	record.profile = mem_strdup(profile);
	record.backend = mem_strdup("local");
	record.sync = mem_strdup("none");
	record.persistence = mem_strdup("reuse");
	record.local_root = mem_strdup("/w");
	buf_init(&json, RECORD_FILE_MAX);
	assert_true(record_write_json(&record, &json, &err));
	memcpy(fixture->ids[fixture->count], record.id, RECORD_ID_SIZE);
	fixture->locks[fixture->count] = record_lock(fixture->folder.fd, record.id, &err);
	assert_true(fixture->locks[fixture->count] >= 0);
	assert_true(record_save(fixture->folder.fd, record.id, buf_span(&json), &err));
	fixture->count++;
	buf_finish(&json);
	record_finish(&record);
}

static bool has_room(struct fixture *fixture, size_t max)
{
	struct error err;
	return record_limit_check(fixture->folder.fd, "p", max, &err);
}

static void test_those_of_the_profile_that_are_at_work_count(void **state)
{
	struct fixture *fixture = *state;
	assert_true(has_room(fixture, 1));
	add(fixture, "q", RECORD_ACTIVE);
	add(fixture, "p", RECORD_STOPPED);
	add(fixture, "p", RECORD_FAILED);
	assert_true(has_room(fixture, 1));
	add(fixture, "p", RECORD_CREATING);
	add(fixture, "p", RECORD_PAUSED);
	assert_true(has_room(fixture, 3));
	assert_false(has_room(fixture, 2));
}

static void test_a_broker_that_is_gone_takes_no_place(void **state)
{
	struct fixture *fixture = *state;
	add(fixture, "p", RECORD_ACTIVE);
	assert_false(has_room(fixture, 1));
	fd_close(&fixture->locks[0]);
	assert_true(has_room(fixture, 1));
}

static void test_what_is_only_finished_takes_no_place(void **state)
{
	struct fixture *fixture = *state;
	add(fixture, "p", RECORD_ACTIVE);
	record_owner_note(fixture->locks[0], false);
	assert_true(has_room(fixture, 1));
	record_owner_note(fixture->locks[0], true);
	assert_false(has_room(fixture, 1));
}

static void test_a_refusal_says_which_there_are(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	char process[32];
	add(fixture, "p", RECORD_ACTIVE);
	add(fixture, "p", RECORD_SYNCING);
	assert_false(record_limit_check(fixture->folder.fd, "p", 2, &err));
	snprintf(process, sizeof(process), "(process %d)", (int)getpid());
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_string_equal(err.reason, "RESOURCE_LIMIT_EXCEEDED");
	assert_non_null(strstr(err.text, "max-sessions is 2"));
	assert_non_null(strstr(err.text, fixture->ids[0]));
	assert_non_null(strstr(err.text, fixture->ids[1]));
	assert_non_null(strstr(err.text, process));
}

static void test_one_at_a_time_has_the_folder(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	int other = record_folder_open(fixture->folder.path, &err);
	assert_true(record_limit_lock(fixture->folder.fd, &err));
	assert_int_equal(flock(other, LOCK_EX | LOCK_NB), -1);
	record_limit_unlock(fixture->folder.fd);
	assert_true(record_limit_lock(other, &err));
	fd_close(&other);
}

#define LIMIT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIMIT_TEST(test_those_of_the_profile_that_are_at_work_count),
		LIMIT_TEST(test_a_broker_that_is_gone_takes_no_place),
		LIMIT_TEST(test_what_is_only_finished_takes_no_place),
		LIMIT_TEST(test_a_refusal_says_which_there_are),
		LIMIT_TEST(test_one_at_a_time_has_the_folder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
