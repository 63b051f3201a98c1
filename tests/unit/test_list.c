/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/list.h"

struct item {
	char name;
	struct list link; // in the test's list
};

/* The names from front to back, and that every link agrees with its neighbours. */
static const char *names(struct list *head)
{
	static char text[32];
	size_t len = 0;
	assert_ptr_equal(head->next->prev, head);
	LIST_FOR_EACH(item, head, struct item, link) {
		assert_true(len + 1 < sizeof(text));
		assert_ptr_equal(item->link.next->prev, &item->link);
		assert_ptr_equal(item->link.prev->next, &item->link);
		text[len++] = item->name;
	}
	text[len] = '\0';
	return text;
}

static struct item items[] = {{.name = 'a'}, {.name = 'b'}, {.name = 'c'}, {.name = 'd'}};

static void test_new_list_is_empty(void **state)
{
	struct list head;
	list_init(&head);
	assert_true(list_is_empty(&head));
	assert_null(LIST_FIRST(&head, struct item, link));
	assert_string_equal(names(&head), "");
}

static void test_append_goes_to_the_end_and_prepend_to_the_front(void **state)
{
	struct list head;
	list_init(&head);
	list_append(&head, &items[1].link);
	list_append(&head, &items[2].link);
	list_prepend(&head, &items[0].link);
	assert_false(list_is_empty(&head));
	assert_string_equal(names(&head), "abc");
	assert_ptr_equal(LIST_FIRST(&head, struct item, link), &items[0]);
}

static void test_removed_link_is_in_no_list_and_may_be_removed_again(void **state)
{
	struct list head;
	list_init(&head);
	for (size_t i = 0; i < 3; i++) {
		list_append(&head, &items[i].link);
	}
	list_remove(&items[1].link);
	assert_string_equal(names(&head), "ac");
	assert_true(list_is_empty(&items[1].link));
	list_remove(&items[1].link);
	assert_string_equal(names(&head), "ac");
	list_remove(&items[0].link);
	list_remove(&items[2].link);
	assert_true(list_is_empty(&head));
}

static void test_visited_element_may_be_removed(void **state)
{
	struct list head;
	list_init(&head);
	for (size_t i = 0; i < 4; i++) {
		list_append(&head, &items[i].link);
	}
	size_t visited = 0;
	LIST_FOR_EACH(item, &head, struct item, link) {
		visited++;
		if (item->name != 'c') {
			list_remove(&item->link);
		}
	}
	assert_int_equal(visited, 4);
	assert_string_equal(names(&head), "c");
}

static void test_move_all_appends_in_order_and_empties_the_source(void **state)
{
	struct list to;
	struct list from;
	list_init(&to);
	list_init(&from);
	list_move_all(&to, &from);
	assert_true(list_is_empty(&to));

	list_append(&from, &items[0].link);
	list_append(&from, &items[1].link);
	list_move_all(&to, &from);
	assert_string_equal(names(&to), "ab");
	assert_true(list_is_empty(&from));

	list_append(&from, &items[2].link);
	list_append(&from, &items[3].link);
	list_move_all(&to, &from);
	assert_string_equal(names(&to), "abcd");
	assert_string_equal(names(&from), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new_list_is_empty),
		cmocka_unit_test(test_append_goes_to_the_end_and_prepend_to_the_front),
		cmocka_unit_test(test_removed_link_is_in_no_list_and_may_be_removed_again),
		cmocka_unit_test(test_visited_element_may_be_removed),
		cmocka_unit_test(test_move_all_appends_in_order_and_empties_the_source),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
