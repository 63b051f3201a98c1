/* SPDX-License-Identifier: MIT */
#ifndef BROKER_METHODS_EXPLAIN_H
#define BROKER_METHODS_EXPLAIN_H

#include "base/json_writer.h"
#include "broker/gate/grant_answer.h"

struct call;
struct relay;

/*
 * _broker/policy/explain: answers what policy would decide about an operation and by which line,
 * and what the session remembers. It carries nothing out, asks nobody and writes no audit line.
 * docs/schemas/policy-explain.json describes the params and the result.
 */
void explain_call(struct relay *relay, const struct call *call);

/* Writes the result: a decision and a session's memory (may be NULL). */
void explain_write(struct json_writer *writer, const char *operation,
	const struct grant_decision *decision, const struct memory *memory);

#endif
