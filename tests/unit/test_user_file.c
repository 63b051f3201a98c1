/* SPDX-License-Identifier: MIT */
#include "broker/init/user_file.h"

#include <dirent.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];
static char path[PATH_MAX];

static const char *below(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static int set_up(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/test-user-file-XXXXXX");
	assert_non_null(mkdtemp(folder));
	return 0;
}

static int tear_down(void **state)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static void write_file(const char *name, const char *content, mode_t mode)
{
	FILE *file = fopen(below(name), "w");
	assert_non_null(file);
	fputs(content, file);
	assert_int_equal(fchmod(fileno(file), mode), 0);
	fclose(file);
}

static void assert_file(const char *name, const char *content, mode_t mode)
{
	char text[64] = "";
	struct stat status;
	FILE *file = fopen(below(name), "r");
	assert_non_null(file);
	size_t len = fread(text, 1, sizeof(text) - 1, file);
	assert_int_equal(fstat(fileno(file), &status), 0);
	fclose(file);
	text[len] = '\0';
	assert_string_equal(text, content);
	assert_int_equal(status.st_mode & 07777, mode);
}

static size_t count_entries(void)
{
	size_t count = 0;
	DIR *dir = opendir(folder);
	while (readdir(dir)) {
		count++;
	}
	closedir(dir);
	return count - 2;
}

static bool replace(const char *name, const char *content, user_file_check *check,
	void (*meanwhile)(void), struct error *err)
{
	struct user_file file;
	char *own = mem_strdup(below(name));
	bool ok = user_file_read(&file, own, err);
	if (ok && meanwhile) {
		meanwhile();
	}
	ok = ok && user_file_replace(&file, span_of(content), check, (void *)content, err);
	user_file_finish(&file);
	free(own);
	return ok;
}

static bool refuse(void *data, const char *draft, struct error *err)
{
	assert_string_equal(data, "new");
	assert_int_equal(access(draft, R_OK), 0);
	return error_set(err, ERROR_CONFIG, "no");
}

static void test_a_new_file_is_its_users_alone(void **state)
{
	struct error err;
	assert_true(replace("one/two/f", "new", NULL, NULL, &err));
	assert_file("one/two/f", "new", 0600);
	assert_file("one/two/f", "new", 0600);
}

static void test_a_file_keeps_its_mode_and_a_link_its_target(void **state)
{
	struct error err;
	struct stat status;
	write_file("f", "old", 0640);
	assert_int_equal(symlink("f", below("link")), 0);
	assert_true(replace("link", "new", NULL, NULL, &err));
	assert_file("f", "new", 0640);
	assert_int_equal(lstat(below("link"), &status), 0);
	assert_true(S_ISLNK(status.st_mode));
	assert_int_equal(symlink("missing", below("dangling")), 0);
	assert_true(replace("dangling", "new", NULL, NULL, &err));
	assert_file("missing", "new", 0600);
}

static void test_what_is_refused_changes_nothing(void **state)
{
	struct error err;
	write_file("f", "old", 0600);
	assert_false(replace("f", "new", refuse, NULL, &err));
	assert_int_equal(err.code, ERROR_CONFIG);
	assert_file("f", "old", 0600);
	assert_int_equal(count_entries(), 1);
}

static void change_it(void)
{
	write_file("f", "theirs", 0600);
}

static void test_an_edit_in_the_meantime_is_not_lost(void **state)
{
	struct error err;
	write_file("f", "old", 0600);
	assert_false(replace("f", "new", NULL, change_it, &err));
	assert_file("f", "theirs", 0600);
	assert_int_equal(unlink(below("f")), 0);
	assert_false(replace("f", "new", NULL, change_it, &err));
	assert_file("f", "theirs", 0600);
	assert_int_equal(count_entries(), 1);
}

static void test_only_files_of_at_most_a_mebibyte_are_read(void **state)
{
	struct user_file file;
	struct error err;
	assert_false(replace(".", "new", NULL, NULL, &err));
	assert_int_equal(mkfifo(below("fifo"), 0600), 0);
	assert_false(replace("fifo", "new", NULL, NULL, &err));
	write_file("f", "", 0600);
	assert_int_equal(truncate(below("f"), USER_FILE_MAX), 0);
	assert_true(user_file_read(&file, path, &err));
	assert_int_equal(file.content.len, USER_FILE_MAX);
	user_file_finish(&file);
	assert_int_equal(truncate(below("f"), USER_FILE_MAX + 1), 0);
	assert_false(user_file_read(&file, path, &err));
	assert_non_null(strstr(err.text, "1 MiB"));
	user_file_finish(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_new_file_is_its_users_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_file_keeps_its_mode_and_a_link_its_target, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_what_is_refused_changes_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_an_edit_in_the_meantime_is_not_lost, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_only_files_of_at_most_a_mebibyte_are_read, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
