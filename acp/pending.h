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
 * The requests that one peer has not answered yet, and the ids that the broker made for them: 0, 1,
 * 2, … for this hop alone. An id is never used twice, so that a late or second answer matches
 * nothing.
 */
enum { PENDING_BUCKETS = 64 };

/* One unanswered request; embedded in the struct that its owner keeps for it. */
struct pending {
	struct list bucket_link; // pending_table.buckets
	struct list order_link;  // pending_table.order
	uint64_t id;             // made by pending_add
	char *origin_id; // owned; raw bytes of the requester's id; NULL for the broker's own
	                 // requests
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

/*
 * Makes an id. Copies origin_id (empty for the broker's own requests). ERROR_LIMIT if the table is
 * full.
 */
bool pending_add(struct pending_table *table, struct pending *pending, struct span origin_id,
	struct error *err) ATTR_NODISCARD;

/* The request that a response with this raw id answers, or NULL. */
struct pending *pending_find(struct pending_table *table, struct span raw_id);

/* The request to which its requester gave this id, or NULL. */
struct pending *pending_find_origin(struct pending_table *table, struct span origin_id);

/* Removes a request from its table. The id is forgotten, the origin id is not. */
void pending_remove(struct pending_table *table, struct pending *pending);

/* Frees the copy that pending_add made; call it after pending_remove. */
void pending_finish(struct pending *pending);

struct pending *pending_oldest(struct pending_table *table);
struct span pending_origin(const struct pending *pending);

#endif
