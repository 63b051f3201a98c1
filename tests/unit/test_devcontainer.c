/* SPDX-License-Identifier: MIT */
#include "providers/container/devcontainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/words.h"
#include "tests/support/facts.h"

/* A workspace with ".devcontainer.json" and a Dockerfile. */
static struct {
	char folder[64], source[96], dockerfile[96];
	struct writers writers;
} world;

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
	snprintf(world.folder, sizeof(world.folder), "/tmp/devcontainer-XXXXXX");
	assert_non_null(mkdtemp(world.folder));
	snprintf(world.source, sizeof(world.source), "%s/.devcontainer.json", world.folder);
	snprintf(world.dockerfile, sizeof(world.dockerfile), "%s/Dockerfile", world.folder);
	write_file(world.dockerfile, "FROM scratch\n");
	writers_init(&world.writers);
	return 0;
}

static int tear_down(void **state)
{
	unlink(world.source);
	unlink(world.dockerfile);
	rmdir(world.folder);
	return 0;
}

static bool find(const char *text, struct exec_found *out, struct error *err)
{
	const struct exec_place place = {.workspace = world.folder, .writers = &world.writers};
	write_file(world.source, text);
	*out = (struct exec_found){.source = NULL};
	return devcontainer_find(&place, out, err);
}

static void find_well(const char *text, struct exec_found *out)
{
	struct error err;
	if (!find(text, out, &err)) {
		fail_msg("%s: %s", text, err.text);
	}
}

/* The words with blanks between them; "" for none. */
static const char *line_of(char *const *words)
{
	static char line[4096];
	size_t len = 0;
	line[0] = '\0';
	for (; words && *words; words++) {
		len += (size_t)snprintf(
			line + len, sizeof(line) - len, "%s[%s]", len ? " " : "", *words);
	}
	return line;
}

static void test_an_image_or_a_dockerfile_is_found(void **state)
{
	struct exec_found found;
	find_well("{\"image\": \"debian:12\", /* x */ \"name\": \"y\",}", &found);
	assert_string_equal(found.source, world.source);
	assert_string_equal(found.image, "debian:12");
	assert_null(found.file);
	assert_null(found.writable);
	assert_string_equal(line_of(found.ignored), "");
	exec_found_finish(&found);
	find_well("{\"dockerFile\": \"Dockerfile\", \"context\": \".\"}", &found);
	assert_string_equal(found.file, world.dockerfile);
	assert_string_equal(found.folder, world.folder);
	assert_null(found.image);
	exec_found_finish(&found);
}

static void test_a_value_of_the_wrong_type_is_an_error_that_names_its_member(void **state)
{
	static const struct {
		const char *text, *member;
	} cases[] = {{"{\"image\": 1}", "image"},
		{"{\"image\": \"a\", \"build\": \"Dockerfile\"}", "build"},
		{"{\"image\": \"a\", \"build\": {\"dockerfile\": [\"Dockerfile\"]}}",
			"build.dockerfile"},
		{"{\"image\": \"a\", \"dockerFile\": {}}", "dockerFile"},
		{"{\"build\": {\"dockerfile\": \"Dockerfile\", \"context\": 7}}", "build.context"},
		{"{\"dockerFile\": \"Dockerfile\", \"context\": null}", "context"},
		{"{\"image\": \"a\\u0000b\"}", "image"}};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct exec_found found;
		struct error err;
		char facts[192];
		assert_false(find(cases[i].text, &found, &err));
		assert_int_equal(err.code, ERROR_CONFIG);
		snprintf(facts, sizeof(facts), "%s | %s: expected", world.source, cases[i].member);
		assert_names(err.text, facts);
		exec_found_finish(&found);
	}
}

static void test_the_file_that_was_read_is_the_one_that_is_judged(void **state)
{
	struct exec_found found;
	write_file(world.source, "");
	assert_return_code(chmod(world.source, 0666), 0);
	find_well("{\"image\": \"a\"}", &found);
	assert_names(found.writable, "chmod o-w");
	exec_found_finish(&found);
	unlink(world.source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_image_or_a_dockerfile_is_found),
		cmocka_unit_test(test_a_value_of_the_wrong_type_is_an_error_that_names_its_member),
		cmocka_unit_test(test_the_file_that_was_read_is_the_one_that_is_judged),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
