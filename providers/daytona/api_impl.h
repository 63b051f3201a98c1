/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_API_IMPL_H
#define PROVIDERS_DAYTONA_API_IMPL_H

#include <ev.h>

#include "base/buf.h"
#include "base/list.h"
#include "providers/daytona/api.h"
#include "providers/daytona/http.h"
#include "providers/daytona/keys.h"

/* Shared by the files of the API. */
struct daytona_api {
	struct ev_loop *loop;
	struct http *http;
	char *key;                          // wiped
	unsigned int key_number;            // how many keys it has had
	char *organization;                 // owned; NULL: none
	struct daytona_key_command command; // its line is owned; NULL: none
	struct daytona_key_wait *wait;      // waits for a key from the command; or NULL
	bool is_refused;                    // the command printed the refused key again
	long long try_timeout_ms, timeout_ms, pause_ms;
	long long asked_ms; // the wait that the last answer asked for
	bool may_be_done;   // the last call may have taken effect in spite of its error
	int status;         // the last status; 0: none
	struct list calls;  // struct daytona_call
};

enum daytona_call_trait {
	DAYTONA_CALL_ONCE = 1 << 0,     // not repeated if it may have taken effect
	DAYTONA_CALL_CREATION = 1 << 1, // a 404 does not concern a sandbox
	DAYTONA_CALL_SECRET = 1 << 2,   // the answer is a secret
};

/*
 * How a kind of call handles its outcome. `read` takes a good answer and raises the outcome, by
 * daytona_call_end or itself; it returns false and sets err if the text is invalid. `fail` raises
 * an error.
 */
struct daytona_call_kind {
	const char *method;
	unsigned int traits; // enum daytona_call_trait
	bool (*read)(
		struct daytona_call *call, const struct http_answer *answer, struct error *err);
	void (*fail)(struct daytona_call *call, const struct error *err);
};

struct daytona_call {
	struct list link;        // in api.calls
	struct daytona_api *api; // NULL if it was cancelled while it raises
	const struct daytona_call_kind *kind;
	struct buf path, body;
	struct error unfit; // why it cannot be sent; ERROR_NONE: it can
	char *what;         // for errors: the method, and the path without its query
	struct http_transfer *transfer;
	struct ev_timer timer; // for the next try
	long long begun_ms, deadline_ms;
	int tries;
	unsigned int key_number; // number of the key that it was sent with
	bool waits_for_key;      // since key_asked_ms, because of `before`
	bool had_other_key;      // it has had another key, and gets no third one
	long long key_asked_ms;
	bool is_cut_short;   // this try ends with the deadline of the call
	struct error before; // the error of the previous try; ERROR_NONE: this is the first
	bool is_raising;
	union {
		daytona_sandbox_done *sandbox;
		daytona_access_done *access;
		daytona_done *done;
		daytona_permissions_done *permissions;
		struct daytona_list_listener list;
	} raise;
	void *data;
	struct { // for a list
		struct daytona_pair *labels;
		int told;
		int pages;
		char *cursor;
	} list;
};

/* Makes a call. The caller then writes path and body, and begins it. */
struct daytona_call *daytona_call_create(
	struct daytona_api *api, const struct daytona_call_kind *kind, void *data);

/*
 * Begins the call; the loop starts the first try. If `ok` is false, path or body could not be
 * written, and `unfit` says why.
 */
struct daytona_call *daytona_call_begin(struct daytona_call *call, bool ok);

/* Sends the same call with a new path at once: for the next page. */
void daytona_call_go_on(struct daytona_call *call, bool ok);

void daytona_call_free(struct daytona_call *call);

#endif
