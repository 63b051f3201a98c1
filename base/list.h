/* SPDX-License-Identifier: MIT */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <assert.h>
#include <stdbool.h>

#include "base/attr.h"

/*
 * A circular list whose links lie in the elements. A head and a link are the same struct. A link
 * that is in no list points to itself, once it was initialised or removed.
 */
struct list {
	struct list *prev;
	struct list *next;
};

static inline void list_init(struct list *list)
{
	list->prev = list;
	list->next = list;
}

static inline bool list_is_empty(const struct list *head)
{
	return head->next == head;
}

static inline void list_insert_between(struct list *prev, struct list *link, struct list *next)
{
	assert(prev && next); // the list was initialised
	link->prev = prev;
	link->next = next;
	prev->next = link;
	next->prev = link;
}

static inline void list_append(struct list *head, struct list *link)
{
	list_insert_between(head->prev, link, head);
}

static inline void list_prepend(struct list *head, struct list *link)
{
	list_insert_between(head, link, head->next);
}

static inline void list_remove(struct list *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	list_init(link);
}

/* Appends all elements of *from to *to, in their order; *from is empty afterwards. */
static inline void list_move_all(struct list *to, struct list *from)
{
	if (!list_is_empty(from)) {
		from->next->prev = to->prev;
		to->prev->next = from->next;
		from->prev->next = to;
		to->prev = from->prev;
		list_init(from);
	}
}

#define LIST_ENTRY(link, type, member) CONTAINER_OF(link, type, member)

/* The first element, or NULL. */
#define LIST_FIRST(head, type, member)                                                             \
	(list_is_empty(head) ? NULL : LIST_ENTRY((head)->next, type, member))

/* Visits every element. The body may remove the visited element, but no other. */
// NOLINTBEGIN(bugprone-macro-parentheses): types and names take none
#define LIST_FOR_EACH(item, head, type, member)                                                    \
	for (type *item = LIST_ENTRY((head)->next, type, member),                                  \
		  *item##_next = LIST_ENTRY(item->member.next, type, member);                      \
		&item->member != (head);                                                           \
		item = item##_next, item##_next = LIST_ENTRY(item->member.next, type, member))
// NOLINTEND(bugprone-macro-parentheses)

#endif
