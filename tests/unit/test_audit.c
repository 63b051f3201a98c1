/* SPDX-License-Identifier: MIT */
#include "broker/policy/audit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json_doc.h"
#include "base/secrets.h"
#include "base/text.h"
#include "tests/support/facts.h"
#include "tests/unit/stderr_capture.h"

enum { TEXT_MAX = 1 << 20, SIZE = 1000 };

static char folder[64];
static char path[96];
static struct capture capture;
static struct secrets *secrets;
static const char *const environment[] = {"MY_TOKEN=open sesame \"1\"", NULL};

static const char *numbered(int number)
{
	static char name[128];
	snprintf(name, sizeof(name), number > 0 ? "%s.%d" : "%s", path, number);
	return name;
}

static int set_up(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/test-audit-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/audit", folder);
	capture_pipe(&capture);
	secrets = secrets_create(environment, NULL);
	return 0;
}

static int tear_down(void **state)
{
	capture_stop(&capture);
	secrets_destroy(secrets);
	for (int number = 0; number <= AUDIT_KEPT + 1; number++) {
		unlink(numbered(number));
	}
	assert_int_equal(rmdir(folder), 0);
	return 0;
}

static struct audit *open_audit(void)
{
	struct error err;
	struct audit *audit = audit_open(path, SIZE, secrets, &err);
	if (!audit) {
		fail_msg("%s", err.text);
	}
	return audit;
}

static void write_subject(struct audit *audit, const char *subject)
{
	audit_write(audit, &(struct audit_line){
				   .session = "s-1",
				   .operation = "terminal/create",
				   .subject = subject,
				   .rule = "mode = ask-all",
				   .decision = POLICY_ALLOW_ONCE,
				   .by = AUDIT_BY_PERSON,
			   });
}

/* The content of a file, valid until the next call; "" if there is no file. */
static const char *content(int number)
{
	static char text[TEXT_MAX];
	FILE *file = fopen(numbered(number), "r");
	size_t len = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	if (file) {
		fclose(file);
	}
	text[len] = '\0';
	return text;
}

static int line_count(int number)
{
	int count = 0;
	for (const char *at = content(number); *at; at++) {
		count += *at == '\n';
	}
	return count;
}

/* The member of the file's first line. */
static void assert_member(const char *name, const char *expected)
{
	const char *text = content(0);
	struct json_doc *doc = json_doc_parse((struct span){text, strcspn(text, "\n")}, NULL);
	assert_non_null(doc);
	if (!json_string_is(doc, json_get(doc, 0, name), expected)) {
		fail_msg("%s is not %s in %s", name, expected, text);
	}
	json_doc_destroy(doc);
}

static void test_a_decision_is_one_line_of_json(void **state)
{
	struct stat status;
	struct audit *audit = open_audit();
	write_subject(audit, "git commit -m \"a\nb\"");
	assert_int_equal(line_count(0), 1);
	assert_member("session", "s-1");
	assert_member("operation", "terminal/create");
	assert_member("subject", "git commit -m \"a\nb\"");
	assert_member("rule", "mode = ask-all");
	assert_member("decision", "allow-once");
	assert_member("by", "person");
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	audit_close(audit);
}

static void test_lines_are_appended_to_what_is_there(void **state)
{
	for (int i = 0; i < 3; i++) {
		struct audit *audit = open_audit();
		write_subject(audit, "x");
		audit_close(audit);
	}
	assert_int_equal(line_count(0), 3);
}

static void test_a_session_that_is_not_known_is_null(void **state)
{
	struct audit *audit = open_audit();
	struct audit_line line = {.operation = "o",
		.subject = "s",
		.rule = "r",
		.decision = POLICY_REJECT_ONCE,
		.by = AUDIT_BY_NOBODY};
	audit_write(audit, &line);
	assert_non_null(strstr(content(0), "\"session\":null"));
	assert_null(strstr(content(0), "variables"));
	assert_member("by", "nobody");
	line.variables = "[\"A\",\"B\"]";
	audit_write(audit, &line);
	assert_non_null(strstr(content(0), "\"subject\":\"s\",\"variables\":[\"A\",\"B\"],"));
	audit_close(audit);
}

static void test_a_connection_has_its_way_and_what_became_of_it(void **state)
{
	struct audit *audit = open_audit();
	const struct audit_connection refused = {.way = "socket"};
	struct audit_line line = {.operation = "network/connect",
		.subject = "a.example:443",
		.rule = "network = allow",
		.connection = &refused,
		.decision = POLICY_REJECT_ONCE,
		.by = AUDIT_BY_POLICY};
	audit_write(audit, &line);
	assert_member("way", "socket");
	assert_null(strstr(content(0), "result"));
	assert_null(strstr(content(0), "serverName"));
	assert_null(strstr(content(0), "leftOut"));
	const struct audit_connection allowed = {
		.way = "socks", .result = "connected", .server_name = "b.example", .left_out = 7};
	line.connection = &allowed;
	audit_write(audit, &line);
	assert_non_null(strstr(content(0), "\"way\":\"socks\",\"result\":\"connected\","
					   "\"serverName\":\"b.example\",\"leftOut\":7}"));
	audit_close(audit);
}

static void test_known_secrets_are_masked_as_json_spells_them(void **state)
{
	struct audit *audit = open_audit();
	write_subject(audit, "login --token 'open sesame \"1\"'");
	assert_member("subject", "login --token '***'");
	audit_close(audit);
}

static void test_a_long_subject_is_cut_after_its_secrets_are_masked(void **state)
{
	struct error err;
	struct audit *audit = audit_open(path, TEXT_MAX, secrets, &err);
	char *subject = mem_alloc_zero(2 * AUDIT_SUBJECT_MAX + 1);
	memset(subject, 'a', 2 * AUDIT_SUBJECT_MAX);
	memcpy(subject + AUDIT_SUBJECT_MAX - 8, "open sesame \"1\"", 15);
	write_subject(audit, subject);
	assert_null(strstr(content(0), "open"));
	assert_non_null(strstr(content(0), "aaa***aa" TEXT_CUT "\""));
	assert_in_range(strlen(content(0)), AUDIT_SUBJECT_MAX, AUDIT_SUBJECT_MAX + 300);
	free(subject);
	audit_close(audit);
}

static void test_a_full_file_is_renamed_and_three_old_ones_are_kept(void **state)
{
	struct audit *audit = open_audit();
	for (int i = 0; i < 60; i++) {
		char subject[16];
		snprintf(subject, sizeof(subject), "number %d", i);
		write_subject(audit, subject);
	}
	struct stat status;
	for (int number = 0; number <= AUDIT_KEPT; number++) {
		assert_int_equal(stat(numbered(number), &status), 0);
		assert_in_range(status.st_size, 1, SIZE);
		assert_int_equal(status.st_mode & 0777, 0600);
	}
	assert_int_equal(stat(numbered(AUDIT_KEPT + 1), &status), -1);
	assert_non_null(strstr(content(0), "number 59\""));
	audit_close(audit);
}

static void test_a_line_longer_than_a_file_gets_one_of_its_own(void **state)
{
	struct audit *audit = open_audit();
	char subject[2 * SIZE];
	memset(subject, 'x', sizeof(subject) - 1);
	subject[sizeof(subject) - 1] = '\0';
	write_subject(audit, subject);
	write_subject(audit, "short");
	assert_int_equal(line_count(0), 1);
	assert_int_equal(line_count(1), 1);
	audit_close(audit);
}

static void test_several_brokers_write_one_file_without_losing_a_line(void **state)
{
	struct audit *one = open_audit();
	struct audit *two = open_audit();
	for (int i = 0; i < 8; i++) {
		write_subject(one, "of one");
		write_subject(two, "of two");
	}
	int count = 0;
	for (int number = 0; number <= AUDIT_KEPT; number++) {
		count += line_count(number);
	}
	assert_int_equal(count, 16);
	audit_close(one);
	audit_close(two);
}

static void test_a_file_that_was_moved_away_is_made_anew(void **state)
{
	struct audit *audit = open_audit();
	write_subject(audit, "before");
	assert_int_equal(unlink(path), 0);
	write_subject(audit, "after");
	assert_int_equal(line_count(0), 1);
	assert_non_null(strstr(content(0), "after"));
	audit_close(audit);
}

static void test_what_is_no_regular_file_is_a_mistake(void **state)
{
	struct error err;
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_null(audit_open(path, SIZE, secrets, &err));
	assert_int_equal(err.code, ERROR_CONFIG);
	assert_null(audit_open(folder, SIZE, secrets, &err));
	assert_int_equal(err.code, ERROR_CONFIG);
	char missing[sizeof(folder) + 16];
	snprintf(missing, sizeof(missing), "%s/none/audit", folder);
	assert_null(audit_open(missing, SIZE, secrets, &err));
	assert_int_equal(err.code, ERROR_CONFIG);
	assert_non_null(strstr(err.text, missing));
}

static void test_a_failed_write_is_said_once_and_ends_the_log(void **state)
{
	struct audit *audit = open_audit();
	write_subject(audit, "before");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	write_subject(audit, "lost");
	assert_names(logged(&capture), "nothing more");
	write_subject(audit, "lost too");
	assert_string_equal(logged(&capture), "");
	audit_close(audit);
	assert_int_equal(rmdir(path), 0);
}

static void test_without_a_log_nothing_is_done(void **state)
{
	write_subject(NULL, "nothing");
	audit_close(NULL);
}

static void test_who_decided_has_a_name(void **state)
{
	assert_string_equal(audit_by_name(AUDIT_BY_POLICY), "policy");
	assert_string_equal(audit_by_name(AUDIT_BY_REMEMBERED), "remembered");
	assert_string_equal(audit_by_name(AUDIT_BY_TIMEOUT), "timeout");
	assert_string_equal(audit_by_name(AUDIT_BY_EDITOR), "editor");
}

#define AUDIT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		AUDIT_TEST(test_a_decision_is_one_line_of_json),
		AUDIT_TEST(test_lines_are_appended_to_what_is_there),
		AUDIT_TEST(test_a_session_that_is_not_known_is_null),
		AUDIT_TEST(test_a_connection_has_its_way_and_what_became_of_it),
		AUDIT_TEST(test_known_secrets_are_masked_as_json_spells_them),
		AUDIT_TEST(test_a_long_subject_is_cut_after_its_secrets_are_masked),
		AUDIT_TEST(test_a_full_file_is_renamed_and_three_old_ones_are_kept),
		AUDIT_TEST(test_a_line_longer_than_a_file_gets_one_of_its_own),
		AUDIT_TEST(test_several_brokers_write_one_file_without_losing_a_line),
		AUDIT_TEST(test_a_file_that_was_moved_away_is_made_anew),
		AUDIT_TEST(test_what_is_no_regular_file_is_a_mistake),
		AUDIT_TEST(test_a_failed_write_is_said_once_and_ends_the_log),
		cmocka_unit_test(test_without_a_log_nothing_is_done),
		cmocka_unit_test(test_who_decided_has_a_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
