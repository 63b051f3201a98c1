/* SPDX-License-Identifier: MIT */
#include "providers/local/copy_place.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/remove_folder.h"

static char home[64];
static char work[80];

static int set_up(void **state)
{
	snprintf(home, sizeof(home), "/tmp/test-copy-place-XXXXXX");
	if (!mkdtemp(home)) {
		return -1;
	}
	snprintf(work, sizeof(work), "%s.work", home);
	return mkdir(work, 0700);
}

static int tear_down(void **state)
{
	struct error err;
	return remove_folder(home, &err) && remove_folder(work, &err) ? 0 : -1;
}

/* The folder of all sessions' copies. */
static struct copy_home home_of_all(void)
{
	struct copy_home all = {.common = strlen(home), .fd = -1};
	snprintf(all.path, sizeof(all.path), "%s", home);
	return all;
}

static struct sandbox_root *know(size_t *out_count)
{
	struct copy_home all = home_of_all();
	return copy_known(&all, out_count);
}

static void free_known(struct sandbox_root *known, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free((char *)known[i].local);
		free((char *)known[i].runtime);
	}
	free(known);
}

static void test_a_copy_is_known_by_what_lies_beside_it_and_by_its_folders_name(void **state)
{
	struct error err;
	struct copy_place place;
	size_t count;
	assert_null(know(&count));
	assert_int_equal(count, 0);
	assert_true(copy_place_of(&place, home, work, &err));
	assert_int_equal(place.top, strlen(place.runtime));
	assert_int_equal(mkdir(place.folder, 0700), 0);
	assert_int_equal(mkdir(place.runtime, 0700), 0);
	assert_null(know(&count)); // not made yet
	assert_true(copy_mark_made(&place, "/of/somebody/else", &err));
	assert_null(know(&count));
	assert_true(copy_mark_made(&place, work, &err));
	struct sandbox_root *known = know(&count);
	assert_int_equal(count, 1);
	assert_string_equal(known[0].local, work);
	assert_string_equal(known[0].runtime, place.runtime);
	free_known(known, count);
	assert_int_equal(rmdir(place.runtime), 0);
	assert_null(know(&count));
}

static void test_a_session_has_a_folder_beside_that_of_all(void **state)
{
	static const char key[] = "0123456789abcdef";
	struct error err;
	struct copy_place place;
	struct copy_home own = home_of_all();
	char wanted[PATH_MAX];
	size_t count;
	static const char *const refused[] = {"", "..", "0123456789abcde", "0123456789ABCDEF",
		"0123456789abcdef0", "../3456789abcdef"};
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		assert_false(copy_home_set_key(&own, refused[i]));
	}
	assert_true(copy_home_set_key(&own, key));
	snprintf(wanted, sizeof(wanted), "%s.%s", home, key);
	assert_string_equal(own.path, wanted);
	assert_true(copy_home_make(&own, &err));
	assert_true(own.fd >= 0);
	assert_true(copy_place_of(&place, own.path, work, &err));
	assert_int_equal(mkdir(place.folder, 0700), 0);
	assert_true(copy_place_make(&place, own.path, work, &err));
	assert_true(copy_mark_made(&place, work, &err));
	struct sandbox_root *known = know(&count);
	assert_int_equal(count, 1);
	assert_string_equal(known[0].local, work);
	assert_string_equal(known[0].runtime, place.runtime);
	free_known(known, count);
	copy_home_leave(&own); // it is not empty
	assert_int_equal(own.fd, -1);
	assert_true(copy_home_make(&own, &err));
	assert_true(remove_folder(place.folder, &err));
	copy_home_leave(&own);
	assert_int_equal(access(wanted, F_OK), -1);
	struct copy_home all = home_of_all();
	copy_home_leave(&all);
	assert_int_equal(access(home, F_OK), 0);
}

/*
 * Puts into the copy's place what an agent can put there, because the cell shows the folder around
 * it.
 */
static void put_decoy(const char *path, int kind)
{
	char below[PATH_MAX];
	snprintf(below, sizeof(below), "%s/below", path);
	(void)unlink(path);
	switch (kind) {
	case 0:
		assert_int_equal(mkfifo(path, 0600), 0);
		break;
	case 1:
		assert_int_equal(symlink("/nowhere", path), 0);
		break;
	default:
		assert_int_equal(mkdir(path, 0700), 0);
		assert_int_equal(mkdir(below, 0700), 0);
		assert_int_equal(chmod(path, 0), 0);
	}
}

static void test_what_lies_in_the_place_of_its_note_is_replaced_and_not_waited_for(void **state)
{
	struct error err;
	struct copy_place place;
	struct stat status;
	size_t count;
	assert_true(copy_place_of(&place, home, work, &err));
	assert_int_equal(mkdir(place.folder, 0700), 0);
	assert_int_equal(mkdir(place.runtime, 0700), 0);
	for (int kind = 0; kind < 3; kind++) {
		put_decoy(place.made, kind);
		assert_null(know(&count));
		assert_true(copy_mark_made(&place, work, &err));
		assert_int_equal(lstat(place.made, &status), 0);
		assert_true(S_ISREG(status.st_mode));
		struct sandbox_root *known = know(&count);
		free_known(known, count);
		assert_int_equal(count, 1);
	}
}

/* Makes a repository in the user's folder; `part` is a folder deep in it. */
static void make_part(char part[PATH_MAX])
{
	static const char *const folders[] = {"repo", "repo/.git", "repo/way", "repo/way/part"};
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		snprintf(part, PATH_MAX, "%s/%s", work, folders[i]);
		assert_int_equal(mkdir(part, 0700), 0);
	}
	char head[PATH_MAX];
	snprintf(head, sizeof(head), "%s/repo/.git/HEAD", work);
	int made = open(head, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(made >= 0);
	fd_close(&made);
}

static void check_is_part(const struct copy_place *place)
{
	char expected[PATH_MAX + 16];
	snprintf(expected, sizeof(expected), "%s/repo/way/part", place->folder);
	assert_string_equal(place->runtime, expected);
	assert_int_equal(place->top, strlen(place->folder) + strlen("/repo"));
}

static void test_a_part_of_a_repository_lies_below_a_place_for_that(void **state)
{
	struct error err;
	struct copy_place place, again;
	char part[PATH_MAX];
	size_t count;
	make_part(part);
	int fd = copy_start(home, part, &place);
	assert_true(fd >= 0);
	check_is_part(&place);
	copy_start_end(fd, home, &place); // with the way to it
	assert_int_not_equal(access(home, F_OK), 0);
	assert_int_equal(mkdir(home, 0700), 0);
	fd = copy_start(home, part, &place);
	assert_true(copy_mark_made(&place, part, &err));
	fd_close(&fd);
	char hidden[PATH_MAX], folder[PATH_MAX];
	snprintf(folder, sizeof(folder), "%s/repo/.git", work);
	snprintf(hidden, sizeof(hidden), "%s/hidden", work);
	assert_int_equal(rename(folder, hidden), 0);
	assert_true(copy_place_make(&again, home, part, &err)); // it stays where it is
	check_is_part(&again);
	struct sandbox_root *known = know(&count);
	assert_int_equal(count, 1);
	assert_string_equal(known[0].runtime, place.runtime);
	assert_int_equal(known[0].top, place.top);
	free_known(known, count);
}

static void test_a_copy_of_before_stays_where_it_is(void **state)
{
	struct error err;
	struct copy_place place, again;
	char part[PATH_MAX];
	make_part(part);
	assert_true(copy_place_of(&place, home, part, &err));
	assert_int_equal(mkdir(place.folder, 0700), 0);
	assert_int_equal(mkdir(place.runtime, 0700), 0);
	assert_true(copy_place_make(&again, home, part, &err));
	assert_string_equal(again.runtime, place.runtime);
	assert_int_equal(again.top, strlen(place.runtime));
}

static void test_nothing_is_made_through_a_link_on_the_way(void **state)
{
	struct error err;
	struct copy_place place;
	char part[PATH_MAX], way[PATH_MAX + 16], real[PATH_MAX + 16];
	make_part(part);
	int fd = copy_start(home, part, &place);
	fd_close(&fd);
	snprintf(way, sizeof(way), "%s/repo/way", place.folder);
	snprintf(real, sizeof(real), "%s/aside", place.folder);
	assert_int_equal(rename(way, real), 0);
	assert_int_equal(symlink(real, way), 0);
	assert_false(copy_place_make(&place, home, part, &err));
	assert_non_null(strstr(err.text, "repo/way"));
	assert_int_equal(copy_start(home, part, &place), -1);
}

static void test_a_place_that_somebody_has_changed_leads_nowhere_else(void **state)
{
	struct error err;
	struct copy_place place;
	char part[PATH_MAX];
	make_part(part);
	assert_true(copy_place_of(&place, home, part, &err));
	assert_int_equal(mkdir(place.folder, 0700), 0);
	int made = open(place.place, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd_write_all(made, SPAN_LITERAL("../../etc"), &err));
	fd_close(&made);
	assert_true(copy_place_of(&place, home, part, &err));
	assert_string_equal(strrchr(place.runtime, '/'), "/part");
	assert_int_equal(place.top, strlen(place.runtime));
}

static void test_the_last_one_removes_a_start_folder_that_nobody_has_used(void **state)
{
	struct copy_place place, other;
	int fd = copy_start(home, work, &place);
	int second = copy_start(home, work, &other);
	assert_true(fd >= 0 && second >= 0);
	assert_string_equal(place.runtime, other.runtime);
	copy_start_end(fd, home, &place);
	assert_int_equal(access(place.runtime, F_OK), 0); // another agent is in it
	copy_start_end(second, home, &place);
	assert_int_not_equal(access(home, F_OK), 0);
	assert_int_equal(mkdir(home, 0700), 0);
}

static void test_a_start_folder_stays_once_it_is_a_copy_or_holds_something(void **state)
{
	struct error err;
	struct copy_place place;
	int fd = copy_start(home, work, &place);
	assert_true(copy_mark_made(&place, work, &err));
	copy_start_end(fd, home, &place);
	assert_int_equal(access(place.runtime, F_OK), 0);
	assert_int_equal(unlink(place.made), 0);
	char file[PATH_MAX + 8];
	snprintf(file, sizeof(file), "%s/file", place.runtime);
	fd = copy_start(home, work, &place);
	int made = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(made >= 0);
	fd_close(&made);
	copy_start_end(fd, home, &place);
	assert_int_equal(access(file, F_OK), 0);
}

static void put_file(const char *folder, const char *name)
{
	char file[PATH_MAX + 16];
	snprintf(file, sizeof(file), "%s/%s", folder, name);
	int made = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(made >= 0);
	fd_close(&made);
}

/* One broker's session ends while another broker's agent has started and has no session yet. */
static void test_a_copy_is_removed_but_for_the_folder_in_which_another_agent_is(void **state)
{
	struct error err;
	struct copy_place place;
	struct stat before, after;
	char inner[PATH_MAX + 16];
	int fd = copy_start(home, work, &place);
	int second = copy_start(home, work, &place);
	assert_int_equal(fstat(second, &before), 0);
	assert_true(copy_mark_made(&place, work, &err));
	snprintf(inner, sizeof(inner), "%s/inner", place.runtime);
	assert_int_equal(mkdir(inner, 0700), 0);
	put_file(inner, "secret");
	put_file(place.runtime, ".env");
	assert_true(copy_place_remove(
		&(struct sandbox_root){.runtime = place.runtime, .top = place.top}, fd, &err));
	copy_start_end(fd, home, &place);
	assert_int_equal(stat(place.runtime, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_not_equal(access(place.made, F_OK), 0);
	copy_start_end(second, home, &place); // empty, and not made: it goes
	assert_int_not_equal(access(home, F_OK), 0);
	assert_int_equal(mkdir(home, 0700), 0);
}

static void test_a_part_is_removed_but_for_the_way_to_another_agent(void **state)
{
	struct error err;
	struct copy_place place;
	char part[PATH_MAX], top[PATH_MAX];
	make_part(part);
	int fd = copy_start(home, part, &place);
	int second = copy_start(home, part, &place);
	assert_true(copy_mark_made(&place, part, &err));
	put_file(place.runtime, ".env");
	snprintf(top, sizeof(top), "%s/repo", place.folder);
	put_file(top, ".git");
	assert_true(copy_place_remove(
		&(struct sandbox_root){.runtime = place.runtime, .top = place.top}, fd, &err));
	copy_start_end(fd, home, &place);
	assert_int_equal(access(place.runtime, F_OK), 0);
	copy_start_end(second, home, &place); // all is empty, and not made: it goes
	assert_int_not_equal(access(home, F_OK), 0);
	assert_int_equal(mkdir(home, 0700), 0);
}

static void test_a_copy_that_nobody_else_is_in_is_removed(void **state)
{
	struct error err;
	struct copy_place place;
	for (int held = 0; held < 2; held++) {
		int fd = copy_start(home, work, &place);
		assert_true(copy_mark_made(&place, work, &err));
		put_file(place.runtime, "file");
		if (!held) {
			fd_close(&fd);
		}
		assert_true(copy_place_remove(
			&(struct sandbox_root){.runtime = place.runtime, .top = place.top}, fd,
			&err));
		assert_int_not_equal(access(place.folder, F_OK), 0);
		copy_start_end(fd, home, &place);
	}
}

static void test_no_agent_is_started_in_what_is_being_removed(void **state)
{
	struct copy_place place;
	int first = copy_start(home, work, &place);
	assert_int_equal(flock(first, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(copy_start(home, work, &place), -1);
	fd_close(&first);
	first = copy_start(home, work, &place);
	assert_true(first >= 0);
	fd_close(&first);
}

static void test_there_is_none_for_what_the_copies_lie_in_or_what_is_not_there(void **state)
{
	struct copy_place place;
	assert_int_equal(copy_start(home, "/", &place), -1);
	assert_int_equal(copy_start(home, home, &place), -1);
	assert_int_equal(copy_start(home, "/nowhere/at/all", &place), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_what_lies_in_the_place_of_its_note_is_replaced_and_not_waited_for,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_copy_is_known_by_what_lies_beside_it_and_by_its_folders_name, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_session_has_a_folder_beside_that_of_all, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_part_of_a_repository_lies_below_a_place_for_that, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_copy_of_before_stays_where_it_is, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_nothing_is_made_through_a_link_on_the_way, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_place_that_somebody_has_changed_leads_nowhere_else, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_part_is_removed_but_for_the_way_to_another_agent, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_the_last_one_removes_a_start_folder_that_nobody_has_used, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_start_folder_stays_once_it_is_a_copy_or_holds_something, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_copy_is_removed_but_for_the_folder_in_which_another_agent_is, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_copy_that_nobody_else_is_in_is_removed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_no_agent_is_started_in_what_is_being_removed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_there_is_none_for_what_the_copies_lie_in_or_what_is_not_there, set_up,
			tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
