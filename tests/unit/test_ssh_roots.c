/* SPDX-License-Identifier: MIT */
#include "tests/unit/scripts_fixture.h"

#include "providers/ssh/roots.h"

/* Folders below a base, made and removed by scripts that run here. */
static struct ssh_roots roots;

static void open_roots(struct fixture *fixture, const char *setting, const char *token)
{
	ssh_roots_init(&roots, &(struct ssh_roots_config){.sandbox = fixture->sandbox,
				       .pool = fixture->context.pool,
				       .setting = setting,
				       .home = fixture->root,
				       .profile = "p",
				       .token = token});
}

/* Adds the root; returns its name there. */
static const char *add(struct fixture *fixture, const char *local)
{
	fixture->is_done = false;
	ssh_roots_add(&roots, local, on_done, fixture);
	assert_false(fixture->is_done);
	run_until(fixture, &fixture->is_done);
	if (!fixture->is_ok) {
		fail_msg("%s", fixture->err.text);
	}
	return fixture->sandbox->roots[fixture->sandbox->root_count - 1].runtime;
}

static void remove_all(struct fixture *fixture)
{
	fixture->is_done = false;
	ssh_roots_remove(&roots, on_done, fixture);
	run_until(fixture, &fixture->is_done);
}

static void run_command(const struct fixture *fixture, const char *words)
{
	char command[600];
	snprintf(command, sizeof(command), "cd '%s' && %s", fixture->root, words);
	assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): a test's own
}

static void test_a_directory_has_one_folder_with_its_name(void **state)
{
	struct fixture *fixture = *state;
	struct stat status;
	open_roots(fixture, "~/a b/c", NULL);
	char *first = mem_strdup(add(fixture, "/nowhere/at all/my-project"));
	char begin[200];
	snprintf(begin, sizeof(begin), "%s/a b/c/workspaces/my-project-", fixture->root);
	assert_memory_equal(first, begin, strlen(begin));
	assert_string_equal(strrchr(first, '/'), "/my-project");
	assert_int_equal(stat(first, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	assert_int_equal(stat(below(fixture, "a b"), &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	add(fixture, "/nowhere/at all/my-project");
	assert_int_equal(fixture->sandbox->root_count, 1);
	const char *second = add(fixture, "/elsewhere/my-project");
	assert_string_not_equal(first, second);
	ssh_roots_finish(&roots);
	open_roots(fixture, "a b/c", NULL); // another run, and another spelling of the base
	assert_string_equal(add(fixture, "/nowhere/at all/my-project"), first);
	ssh_roots_finish(&roots);
	free(first);
}

static void test_a_part_of_a_repository_lies_below_a_place_for_that(void **state)
{
	struct fixture *fixture = *state;
	char end[] = "/repo/way to/part", part[200];
	open_roots(fixture, "base", NULL);
	char *before = mem_strdup(add(fixture, below(fixture, "repo/way to/before")));
	run_command(fixture, "mkdir -p repo/.git && touch repo/.git/HEAD");
	snprintf(part, sizeof(part), "%s%s", fixture->root, end);
	char *first = mem_strdup(add(fixture, part));
	const struct sandbox_root *root = sandbox_root_at(fixture->sandbox, 1);
	assert_string_equal(first + strlen(first) - strlen(end), end);
	assert_int_equal(root->top, strlen(first) - strlen("/way to/part"));
	add(fixture, below(fixture, "repo/way to/before")); // where it was
	assert_int_equal(fixture->sandbox->root_count, 2);
	assert_int_equal(sandbox_root_at(fixture->sandbox, 0)->top, strlen(before));
	run_command(fixture, "mv repo/.git git");
	ssh_roots_finish(&roots);
	open_roots(fixture, "base", NULL);
	assert_string_equal(add(fixture, part), first); // where it was
	remove_all(fixture);
	assert_true(fixture->is_ok);
	assert_int_equal(access(first, F_OK), -1);
	assert_int_equal(access(before, F_OK), 0);
	ssh_roots_finish(&roots);
	free(first);
	free(before);
}

static void test_two_names_of_a_directory_are_one_folder(void **state)
{
	struct fixture *fixture = *state;
	char link[200];
	assert_int_equal(mkdir(below(fixture, "real"), 0755), 0);
	snprintf(link, sizeof(link), "%s/link", fixture->root);
	assert_int_equal(symlink("real", link), 0);
	open_roots(fixture, "base", NULL);
	char *first = mem_strdup(add(fixture, below(fixture, "real")));
	assert_string_equal(add(fixture, link), first);
	assert_int_equal(fixture->sandbox->root_count, 2);
	ssh_roots_finish(&roots);
	free(first);
}

static void test_names_there_are_plain(void **state)
{
	struct fixture *fixture = *state;
	static const char *const names[] = {
		"/x/-rf", "/x/..a", "/", "/x/new\nline", "/x/\xff '\"$"};
	open_roots(fixture, "base", NULL);
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		const char *name = strrchr(add(fixture, names[i]), '/') + 1;
		assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_.-"), strlen(name));
		assert_true(name[0] != '.' && name[0] != '-' && name[0] != '\0');
	}
	ssh_roots_finish(&roots);
}

static void test_what_has_a_token_shares_no_folder(void **state)
{
	struct fixture *fixture = *state;
	open_roots(fixture, "base", "one");
	char *first = mem_strdup(add(fixture, "/x/project"));
	assert_string_equal(add(fixture, "/x/project"), first);
	ssh_roots_finish(&roots);
	open_roots(fixture, "base", "two");
	assert_string_not_equal(add(fixture, "/x/project"), first);
	ssh_roots_finish(&roots);
	open_roots(fixture, "base", "one"); // a later run that was told of it
	assert_string_equal(add(fixture, "/x/project"), first);
	ssh_roots_finish(&roots);
	free(first);
}

static void test_what_is_to_be_there_is_not_made(void **state)
{
	struct fixture *fixture = *state;
	open_roots(fixture, "base", "one");
	char *first = mem_strdup(add(fixture, "/x/project"));
	ssh_roots_finish(&roots);
	open_roots(fixture, "base", "one");
	roots.is_there = true;
	assert_string_equal(add(fixture, "/x/project"), first);
	remove_all(fixture);
	ssh_roots_finish(&roots);
	open_roots(fixture, "base", "one");
	roots.is_there = true;
	fixture->is_done = false;
	ssh_roots_add(&roots, "/x/project", on_done, fixture);
	run_until(fixture, &fixture->is_done);
	assert_false(fixture->is_ok);
	assert_int_equal(fixture->err.code, ERROR_NOT_FOUND);
	assert_string_equal(fixture->err.reason, "SANDBOX_NOT_FOUND");
	assert_non_null(strstr(fixture->err.text, "exist"));
	assert_int_equal(access(first, F_OK), -1);
	ssh_roots_finish(&roots);
	free(first);
}

static void test_removing_takes_only_what_is_ours(void **state)
{
	struct fixture *fixture = *state;
	char command[600];
	open_roots(fixture, "base", NULL);
	char *theirs = mem_strdup(add(fixture, "/x/theirs"));
	ssh_roots_finish(&roots);
	open_roots(fixture, "base", NULL);
	char *ours = mem_strdup(add(fixture, "/x/ours"));
	snprintf(command, sizeof(command),
		"mkdir -p '%s/cache' '%s/outside' && : >'%s/cache/file' && : >'%s/outside/file' && "
		"ln -s '%s/outside' '%s/cache/link' && chmod 500 '%s/cache'",
		ours, fixture->root, ours, fixture->root, fixture->root, ours, ours);
	assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): a test's own
	remove_all(fixture);
	assert_true(fixture->is_ok);
	assert_int_equal(access(ours, F_OK), -1);
	assert_int_equal(access(theirs, F_OK), 0);
	assert_int_equal(access(below(fixture, "outside/file"), F_OK), 0);
	remove_all(fixture); // again: nothing is left of it
	assert_true(fixture->is_ok);
	ssh_roots_finish(&roots);
	free(ours);
	free(theirs);
}

static void test_a_base_that_cannot_be_made_is_an_error(void **state)
{
	struct fixture *fixture = *state;
	FILE *file = fopen(below(fixture, "file"), "w");
	assert_non_null(file);
	fclose(file);
	open_roots(fixture, "~/file/base", NULL);
	fixture->is_done = false;
	ssh_roots_add(&roots, "/x/project", on_done, fixture);
	run_until(fixture, &fixture->is_done);
	assert_false(fixture->is_ok);
	assert_non_null(strstr(fixture->err.text, "/x/project"));
	assert_non_null(strstr(fixture->err.text, "file/base"));
	ssh_roots_finish(&roots);
}

static void test_finishing_silences_what_is_under_way(void **state)
{
	struct fixture *fixture = *state;
	open_roots(fixture, "base", NULL);
	fixture->is_done = false;
	ssh_roots_add(&roots, "/x/one", on_done, fixture);
	ev_run(loop, EVRUN_NOWAIT);
	ssh_roots_add(&roots, "/x/two", on_done, fixture);
	ssh_roots_finish(&roots);
	for (int i = 0; i < 20; i++) {
		ev_run(loop, EVRUN_NOWAIT);
		usleep(5000);
	}
	assert_false(fixture->is_done);
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_directory_has_one_folder_with_its_name),
		cmocka_unit_test(test_a_part_of_a_repository_lies_below_a_place_for_that),
		cmocka_unit_test(test_two_names_of_a_directory_are_one_folder),
		cmocka_unit_test(test_names_there_are_plain),
		cmocka_unit_test(test_what_has_a_token_shares_no_folder),
		cmocka_unit_test(test_what_is_to_be_there_is_not_made),
		cmocka_unit_test(test_removing_takes_only_what_is_ours),
		cmocka_unit_test(test_a_base_that_cannot_be_made_is_an_error),
		cmocka_unit_test(test_finishing_silences_what_is_under_way),
	};
	struct CMUnitTest each[ARRAY_LENGTH(tests)];
	for (size_t i = 0; i < ARRAY_LENGTH(tests); i++) {
		each[i] = tests[i];
		each[i].setup_func = fixture_set_up;
		each[i].teardown_func = fixture_tear_down;
	}
	return cmocka_run_group_tests(each, NULL, NULL);
}

int main(void)
{
	return run_with_loop(run);
}
