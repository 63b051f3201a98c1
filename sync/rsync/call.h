/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RSYNC_CALL_H
#define SYNC_RSYNC_CALL_H

#include "base/pool.h"
#include "base/process.h"
#include "providers/provider.h"
#include "sync/transport.h"

/*
 * One run of the local rsync, as a process with a guard. To start its other half, rsync runs its
 * remote shell, which is this program again (sync/rsync/shell.h). The remote shell connects to a
 * socket in the folder. It must have the token, which only that rsync's environment has. Then
 * sandbox_exec runs the requested command, once. Loop thread; never blocks.
 */
enum { CALL_OUTPUT_MAX = 16 << 10, CALL_WORDS_MAX = 700, CALL_BEFORE_MAX = 8 };

struct call_request {
	struct ev_loop *loop;
	const struct transport_tools *tools;
	struct sandbox *sandbox;
	const char *folder;      // absolute, 0700, in the store: where rsync works
	const char *const *argv; // NULL-terminated
	/*
	 * A command for the sandbox, to which rsync's command is appended: NULL-terminated, at most
	 * CALL_BEFORE_MAX words; NULL: none. It must not touch stdin and stdout, and must exec the
	 * rest in the end.
	 */
	const char *const *before;
	long long timeout_ms; // without a byte
	uint64_t received_max;
};

struct call_result {
	int status;              // rsync's; 128 and the signal's number if it was killed
	uint64_t sent, received; // bytes
	const char *output;      // the first CALL_OUTPUT_MAX bytes of its stdout, terminated
	const char *said;        // the first CALL_OUTPUT_MAX bytes of its stderr, terminated
	const char *words;       // the last part of that, printable
	const char *far_words;   // the same of its other half, as far as it has arrived
};

/*
 * Called once, not before call_start returns, unless the call is destroyed. Then destroy the call.
 * An error means: rsync could not be started (ERROR_NOT_FOUND: it is not installed here), its other
 * half could not be started or was lost, or it stalled. Any exit status of rsync is a result.
 */
typedef void call_done(void *data, const struct call_result *result, const struct error *err);

struct call;

struct call *call_start(const struct call_request *request, call_done *done, void *data,
	struct error *err) ATTR_NODISCARD;

/* Ends both halves. NULL is fine. */
void call_destroy(struct call *call);

#endif
