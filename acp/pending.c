/* SPDX-License-Identifier: MIT */
#include "acp/pending.h"

#include <assert.h>
#include <stdlib.h>

#include "base/buf.h"

enum { ID_DIGITS_MAX = 15 }; // below 2^53, which every JSON reader keeps exactly

void pending_table_init(struct pending_table *table, int max)
{
	*table = (struct pending_table){.max = max};
	list_init(&table->order);
	for (size_t i = 0; i < PENDING_BUCKETS; i++) {
		list_init(&table->buckets[i]);
	}
}

void pending_table_finish(struct pending_table *table)
{
	assert(table->count == 0);
	assert(list_is_empty(&table->order));
}

bool pending_add(struct pending_table *table, struct pending *pending, struct span origin_id,
	struct error *err)
{
	if (table->count >= table->max) {
		return error_set_reason(err, ERROR_LIMIT, "RESOURCE_LIMIT_EXCEEDED",
			"%d requests are already waiting for an answer", table->max);
	}
	pending->id = table->next_id++;
	pending->origin_id = origin_id.len > 0 ? mem_strndup(origin_id) : NULL;
	pending->origin_id_len = origin_id.len;
	list_append(&table->buckets[pending->id % PENDING_BUCKETS], &pending->bucket_link);
	list_append(&table->order, &pending->order_link);
	table->count++;
	return true;
}

/* Reads 0, 1, 2, … as the broker writes them; false for every other spelling. */
static bool parse_minted(struct span raw, uint64_t *out_id)
{
	if (raw.len == 0 || raw.len > ID_DIGITS_MAX || (raw.data[0] == '0' && raw.len > 1)) {
		return false;
	}
	uint64_t id = 0;
	for (size_t i = 0; i < raw.len; i++) {
		if (raw.data[i] < '0' || raw.data[i] > '9') {
			return false;
		}
		id = id * 10 + (uint64_t)(raw.data[i] - '0');
	}
	*out_id = id;
	return true;
}

struct pending *pending_find(struct pending_table *table, struct span raw_id)
{
	uint64_t id;
	if (!parse_minted(raw_id, &id)) {
		return NULL;
	}
	LIST_FOR_EACH(pending, &table->buckets[id % PENDING_BUCKETS], struct pending, bucket_link) {
		if (pending->id == id) {
			return pending;
		}
	}
	return NULL;
}

struct span pending_origin(const struct pending *pending)
{
	return (struct span){pending->origin_id, pending->origin_id_len};
}

struct pending *pending_find_origin(struct pending_table *table, struct span origin_id)
{
	if (origin_id.len == 0) {
		return NULL;
	}
	LIST_FOR_EACH(pending, &table->order, struct pending, order_link) {
		if (span_equals(pending_origin(pending), origin_id)) {
			return pending;
		}
	}
	return NULL;
}

void pending_remove(struct pending_table *table, struct pending *pending)
{
	list_remove(&pending->bucket_link);
	list_remove(&pending->order_link);
	table->count--;
}

void pending_finish(struct pending *pending)
{
	free(pending->origin_id);
	pending->origin_id = NULL;
}

struct pending *pending_oldest(struct pending_table *table)
{
	return LIST_FIRST(&table->order, struct pending, order_link);
}
