/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_TRACE_H
#define BROKER_SESSION_TRACE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

/*
 * --trace FILE: every message of every hop as it was on the wire, one JSON object per line:
 *
 *     {"time":"2026-01-31T12:00:00.000Z","hop":"editor","direction":"in","message":{…}}
 *     {"time":"…","hop":"agent 1","direction":"out","message":{…}}
 *     {"time":"…","hop":"agent 1","direction":"in","noise":"Welcome","length":7}
 *
 * `direction` is the broker's: it has read "in" and written "out". "***" replaces secrets: the
 * values of mcpServers[].env, mcpServers[].headers, terminal/create.env and authMethods[].env, and
 * every secret that the broker knows (base/secrets.h), anywhere and in any spelling of JSON. The
 * file has the mode 0600, and the broker appends to it. A failed write is reported once and ends
 * the trace, never the session.
 */
struct trace;
struct secrets;

/* Borrows the secrets until trace_close; they may be NULL. */
struct trace *trace_open(
	const char *file, const struct secrets *secrets, struct error *err) ATTR_NODISCARD;
void trace_close(struct trace *trace); // NULL is fine

/* Both do nothing if trace is NULL. The message is valid JSON. */
void trace_message(struct trace *trace, const char *hop, bool is_incoming, struct span message);
void trace_noise(struct trace *trace, const char *hop, struct span beginning, size_t length);

#endif
