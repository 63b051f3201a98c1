/* SPDX-License-Identifier: MIT */
#include "base/git.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/library.h"

/* Whether libgit2 is in this process, asked without loading it. */
static bool is_loaded(void)
{
	void *library = dlopen(libraries[LIBRARY_GIT2].sonames[0], RTLD_LAZY | RTLD_NOLOAD);
	if (library) {
		dlclose(library);
	}
	return library != NULL;
}

static void test_the_library_is_loaded_only_when_needed(void **state)
{
	assert_false(is_loaded());
	struct error err;
	const struct git *git = git_open(&err);
	assert_non_null(git);
	assert_true(is_loaded());
	git_close();
	assert_false(is_loaded());
}

static void test_the_last_user_unloads_it(void **state)
{
	struct error err;
	const struct git *first = git_open(&err);
	const struct git *second = git_open(&err);
	assert_non_null(first);
	assert_ptr_equal(first, second);
	git_close();
	assert_true(is_loaded());
	git_config *config = NULL;
	assert_int_equal(second->config_new(&config), 0);
	second->config_free(config);
	git_close();
	assert_false(is_loaded());
}

static void test_it_can_be_loaded_again(void **state)
{
	for (int i = 0; i < 3; i++) {
		struct error err;
		const struct git *git = git_open(&err);
		assert_non_null(git);
		git_config *config = NULL;
		assert_int_equal(git->config_new(&config), 0);
		git->config_free(config);
		git_close();
	}
}

static void test_it_stays_where_threads_have_used_it(void **state)
{
	struct error err;
	assert_non_null(git_open(&err));
	git_keep_loaded();
	git_close();
	assert_true(is_loaded());
	assert_non_null(git_open(&err));
	git_close();
	assert_true(is_loaded());
}

static void test_a_failed_call_is_told_with_its_reason(void **state)
{
	struct error err;
	const struct git *git = git_open(&err);
	assert_non_null(git);
	git_config *config = NULL;
	assert_int_equal(git->config_new(&config), 0);
	int fd = memfd_create("bad", MFD_CLOEXEC);
	assert_int_equal(write(fd, "[x", 2), 2);
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_true(git->config_add_file_ondisk(config, path, GIT_CONFIG_LEVEL_APP, NULL, 0) < 0);
	close(fd);
	assert_false(error_set_git(git, &err, "reading %s", "it"));
	assert_int_equal(err.code, ERROR_SYSTEM);
	assert_int_equal(strncmp(err.text, "reading it: ", 12), 0);
	assert_true(strlen(err.text) > 12);
	git->config_free(config);
	git_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_library_is_loaded_only_when_needed),
		cmocka_unit_test(test_the_last_user_unloads_it),
		cmocka_unit_test(test_it_can_be_loaded_again),
		cmocka_unit_test(test_a_failed_call_is_told_with_its_reason),
		cmocka_unit_test(test_it_stays_where_threads_have_used_it), // the last: for good
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
