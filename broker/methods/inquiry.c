/* SPDX-License-Identifier: MIT */
#include "broker/methods/inquiry.h"

#include <stdlib.h>

#include "broker/session/answer.h"
#include "broker/session/in_flight.h"

static const struct part_type type = {.size = sizeof(struct list), .init = part_init_list};

struct list *inquiries_of(struct peer *peer)
{
	return parts_get(&peer->parts, &type);
}

static void on_run(struct pool_job *job)
{
	struct inquiry *inquiry = CONTAINER_OF(job, struct inquiry, job);
	struct store store;
	if (!store_open(&store, inquiry->store_folder, 0, &inquiry->err)) {
		return;
	}
	inquiry->is_ok = inquiry->run(inquiry, &store, &inquiry->err);
	store_close(&store);
}

static void on_done(struct pool_job *job)
{
	inquiry_answer(CONTAINER_OF(job, struct inquiry, job));
}

static void drop(struct pool_job *job)
{
	inquiry_destroy(CONTAINER_OF(job, struct inquiry, job));
}

struct inquiry *inquiry_create(struct peer *peer, const struct call *call, const char *store_folder)
{
	struct inquiry *inquiry = mem_alloc_zero(sizeof(*inquiry));
	inquiry->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_done, .drop = drop};
	inquiry->peer = peer;
	inquiry->id = mem_strndup(call->message.id);
	inquiry->size = call->message.text.len;
	inquiry->store_folder = mem_strdup(store_folder);
	buf_init(&inquiry->result, SIZE_MAX / 2);
	list_append(inquiries_of(peer), &inquiry->link);
	return inquiry;
}

void inquiry_destroy(struct inquiry *inquiry)
{
	list_remove(&inquiry->link);
	drain_destroy(inquiry->drain);
	buf_finish(&inquiry->result);
	free(inquiry->id);
	free(inquiry->store_folder);
	free(inquiry->from);
	free(inquiry->to);
	free(inquiry->rollback);
	free(inquiry);
}

void inquiry_answer(struct inquiry *inquiry)
{
	struct relay *relay = inquiry->peer->relay;
	if (inquiry->is_ok) {
		relay_answer(relay, span_of(inquiry->id), buf_span(&inquiry->result));
	} else {
		const char *stage = inquiry->wish == INQUIRY_NO_WISH ? "sync" : "session";
		relay_fail(relay, span_of(inquiry->id), error_at(&inquiry->err, stage));
	}
	inquiry_destroy(inquiry);
}

void inquiry_submit(struct inquiry *inquiry)
{
	if (!pool_submit(inquiry->peer->relay->config.pool, &inquiry->job, &inquiry->err)) {
		inquiry_answer(inquiry);
	}
}

void inquiry_count(const struct relay *relay, int *count, size_t *bytes)
{
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		LIST_FOR_EACH(inquiry, inquiries_of(peer), struct inquiry, link) {
			++*count;
			*bytes += inquiry->size;
		}
	}
}

void inquiry_drop_all(struct peer *peer, const struct error *failure)
{
	LIST_FOR_EACH(inquiry, inquiries_of(peer), struct inquiry, link) {
		relay_fail(peer->relay, span_of(inquiry->id), failure);
		list_remove(&inquiry->link);
		pool_leave(&inquiry->job);
	}
}
