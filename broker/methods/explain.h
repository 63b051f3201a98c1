/* SPDX-License-Identifier: MIT */
#ifndef BROKER_METHODS_EXPLAIN_H
#define BROKER_METHODS_EXPLAIN_H

#include "base/json_writer.h"
#include "broker/gate/grant_answer.h"

struct call;
struct relay;

/*
 * _broker/policy/explain: what policy would say to an operation, which line
 * says so, and what is remembered in the session. Nothing is done, asked or
 * audited. docs/schemas/policy-explain.json has the params and the result.
 */
void explain_call(struct relay *relay, const struct call *call);

/* The result, of a decision and what a session remembers (may be NULL). */
void explain_write(struct json_writer *writer, const char *operation,
	const struct grant_decision *decision, const struct memory *memory);

#endif
