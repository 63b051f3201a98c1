/* SPDX-License-Identifier: MIT */
#include "broker/ledger/record_claim.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "broker/ledger/record_limit.h"
#include "broker/ledger/record_owner.h"
#include "tests/unit/record_folder.h"

enum { RECORDS = 3 };

struct fixture {
	struct record_folder folder;
	char ids[RECORDS][RECORD_ID_SIZE];
	struct claim_request request;
	struct record_claim claim;
};

static void write_record(
	struct fixture *fixture, int index, const char *profile, const char *session)
{
	struct record record;
	struct buf json;
	struct error err;
	record_init(&record);
	record.profile = mem_strdup(profile);
	record.backend = mem_strdup("local");
	record.sync = mem_strdup("none");
	record.persistence = mem_strdup("reuse");
	record.local_root = mem_strdup("/w");
	assert_true(record_add_session(&record, "other"));
	assert_true(record_add_session(&record, session));
	buf_init(&json, RECORD_FILE_MAX);
	assert_true(record_write_json(&record, &json, &err));
	assert_true(record_save(fixture->folder.fd, record.id, buf_span(&json), &err));
	memcpy(fixture->ids[index], record.id, sizeof(record.id));
	buf_finish(&json);
	record_finish(&record);
}

static int set_up(void **state)
{
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	record_folder_make(&fixture->folder);
	write_record(fixture, 0, "p", "s");
	write_record(fixture, 1, "another", "s");
	write_record(fixture, 2, "p", "t");
	fixture->request = (struct claim_request){fixture->folder.path, "p", "local", "s"};
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	record_claim_finish(&fixture->claim);
	record_folder_drop(&fixture->folder, fixture->ids, RECORDS);
	free(fixture);
	return 0;
}

static enum claim_outcome take(struct fixture *fixture)
{
	return record_claim_take(&fixture->request, &fixture->claim);
}

/* The outcome for another process while this one holds its locks. */
static void assert_elsewhere(struct fixture *fixture, enum claim_outcome expected, bool is_ending)
{
	pid_t parent = getpid();
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct record_claim claim;
		enum claim_outcome outcome = record_claim_take(&fixture->request, &claim);
		bool as_expected = outcome == expected &&
		                   (outcome != CLAIM_HELD || (claim.holder == parent &&
								     claim.is_ending == is_ending));
		_exit(as_expected ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_the_record_of_the_profile_that_has_it_is_locked(void **state)
{
	struct fixture *fixture = *state;
	assert_int_equal(take(fixture), CLAIM_TAKEN);
	assert_int_equal(fixture->claim.count, 1);
	assert_string_equal(fixture->claim.records[0].id, fixture->ids[0]);
	assert_elsewhere(fixture, CLAIM_HELD, true);
	record_claim_finish(&fixture->claim);
	assert_elsewhere(fixture, CLAIM_TAKEN, false);
}

static void test_what_is_taken_over_takes_no_place(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	assert_int_equal(take(fixture), CLAIM_TAKEN);
	assert_true(record_limit_check(fixture->folder.fd, "p", 1, &err));
}

static void test_what_is_nowhere_is_nobodys(void **state)
{
	struct fixture *fixture = *state;
	fixture->request.session_id = "nobody";
	assert_int_equal(take(fixture), CLAIM_NONE);
	fixture->request.state_folder = "/nowhere";
	assert_int_equal(take(fixture), CLAIM_NONE);
	assert_int_equal(access("/nowhere", F_OK), -1);
}

static void test_who_collects_is_told_apart(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	int lock_fd = record_lock(fixture->folder.fd, fixture->ids[0], &err);
	assert_true(lock_fd >= 0);
	assert_elsewhere(fixture, CLAIM_HELD, false);
	assert_int_equal(take(fixture), CLAIM_NONE); // our own session
	record_owner_note(lock_fd, false);
	assert_elsewhere(fixture, CLAIM_HELD, true);
	assert_int_equal(take(fixture), CLAIM_HELD); // our own recovery
	assert_true(fixture->claim.is_ending);
	fd_close(&lock_fd);
}

/* The system reports the failure to a user whom the file's mode stops. A folder also stops root. */
static void test_a_lock_that_fails_is_nobodys(void **state)
{
	struct fixture *fixture = *state;
	char name[RECORD_ID_SIZE + 8];
	snprintf(name, sizeof(name), "%s.lock", fixture->ids[0]);
	assert_int_equal(mkdirat(fixture->folder.fd, name, 0700), 0);
	assert_int_equal(take(fixture), CLAIM_FAILED);
	assert_non_null(strstr(fixture->claim.err.text, name));
	assert_int_equal(unlinkat(fixture->folder.fd, name, AT_REMOVEDIR), 0);
}

static void test_it_leaves_the_records_it_was_in(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	struct record record;
	assert_int_equal(take(fixture), CLAIM_TAKEN);
	fixture->claim.records[0].state = RECORD_STOPPED;
	assert_true(record_remove(fixture->folder.fd, fixture->ids[1], &err));
	write_record(fixture, 1, "p", "s");
	assert_false(record_claim_move(&fixture->request, &fixture->claim, &err)); // it is nobody's
	assert_int_equal(err.code, ERROR_NOT_FOUND);
	assert_true(record_load(fixture->folder.fd, fixture->ids[0], &record, &err));
	assert_int_equal(record.session_count, 2);
	record_finish(&record);
	int lock_fd = record_lock(fixture->folder.fd, fixture->ids[1], &err);
	assert_true(record_claim_move(&fixture->request, &fixture->claim, &err));
	record_claim_finish(&fixture->claim);
	assert_int_equal(take(fixture), CLAIM_NONE);
	fd_close(&lock_fd);
	assert_true(record_load(fixture->folder.fd, fixture->ids[0], &record, &err));
	assert_int_equal(record.session_count, 1);
	assert_string_equal(record.sessions[0], "other");
	assert_int_equal(record.state, RECORD_STOPPED);
	record_finish(&record);
}

static void test_a_record_of_two_is_not_had_by_halves(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	assert_true(record_remove(fixture->folder.fd, fixture->ids[1], &err));
	write_record(fixture, 1, "p", "s");
	int lock_fd = record_lock(fixture->folder.fd, fixture->ids[1], &err);
	assert_elsewhere(fixture, CLAIM_HELD, false);
	fd_close(&lock_fd);
	assert_int_equal(take(fixture), CLAIM_TAKEN);
	assert_int_equal(fixture->claim.count, 2);
}

#define CLAIM_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLAIM_TEST(test_the_record_of_the_profile_that_has_it_is_locked),
		CLAIM_TEST(test_what_is_taken_over_takes_no_place),
		CLAIM_TEST(test_what_is_nowhere_is_nobodys),
		CLAIM_TEST(test_who_collects_is_told_apart),
		CLAIM_TEST(test_a_lock_that_fails_is_nobodys),
		CLAIM_TEST(test_it_leaves_the_records_it_was_in),
		CLAIM_TEST(test_a_record_of_two_is_not_had_by_halves),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
