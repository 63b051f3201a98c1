/* SPDX-License-Identifier: MIT */
#include "broker/agent/login_note.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"

/*
 * The note about an agent's login, between the broker that offers the login and the one that runs
 * it.
 */

struct fixture {
	char state[64];
	char token[LOGIN_TOKEN_SIZE];
	char path[160];
	struct error err;
};

static const char *const args[] = {"--login", "a b\n\"c\"", "", "\xc3\xa9", NULL};
static const char *const env[] = {"A=b=c", "EMPTY=", NULL};

static void offer(struct fixture *fixture)
{
	assert_true(login_note_write(fixture->state, NULL, (char *const *)args, (char *const *)env,
		fixture->token, &fixture->err));
	snprintf(fixture->path, sizeof(fixture->path), "%s/logins/%s", fixture->state,
		fixture->token);
}

static int set_up(void **state)
{
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	snprintf(fixture->state, sizeof(fixture->state), "/tmp/test-login-note-XXXXXX");
	assert_non_null(mkdtemp(fixture->state));
	offer(fixture);
	*state = fixture;
	return 0;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	return remove(path);
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	nftw(fixture->state, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(fixture);
	return 0;
}

static void assert_words(char **words, const char *const *expected)
{
	for (; *expected; expected++) {
		assert_string_equal(*words++, *expected);
	}
	assert_null(*words);
}

static void assert_refused(struct fixture *fixture, const char *token, enum error_code code)
{
	assert_null(login_note_open(fixture->state, token, &fixture->err));
	if (fixture->err.code != code) {
		fail_msg("%s", fixture->err.text);
	}
}

static void make_older(const struct fixture *fixture, time_t seconds)
{
	struct timeval times[2] = {
		{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};
	assert_int_equal(utimes(fixture->path, times), 0);
}

static void test_a_token_leads_to_what_was_written(void **state)
{
	struct fixture *fixture = *state;
	struct stat status;
	assert_int_equal(lstat(fixture->path, &status), 0);
	assert_int_equal(status.st_mode, S_IFREG | 0600);
	struct login_note *note = login_note_open(fixture->state, fixture->token, &fixture->err);
	assert_non_null(note);
	assert_words(note->args, args);
	assert_words(note->env, env);
	login_note_close(note);
	note = login_note_open(fixture->state, fixture->token, &fixture->err); // it was not used
	assert_non_null(note);
	login_note_remove(note);
	login_note_close(note);
	assert_refused(fixture, fixture->token, ERROR_NOT_FOUND);
}

static void test_two_offers_have_two_tokens(void **state)
{
	struct fixture *fixture = *state;
	char other[LOGIN_TOKEN_SIZE];
	assert_true(login_note_write(fixture->state, NULL, NULL, NULL, other, &fixture->err));
	assert_string_not_equal(other, fixture->token);
	struct login_note *note = login_note_open(fixture->state, other, &fixture->err);
	assert_non_null(note);
	assert_null(note->args[0]);
	assert_null(note->env[0]);
	login_note_close(note);
}

static void test_one_login_at_a_time_runs_with_a_token(void **state)
{
	struct fixture *fixture = *state;
	struct login_note *note = login_note_open(fixture->state, fixture->token, &fixture->err);
	assert_non_null(note);
	assert_refused(fixture, fixture->token, ERROR_DENIED);
	login_note_close(note);
}

static void test_a_note_lasts_for_a_day(void **state)
{
	struct fixture *fixture = *state;
	make_older(fixture, LOGIN_NOTE_AGE_S - 600);
	struct login_note *note = login_note_open(fixture->state, fixture->token, &fixture->err);
	assert_non_null(note);
	login_note_close(note);
	make_older(fixture, LOGIN_NOTE_AGE_S + 1);
	assert_refused(fixture, fixture->token, ERROR_NOT_FOUND);
	char old[160];
	memcpy(old, fixture->path, sizeof(old));
	offer(fixture);
	assert_int_equal(access(old, F_OK), -1); // the next offer has removed it
}

static void test_what_is_no_token_is_refused(void **state)
{
	struct fixture *fixture = *state;
	static const char *const words[] = {"", "0", "../../etc/passwd", "..", "logins",
		"0123456789abcdef0123456789abcde/", "0123456789ABCDEF0123456789ABCDEF",
		"0123456789abcdef0123456789abcdef0"};
	for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
		assert_refused(fixture, words[i], ERROR_CONFIG);
	}
	assert_refused(fixture, "0123456789abcdef0123456789abcdef", ERROR_NOT_FOUND);
}

static void test_a_file_that_others_may_write_is_refused(void **state)
{
	struct fixture *fixture = *state;
	assert_int_equal(chmod(fixture->path, 0620), 0);
	assert_refused(fixture, fixture->token, ERROR_DENIED);
	assert_int_equal(chmod(fixture->path, 0600), 0);
	char elsewhere[100];
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", fixture->state);
	assert_int_equal(rename(fixture->path, elsewhere), 0);
	assert_int_equal(symlink(elsewhere, fixture->path), 0);
	assert_refused(fixture, fixture->token, ERROR_NOT_FOUND);
}

static void test_what_is_too_long_is_not_offered(void **state)
{
	struct fixture *fixture = *state;
	char *text = mem_alloc_zero(LOGIN_NOTE_MAX + 1);
	memset(text, 'x', LOGIN_NOTE_MAX);
	char *const words[] = {text, NULL};
	char token[LOGIN_TOKEN_SIZE] = "";
	assert_false(login_note_write(fixture->state, NULL, words, NULL, token, &fixture->err));
	assert_int_equal(fixture->err.code, ERROR_LIMIT);
	assert_string_equal(token, "");
	free(text);
	assert_false(login_note_write(NULL, NULL, NULL, NULL, token, &fixture->err));
}

#define NOTE_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		NOTE_TEST(test_a_token_leads_to_what_was_written),
		NOTE_TEST(test_two_offers_have_two_tokens),
		NOTE_TEST(test_one_login_at_a_time_runs_with_a_token),
		NOTE_TEST(test_a_note_lasts_for_a_day),
		NOTE_TEST(test_what_is_no_token_is_refused),
		NOTE_TEST(test_a_file_that_others_may_write_is_refused),
		NOTE_TEST(test_what_is_too_long_is_not_offered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
