/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_API_IMPL_H
#define PROVIDERS_DAYTONA_API_IMPL_H

#include <ev.h>

#include "base/buf.h"
#include "base/list.h"
#include "providers/daytona/api.h"
#include "providers/daytona/http.h"
#include "providers/daytona/keys.h"

/* What the files of the API share. */
struct daytona_api {
	struct ev_loop *loop;
	struct http *http;
	char *key;                          // wiped
	unsigned int key_number;            // of those that it has had
	char *organization;                 // owned; NULL: none
	struct daytona_key_command command; // its line is owned; NULL: there is none
	struct daytona_key_wait *wait;      // for what it prints; or NULL
	bool is_refused;                    // it has printed nothing else than what is not taken
	long long try_timeout_ms, timeout_ms, pause_ms;
	long long asked_ms; // by the last answer
	bool may_be_done;   // though that says otherwise, or there was none
	int status;         // its status; 0: none
	struct list calls;  // of struct daytona_call
};

enum daytona_call_trait {
	DAYTONA_CALL_ONCE = 1 << 0,     // not again where it may have been done
	DAYTONA_CALL_CREATION = 1 << 1, // 404 is of something else than a sandbox
	DAYTONA_CALL_SECRET = 1 << 2,   // its answer is one
};

/*
 * What is done with the answer and with the end. `read` raises the outcome, by daytona_call_end or
 * on its own; false sets err to what was wrong with the text. `fail` raises an error.
 */
struct daytona_call_kind {
	const char *method;
	unsigned int traits; // enum daytona_call_trait
	bool (*read)(
		struct daytona_call *call, const struct http_answer *answer, struct error *err);
	void (*fail)(struct daytona_call *call, const struct error *err);
};

struct daytona_call {
	struct list link;        // api.calls
	struct daytona_api *api; // NULL once it was cancelled while it is being raised
	const struct daytona_call_kind *kind;
	struct buf path, body;
	struct error unfit; // why it cannot be sent; ERROR_NONE: it can
	char *what;         // for errors: the method, and the path without its query
	struct http_transfer *transfer;
	struct ev_timer timer; // the next try
	long long begun_ms, deadline_ms;
	int tries;
	unsigned int key_number; // the key that it was made with
	bool waits_for_key;      // since key_asked_ms, because of `before`
	bool had_other_key;      // and that is the only one it gets
	long long key_asked_ms;
	bool is_cut_short;   // this try ends with the call's deadline
	struct error before; // how the try before it ended; ERROR_NONE: it is the first
	bool is_raising;
	union {
		daytona_sandbox_done *sandbox;
		daytona_access_done *access;
		daytona_done *done;
		daytona_permissions_done *permissions;
		struct daytona_list_listener list;
	} raise;
	void *data;
	struct { // of a list
		struct daytona_pair *labels;
		int told;
		int pages;
		char *cursor;
	} list;
};

/* A call whose path and body are to be written next; then it is begun. */
struct daytona_call *daytona_call_create(
	struct daytona_api *api, const struct daytona_call_kind *kind, void *data);

/* The first try is made from the loop. `ok` is whether path and body could be written (unfit). */
struct daytona_call *daytona_call_begin(struct daytona_call *call, bool ok);

/* The same call with a new path, at once: the next page. */
void daytona_call_go_on(struct daytona_call *call, bool ok);

void daytona_call_free(struct daytona_call *call);

#endif
