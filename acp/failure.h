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
 * How a struct error is sent to the editor and the agent: as a JSON-RPC error. Its message is for
 * people, its data is for programs: {code, retryable, stage, detail or uri}. docs/errors.md lists
 * every code. This table has all codes except those of a single provider (struct error_reason).
 */
struct failure_code {
	const char *name; // upper snake case
	int rpc;          // JSON-RPC error code
	bool retryable;   // trying again unchanged may help
	const char *help; // what to do, one line, for the docs
};

extern const struct failure_code failure_codes[];
extern const size_t failure_code_count;

/* Error codes that agents themselves use (ACP, ErrorCode). */
enum { AUTH_REQUIRED = -32000, REQUEST_CANCELLED = -32800 };

/* NULL if the table does not have the name. failure_code_get asserts that it does. */
const struct failure_code *failure_code_find(const char *name);
const struct failure_code *failure_code_get(const char *name);

/* JSON-RPC 2.0, section 5.1, and the codes that ACP adds. */
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
 * Sets an error that is sent unchanged: the code (the name of a row of failure_codes), the stage
 * and the text. err->code follows from the row. Returns err.
 */
const struct error *failure_set(struct error *err, const char *code, const char *stage,
	const char *format, ...) ATTR_PRINTF(4, 5);
const struct error *failure_vset(struct error *err, const char *code, const char *stage,
	const char *format, va_list args) ATTR_PRINTF(4, 0);

/*
 * Appends a whole JSON-RPC error response. `id` is raw; an empty one writes null. The error must
 * have a stage. Its detail is usually the last output of an agent. For RESOURCE_NOT_FOUND it is the
 * path, sent as data.uri. For VERSION_NOT_SPOKEN it is the number as JSON, sent as data.requested
 * beside data.supported. `reason` is the provider's row of the error's code, or NULL if no provider
 * has it. The buffer's maximum must leave room for an error (a few KiB and its detail).
 */
void failure_write(struct buf *out, struct span id, const struct error *err,
	const struct error_reason *reason);

/*
 * Prepares an agent's error (JSON) for an error of ours. Writes "the agent says: " and the agent's
 * message to `said`. Returns the agent's data, at most FAILURE_DETAIL_MAX bytes: a string decoded,
 * anything else as JSON. Owned by the caller; NULL if there is no data.
 */
enum { FAILURE_SAID_MAX = 420 };
char *failure_read_error(struct span error, char said[FAILURE_SAID_MAX]);

/* The code under which an error is sent: its reason, or the one for its error_code. */
const char *failure_code_of(const struct error *err);
bool failure_is(const struct error *err, const char *code);

#endif
