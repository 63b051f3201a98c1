/* SPDX-License-Identifier: MIT */
#ifndef ACP_FAILURE_H
#define ACP_FAILURE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json_writer.h"
#include "base/span.h"

/*
 * What the editor and the agent are told of a struct error: a JSON-RPC error
 * whose message is for people and whose data is for programs,
 * {code, retryable, stage, detail or uri}. docs/errors.md lists every code. This table has those
 * that no provider has for itself (struct error_reason).
 */
struct failure_code {
	const char *name; // upper snake case
	int rpc;          // JSON-RPC error code
	bool retryable;   // trying the same again can help
	const char *help; // what to do, one line, for the docs
};

extern const struct failure_code failure_codes[];
extern const size_t failure_code_count;

/* What an agent answers with of its own (ACP, ErrorCode). */
enum { AUTH_REQUIRED = -32000, REQUEST_CANCELLED = -32800 };

/* Asserts that the name is in the table. */
const struct failure_code *failure_code_get(const char *name);

/* JSON-RPC 2.0, section 5.1, and the codes ACP adds. */
enum rpc_error {
	RPC_PARSE_ERROR = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_METHOD_NOT_FOUND = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_INTERNAL_ERROR = -32603,
	RPC_RESOURCE_NOT_FOUND = -32002,
	RPC_UNSUPPORTED_VERSION = -32022, // of ACP version 2
};

enum { FAILURE_DETAIL_MAX = 8 * 1024 + 512 };

/*
 * Sets an error that is told as it is: the code, a row of failure_codes, the stage and the text.
 * The error's own code follows from the row. Returns err.
 */
const struct error *failure_set(struct error *err, const char *code, const char *stage,
	const char *format, ...) ATTR_PRINTF(4, 5);
const struct error *failure_vset(struct error *err, const char *code, const char *stage,
	const char *format, va_list args) ATTR_PRINTF(4, 0);

/*
 * Appends a whole JSON-RPC error response. `id` is raw; empty writes null. The error has a stage.
 * Its detail is an agent's last words; of RESOURCE_NOT_FOUND the path, told as data.uri; of
 * VERSION_NOT_SPOKEN the number, JSON, told as data.requested beside data.supported. `reason` is
 * the row of the error's code where a provider has it, else NULL. The buffer must have no maximum
 * that an error (a few KiB and its detail) meets.
 */
void failure_write(struct buf *out, struct span id, const struct error *err,
	const struct error_reason *reason);

/*
 * An agent's error (JSON) in one of ours: writes "the agent says: " and its message, and returns
 * its data, at most FAILURE_DETAIL_MAX bytes: a text as it is, anything else as JSON. Owned by the
 * caller; NULL where there is none.
 */
enum { FAILURE_SAID_MAX = 420 };
char *failure_read_error(struct span error, char said[FAILURE_SAID_MAX]);

/* The code an error is told as: its reason, or the one its error_code stands for. */
const char *failure_code_of(const struct error *err);
bool failure_is(const struct error *err, const char *code);

#endif
