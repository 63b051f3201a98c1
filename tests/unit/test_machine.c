/* SPDX-License-Identifier: MIT */
#include "base/machine.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

/* A root of a file system, and below it a folder for what is remembered. */
struct place {
	char root[64];
	char state[80];
};

static const char theirs[] = "0123456789abcdef0123456789abcdef";

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	assert_non_null(place);
	snprintf(place->root, sizeof(place->root), "/tmp/test-machine-XXXXXX");
	assert_non_null(mkdtemp(place->root));
	snprintf(place->state, sizeof(place->state), "%s/home/state", place->root);
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", place->root);
	assert_int_equal(system(command), 0);
	free(place);
	return 0;
}

static void run(const struct place *place, const char *script)
{
	char command[512];
	snprintf(command, sizeof(command), "cd %s && mkdir -p etc run && %s", place->root, script);
	assert_int_equal(system(command), 0);
}

static void read_machine(const struct place *place, char machine[MACHINE_ID_SIZE])
{
	struct error err;
	if (!machine_id_read(place->root, place->state, machine, &err)) {
		fail_msg("%s", err.text);
	}
}

static void test_a_machine_has_its_own_id(void **state)
{
	char machine[MACHINE_ID_SIZE];
	run(*state, "echo 0123456789abcdef0123456789abcdef > etc/machine-id");
	read_machine(*state, machine);
	assert_string_equal(machine, theirs);
	run(*state, "test ! -e home"); // nothing is made before it is needed
}

static void test_without_one_an_id_is_made_once(void **state)
{
	static const char *const lacks[] = {"rm -f etc/machine-id", ": > etc/machine-id",
		"echo uninitialized > etc/machine-id",
		"echo 0123456789abcdef0123456789abcdef > etc/machine-id; : > .dockerenv",
		"rm .dockerenv; : > run/.containerenv"};
	char first[MACHINE_ID_SIZE], again[MACHINE_ID_SIZE];
	for (size_t i = 0; i < sizeof(lacks) / sizeof(lacks[0]); i++) {
		run(*state, lacks[i]);
		read_machine(*state, i == 0 ? first : again);
		assert_string_not_equal(i == 0 ? first : again, theirs);
		if (i > 0) {
			assert_string_equal(again, first);
		}
	}
	run(*state, "test \"$(ls home/state)\" = machine-id");
	run(*state, "rm -r home");
	read_machine(*state, again);
	assert_string_not_equal(again, first);
}

static void test_all_who_come_at_once_have_one_id(void **state)
{
	enum { COUNT = 20 };
	char first[MACHINE_ID_SIZE], other[MACHINE_ID_SIZE];
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	pid_t children[COUNT];
	for (int i = 0; i < COUNT; i++) {
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (children[i] == 0) {
			const struct place *place = *state;
			struct error err;
			memset(other, 0, sizeof(other));
			bool ok = machine_id_read(place->root, place->state, other, &err);
			_exit(!ok || write(ends[1], other, sizeof(other)) != sizeof(other));
		}
	}
	for (int i = 0; i < COUNT; i++) {
		int status;
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
		assert_int_equal(
			read(ends[0], i == 0 ? first : other, sizeof(other)), sizeof(other));
		if (i > 0) {
			assert_string_equal(other, first);
		}
	}
	close(ends[0]);
	close(ends[1]);
	run(*state, "test \"$(ls home/state)\" = machine-id");
}

static void test_what_is_no_id_is_said_and_stays(void **state)
{
	const struct place *place = *state;
	char machine[MACHINE_ID_SIZE];
	struct error err;
	run(place, "mkdir -p home/state && echo mine > home/state/machine-id");
	assert_false(machine_id_read(place->root, place->state, machine, &err));
	assert_int_equal(err.code, ERROR_CONFIG);
	assert_non_null(strstr(err.text, "/home/state/machine-id is not an id"));
	run(place, "test \"$(cat home/state/machine-id)\" = mine");
	run(place, "rm -r home && : > home"); // no folder can be made there
	assert_false(machine_id_read(place->root, place->state, machine, &err));
	assert_non_null(strstr(err.text, place->root));
}

static void test_where_nothing_is_remembered_the_name_does(void **state)
{
	const struct place *place = *state;
	char machine[MACHINE_ID_SIZE], name[MACHINE_ID_SIZE] = "";
	struct error err;
	assert_int_equal(gethostname(name, sizeof(name) - 1), 0);
	assert_true(machine_id_read(place->root, NULL, machine, &err));
	assert_string_equal(machine, name);
	assert_true(machine_id_read(place->root, "", machine, &err));
	assert_string_equal(machine, name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_machine_has_its_own_id, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_without_one_an_id_is_made_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_all_who_come_at_once_have_one_id, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_what_is_no_id_is_said_and_stays, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_where_nothing_is_remembered_the_name_does, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
