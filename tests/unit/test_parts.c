/* SPDX-License-Identifier: MIT */
#include "base/parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct name {
	char *text; // owned
	long double aligned;
};

static char finished[16]; // their first letters, in order

static void finish_name(void *part, void *owner)
{
	struct name *name = part;
	assert_string_equal(owner, "owner");
	strncat(finished, name->text, 1);
	free(name->text);
}

static const struct part_type first = {.size = sizeof(struct name), .finish = finish_name};
static const struct part_type second = {.size = sizeof(struct name), .finish = finish_name};
static void count_from_three(void *part)
{
	*(int *)part = 3;
}

static const struct part_type number = {.size = sizeof(int), .init = count_from_three};

static char owner[] = "owner";

static void set(struct parts *parts, const struct part_type *type, const char *text)
{
	struct name *name = parts_get(parts, type);
	assert_null(name->text);
	assert_int_equal((uintptr_t)&name->aligned % _Alignof(long double), 0);
	name->text = strdup(text);
}

static void test_each_type_has_its_own(void **state)
{
	struct parts parts = {NULL};
	finished[0] = '\0';
	assert_null(parts_find(&parts, &first));
	set(&parts, &first, "a");
	set(&parts, &second, "b");
	assert_int_equal(*(int *)parts_get(&parts, &number), 3);
	*(int *)parts_get(&parts, &number) = 7;
	assert_int_equal(*(int *)parts_find(&parts, &number), 7);
	assert_string_equal(((struct name *)parts_find(&parts, &first))->text, "a");
	assert_string_equal(((struct name *)parts_get(&parts, &second))->text, "b");
	parts_finish(&parts, owner);
	assert_string_equal(finished, "ba");
	assert_null(parts_find(&parts, &number));
}

static void test_one_may_go_before_the_others(void **state)
{
	struct parts parts = {NULL};
	finished[0] = '\0';
	set(&parts, &first, "a");
	set(&parts, &second, "b");
	parts_remove(&parts, &first, owner);
	parts_remove(&parts, &first, owner);
	assert_string_equal(finished, "a");
	assert_null(parts_find(&parts, &first));
	set(&parts, &first, "c"); // made anew
	parts_finish(&parts, owner);
	assert_string_equal(finished, "acb");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_type_has_its_own),
		cmocka_unit_test(test_one_may_go_before_the_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
