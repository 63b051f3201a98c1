/* SPDX-License-Identifier: MIT */
#ifndef BROKER_METHODS_INQUIRY_H
#define BROKER_METHODS_INQUIRY_H

#include "broker/session/hop.h"
#include "sync/store.h"

/* The kind of request that broker/methods/pause.c handles with an inquiry. */
enum inquiry_wish { INQUIRY_NO_WISH, INQUIRY_PAUSE, INQUIRY_RESUME };

/* A request that is answered after some work on the loop or on the pool. */
struct inquiry {
	struct list link; // inquiries_of its peer
	struct peer *peer;
	struct pool_job job;
	char *id;    // owned, raw
	size_t size; // bytes of the request
	char *store_folder;
	char *from, *to; // owned; may be NULL; for a rollback: the root, and the session
	bool wants_stat;
	char *rollback; // owned; the checkpoint to go back to; NULL: no rollback
	enum inquiry_wish wish;
	struct drain *drain; // owned; what it waits for first; may be NULL
	/* Fills `result`, or fails. May block. */
	bool (*run)(struct inquiry *inquiry, struct store *store, struct error *err);
	bool is_ok;
	struct buf result; // JSON
	struct error err;
};

/* A request of the editor about a store. It belongs to the peer until it is answered. */
struct inquiry *inquiry_create(
	struct peer *peer, const struct call *call, const char *store_folder);

struct list *inquiries_of(struct peer *peer); // unanswered ones

/* Runs `run` on the pool, with the store; then answers the request. */
void inquiry_submit(struct inquiry *inquiry);

/* Answers with the result or the error, and frees the inquiry. */
void inquiry_answer(struct inquiry *inquiry);
void inquiry_destroy(struct inquiry *inquiry); // after the request was answered in another way

/* Adds the number of unanswered inquiries to *count, and their bytes to *bytes. */
void inquiry_count(const struct relay *relay, int *count, size_t *bytes);

/*
 * Answers all inquiries of a peer with a failure. Their running work goes on; its result is
 * dropped.
 */
void inquiry_drop_all(struct peer *peer, const struct error *failure);

#endif
