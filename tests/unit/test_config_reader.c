/* SPDX-License-Identifier: MIT */
#include "tests/unit/config_fixture.h"

/* ---- the file itself ---- */

static void test_only_a_regular_file_is_read(void **state)
{
	struct fixture *fixture = *state;
	assert_int_equal(mkfifo(fixture->file, 0600), 0);
	assert_mistake(fixture, &with_agent, "FILE | regular file");
	assert_int_equal(unlink(fixture->file), 0);
	assert_int_equal(mkdir(fixture->file, 0700), 0);
	assert_mistake(fixture, &with_agent, "FILE | it is a directory");
	assert_int_equal(rmdir(fixture->file), 0);
	assert_int_equal(symlink(fixture->file, fixture->file), 0);
	assert_mistake(fixture, &with_agent, "FILE: Too many levels of symbolic links");
}

static void test_an_unreadable_file_is_a_mistake(void **state)
{
	struct fixture *fixture = *state;
	if (geteuid() == 0) {
		skip();
	}
	write_config(fixture, "");
	assert_int_equal(chmod(fixture->file, 0), 0);
	assert_mistake(fixture, &with_agent, "FILE: Permission denied");
}

static void test_a_huge_file_is_refused(void **state)
{
	struct fixture *fixture = *state;
	char *text = mem_alloc(CONFIG_FILE_MAX + 1);
	memset(text, '#', CONFIG_FILE_MAX + 1);
	write_bytes(fixture->file, text, CONFIG_FILE_MAX);
	assert_loads(fixture, &with_agent);
	config_finish(&fixture->config);
	write_bytes(fixture->file, text, CONFIG_FILE_MAX + 1);
	assert_mistake(fixture, &with_agent, "FILE | at most 1 MiB");
	free(text);
}

static void test_a_file_that_unfolds_is_refused(void **state)
{
	struct fixture *fixture = *state;
	enum { NAME = 100 << 10, KEYS = 1000 };
	char *text = mem_alloc(CONFIG_FILE_MAX);
	size_t len = (size_t)snprintf(text, CONFIG_FILE_MAX, "[agent \"");
	memset(text + len, 'n', NAME);
	len += NAME;
	len += (size_t)snprintf(text + len, CONFIG_FILE_MAX - len, "\"]\n");
	for (int i = 0; i < KEYS; i++) {
		len += (size_t)snprintf(text + len, CONFIG_FILE_MAX - len, "arg = %d\n", i);
	}
	write_bytes(fixture->file, text, len);
	free(text);
	assert_mistake(fixture, &with_agent, "FILE: too many settings");
}

static void test_a_nul_byte_is_refused(void **state)
{
	struct fixture *fixture = *state;
	static const char text[] = "[broker]\nprofile = x\0y\n";
	write_bytes(fixture->file, text, sizeof(text) - 1);
	assert_mistake(fixture, &with_agent, "FILE:2 | NUL");
}

static void test_an_included_file_is_never_opened(void **state)
{
	struct fixture *fixture = *state;
	char fifo[PATH_BYTES];
	char text[PATH_BYTES + 32];
	snprintf(fifo, sizeof(fifo), "%.400s/fifo", fixture->home);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	snprintf(text, sizeof(text), "[include]\npath = %s\n", fifo);
	write_config(fixture, text);
	/* Opening the FIFO would hang. */
	assert_mistake(fixture, &with_agent, "FILE:2 | [include]");
}

static void test_a_file_inside_the_workspace_is_refused(void **state)
{
	struct fixture *fixture = *state;
	char work[PATH_BYTES];
	char inside[PATH_BYTES];
	char link[PATH_BYTES];
	char expected[ERROR_TEXT_MAX + PATH_BYTES];
	snprintf(work, sizeof(work), "%.400s/work", fixture->home);
	snprintf(inside, sizeof(inside), "%.400s/config", work);
	snprintf(link, sizeof(link), "%.400s/link", fixture->home);
	write_bytes(inside, "", 0);
	assert_int_equal(symlink(inside, link), 0);
	struct options options = with_agent;
	options.workspace = work;
	const char *const named[] = {inside, link};
	for (size_t i = 0; i < ARRAY_LENGTH(named); i++) {
		options.config = named[i];
		snprintf(
			expected, sizeof(expected), "%s | workspace %s | --config", named[i], work);
		assert_mistake(fixture, &options, expected);
	}
	options.config = NULL;
	assert_loads(fixture, &options);
	assert_string_equal(fixture->config.workspace, work);
	config_finish(&fixture->config);
	write_config(fixture, "");
	options.workspace = fixture->home;
	assert_false(load(fixture, &options));
	assert_non_null(strstr(fixture->err.text, "is never read"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONFIG_TEST(test_only_a_regular_file_is_read),
		CONFIG_TEST(test_an_unreadable_file_is_a_mistake),
		CONFIG_TEST(test_a_huge_file_is_refused),
		CONFIG_TEST(test_a_file_that_unfolds_is_refused),
		CONFIG_TEST(test_a_nul_byte_is_refused),
		CONFIG_TEST(test_an_included_file_is_never_opened),
		CONFIG_TEST(test_a_file_inside_the_workspace_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
