/* SPDX-License-Identifier: MIT */
#include "tests/unit/resolve_fixture.h"

#include "base/capture.h"

/* The linker puts this in the place of the one in base/, for a test that waits for the deadline. */
static long long asked_timeout_ms;
static bool is_hurried;

struct capture *__real_capture_start(struct ev_loop *on, struct spawner *by,
	const struct capture_spec *spec, capture_done *done, void *data, struct error *err);
struct capture *__wrap_capture_start(struct ev_loop *on, struct spawner *by,
	const struct capture_spec *spec, capture_done *done, void *data, struct error *err);
struct capture *__wrap_capture_start(struct ev_loop *on, struct spawner *by,
	const struct capture_spec *spec, capture_done *done, void *data, struct error *err)
{
	enum { HURRIED_MS = 200 };
	struct capture_spec other = *spec;
	asked_timeout_ms = spec->timeout_ms;
	other.timeout_ms = is_hurried ? HURRIED_MS : spec->timeout_ms;
	return __real_capture_start(on, by, &other, done, data, err);
}

/* ---- what may go wrong ---- */

static void test_a_host_that_is_missing_or_none_is_refused_at_once(void **state)
{
	static const char *const cases[] = {"-oProxyCommand=x", "lee@-x", "-l@x", "a b", "@",
		"lee@", "ssh://", "ssh://h:0", "ssh://h:99999", "ssh://h:x", "ssh://h:", "a\nb",
		"ssh://-x"};
	assert_false(resolve());
	assert_int_equal(raised, 0);
	assert_non_null(strstr(failure.text, "host = NAME"));
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		set("host", cases[i]);
		assert_false(resolve());
		assert_int_equal(raised, 0);
		assert_int_equal(failure.code, ERROR_CONFIG);
	}
}

static void test_what_ssh_complains_of_is_told_in_its_words(void **state)
{
	configure("devbox", "BadOption yes\n");
	assert_failure("Bad configuration option: badoption");
	assert_failure("host \"devbox\"");
	assert_int_equal(failure.code, ERROR_CONFIG);
	set("ssh-config", "/nowhere/config");
	assert_failure("/nowhere/config");
	clean(NULL);
	begin(NULL);
	configure("a;b", "");
	assert_failure("invalid characters");
}

static void test_a_token_that_is_not_known_names_its_keyword(void **state)
{
	configure("devbox", "IdentityFile /keys/%z\n");
	assert_failure("IdentityFile \"/keys/%z\": the token %z");
}

/* An ssh that hangs, or writes without end, and that comes first in PATH. */
static void put_program(const char *script)
{
	static char path_variable[PATH_MAX + 32];
	char path[PATH_MAX];
	assert_in_range(snprintf(path, sizeof(path), "%s/ssh", folder), 1, PATH_MAX - 1);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "#!/bin/sh\n%s\n", script);
	assert_int_equal(fchmod(fileno(file), 0700), 0);
	assert_int_equal(fclose(file), 0);
	snprintf(path_variable, sizeof(path_variable), "PATH=%s:/usr/bin:/bin", folder);
	environment[0] = path_variable;
}

static void remove_program(void)
{
	char path[PATH_MAX];
	assert_in_range(snprintf(path, sizeof(path), "%s/ssh", folder), 1, PATH_MAX - 1);
	unlink(path);
}

static void test_an_answer_without_end_is_refused(void **state)
{
	put_program("exec yes hostname h");
	set("host", "devbox");
	assert_failure("more than");
	assert_int_equal(failure.code, ERROR_LIMIT);
	remove_program();
}

static void test_an_older_ssh_that_answers_less_is_fine(void **state)
{
	put_program("printf 'user lee\\nhostname h\\nport 22\\nidentityfile ~/%%n\\n'; "
		    "echo warning >&2");
	set("host", "devbox");
	assert_true(resolve());
	assert_string_equal(target.identity_files[0], "/home/kim/devbox");
	remove_program();
}

static void test_a_hanging_ssh_has_the_time_that_the_profile_says(void **state)
{
	put_program("echo begun; sleep 60");
	set("host", "devbox");
	is_hurried = true;
	assert_failure("resolve-timeout");
	assert_int_equal(asked_timeout_ms, 60000);
	assert_int_equal(failure.code, ERROR_TIMEOUT);
	assert_string_equal(failure.reason, "TIMEOUT_EXCEEDED");
	set("resolve-timeout", "5m");
	assert_failure("300 s");
	is_hurried = false;
	assert_int_equal(asked_timeout_ms, 300000);
	remove_program();
}

static void test_a_resolving_can_be_cancelled(void **state)
{
	put_program("sleep 60");
	set("host", "devbox");
	raised = 0;
	ssh_resolving_cancel(ssh_target_resolve(&context, &settings, on_done, &raised, &failure));
	environment[0] = "PATH=/nowhere";
	ssh_resolving_cancel(ssh_target_resolve(&context, &settings, on_done, &raised, &failure));
	ssh_resolving_cancel(NULL);
	ev_run(loop, EVRUN_NOWAIT);
	assert_int_equal(raised, 0);
	remove_program();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_host_that_is_missing_or_none_is_refused_at_once),
		TEST(test_what_ssh_complains_of_is_told_in_its_words),
		TEST(test_a_token_that_is_not_known_names_its_keyword),
		TEST(test_an_answer_without_end_is_refused),
		TEST(test_an_older_ssh_that_answers_less_is_fine),
		TEST(test_a_hanging_ssh_has_the_time_that_the_profile_says),
		TEST(test_a_resolving_can_be_cancelled),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
