/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RSYNC_CALL_H
#define SYNC_RSYNC_CALL_H

#include "base/pool.h"
#include "base/process.h"
#include "providers/provider.h"
#include "sync/transport.h"

/*
 * One run of the local rsync, a process with a guard. Where it wants its other half it starts
 * its remote shell, this program again (sync/rsync/shell.h), which comes back over a socket
 * in the folder; who has the token, which only that rsync's environment has, gets what it
 * asks for, once, run by sandbox_exec. Loop thread, never blocks.
 */
enum { CALL_OUTPUT_MAX = 16 << 10, CALL_WORDS_MAX = 700, CALL_BEFORE_MAX = 8 };

struct call_request {
	struct ev_loop *loop;
	const struct transport_tools *tools;
	struct sandbox *sandbox;
	const char *folder;      // absolute, 0700, of the store's: where rsync works
	const char *const *argv; // NULL-terminated
	/*
	 * What is run in the sandbox, followed by what rsync asks for, instead of that alone:
	 * NULL-terminated, CALL_BEFORE_MAX at most; NULL: nothing. It has to keep its hands off
	 * stdin and stdout and to become the command in the end.
	 */
	const char *const *before;
	long long timeout_ms; // without a byte
	uint64_t received_max;
};

struct call_result {
	int status;              // rsync's; 128 and a signal's number where it was killed
	uint64_t sent, received; // bytes
	const char *output;      // the first CALL_OUTPUT_MAX bytes of what it printed, terminated
	const char *said;        // the first CALL_OUTPUT_MAX bytes of its stderr, terminated
	const char *words;       // the last of that, printable
	const char *far_words;   // the same of its other half, as far as it has come
};

/*
 * Not before call_start has returned, once, unless the call is destroyed; the call has to be
 * destroyed then. An error: it could not be started (ERROR_NOT_FOUND: there is no rsync here), or
 * its other half could not or was lost, or it stood still. Any status of rsync is a result.
 */
typedef void call_done(void *data, const struct call_result *result, const struct error *err);

struct call;

struct call *call_start(const struct call_request *request, call_done *done, void *data,
	struct error *err) ATTR_NODISCARD;

/* Ends both halves. NULL is fine. */
void call_destroy(struct call *call);

#endif
