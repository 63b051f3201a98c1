/* SPDX-License-Identifier: MIT */
#ifndef ACP_PENDING_H
#define ACP_PENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/list.h"
#include "base/span.h"

/*
 * The requests one peer has not answered yet, and the ids the broker minted for
 * them: 0, 1, 2, … of this hop alone. An id is never used twice, so a late or
 * second answer meets nothing.
 */
enum { PENDING_BUCKETS = 64 };

/* One unanswered request; embedded in what its owner wants to remember. */
struct pending {
	struct list bucket_link; // pending_table.buckets
	struct list order_link;  // pending_table.order
	uint64_t id;             // minted
	char *origin_id; // owned; raw bytes of the id the asker used; NULL: the broker's own
	size_t origin_id_len;
};

struct pending_table {
	struct list buckets[PENDING_BUCKETS]; // of struct pending, by id
	struct list order;                    // of struct pending, oldest first
	uint64_t next_id;
	int count;
	int max;
};

void pending_table_init(struct pending_table *table, int max);
void pending_table_finish(struct pending_table *table); // asserts that it is empty

/* Mints an id; origin_id is copied (empty for the broker's own). ERROR_LIMIT when full. */
bool pending_add(struct pending_table *table, struct pending *pending, struct span origin_id,
	struct error *err) ATTR_NODISCARD;

/* The request a response's raw id belongs to, or NULL. */
struct pending *pending_find(struct pending_table *table, struct span raw_id);

/* The request its asker gave this id, or NULL. */
struct pending *pending_find_origin(struct pending_table *table, struct span origin_id);

/* Takes a request out of its table; the id is forgotten, the origin id is not. */
void pending_remove(struct pending_table *table, struct pending *pending);

/* Frees what pending_add copied; after pending_remove. */
void pending_finish(struct pending *pending);

struct pending *pending_oldest(struct pending_table *table);
struct span pending_origin(const struct pending *pending);

#endif
