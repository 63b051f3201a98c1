/* SPDX-License-Identifier: MIT */
#ifndef BROKER_METHODS_INQUIRY_H
#define BROKER_METHODS_INQUIRY_H

#include "broker/session/hop.h"
#include "sync/store.h"

/* What it waits for, of broker/methods/pause.c. */
enum inquiry_wish { INQUIRY_NO_WISH, INQUIRY_PAUSE, INQUIRY_RESUME };

/* A request that is answered once something was done, on the loop or on the pool. */
struct inquiry {
	struct list link; // inquiries_of its peer
	struct peer *peer;
	struct pool_job job;
	char *id;    // owned; raw
	size_t size; // bytes of the request
	char *store_folder;
	char *from, *to; // owned; may be NULL; of a rollback the root, and the session
	bool wants_stat;
	char *rollback; // owned; the checkpoint to go back to; NULL: it is no rollback
	enum inquiry_wish wish;
	struct drain *drain; // owned; what it waits for before; NULL
	/* Blocking: fills result; or fails. */
	bool (*run)(struct inquiry *inquiry, struct store *store, struct error *err);
	bool is_ok;
	struct buf result; // JSON
	struct error err;
};

/* A request of the editor's about a store; it is the peer's until it was answered. */
struct inquiry *inquiry_create(
	struct peer *peer, const struct call *call, const char *store_folder);

struct list *inquiries_of(struct peer *peer); // that are not answered yet

/* Runs `run` on the pool, on the store; then the request is answered. */
void inquiry_submit(struct inquiry *inquiry);

/* Answers with the result, or the error, and frees it. */
void inquiry_answer(struct inquiry *inquiry);
void inquiry_destroy(struct inquiry *inquiry); // once it was answered otherwise

/* How many are not answered yet, and their bytes; added to both. */
void inquiry_count(const struct relay *relay, int *count, size_t *bytes);

/* Answers all of a peer with a failure; what runs for them goes on, unheard. */
void inquiry_drop_all(struct peer *peer, const struct error *failure);

#endif
