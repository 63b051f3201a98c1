/* SPDX-License-Identifier: MIT */
#ifndef BROKER_POLICY_MEMORY_H
#define BROKER_POLICY_MEMORY_H

#include <stdbool.h>

#include "base/json_writer.h"
#include "base/list.h"
#include "broker/policy/policy.h"
#include "broker/policy/subject.h"

/*
 * What a user has answered with "always", for one session. An answer holds
 * for the same operation on the same thing: the same path of a file; of a
 * command the same words or the same shell line, in the same directory, with
 * the same variables added. Nothing is remembered of session/request_permission:
 * there "always" is the agent's own to remember.
 */
struct memory;

enum {
	MEMORY_MAX = 1024,            // answers of a session
	MEMORY_ONCE_MAX = 64,         // actions that a user has allowed once
	MEMORY_ENTRY_MAX = 64 * 1024, // bytes of one; a longer path or command is not remembered
};

struct memory *memory_create(void);
void memory_destroy(struct memory *memory); // NULL is fine

/* Whether an answer on the subject could be kept. */
bool memory_has_room(const struct memory *memory, const struct subject *subject);

size_t memory_count(const struct memory *memory); // answers that are remembered

/* Takes what the subject holds. An older answer on the same is replaced; needs room. */
void memory_add(struct memory *memory, struct subject *subject, bool allow);

/* ALLOW_ALWAYS or REJECT_ALWAYS; PENDING where nothing is remembered (memory may be NULL). */
enum policy_decision memory_find(const struct memory *memory, const struct subject *subject);

/*
 * What the user has just allowed in a question of the agent's own: it is allowed once more, for
 * as long as the turn lasts. Takes what the subject holds; of too many the oldest is forgotten.
 */
void memory_add_once(struct memory *memory, struct subject *subject);

bool memory_has_once(const struct memory *memory); // anything at all

/* Whether the same was allowed so; it is used up then. Its old_text is the caller's, or NULL. */
bool memory_take_once(
	struct memory *memory, const struct subject *subject, char **out_old_text) ATTR_NODISCARD;

/* None of these is allowed any more. */
void memory_end_turn(struct memory *memory);

/* The answers as a JSON array of {operation, decision, path | command, …}, oldest first. */
void memory_write(const struct memory *memory, struct json_writer *writer);

#endif
