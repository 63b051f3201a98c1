/* SPDX-License-Identifier: MIT */
#ifndef BROKER_POLICY_MEMORY_H
#define BROKER_POLICY_MEMORY_H

#include <stdbool.h>

#include "base/json_writer.h"
#include "base/list.h"
#include "broker/policy/policy.h"
#include "broker/policy/subject.h"

/*
 * The user's "always" answers in one session. An answer holds for the same operation on the same
 * thing: the same path of a file; for a command the same words or the same shell line, in the same
 * directory, with the same added variables. Answers to the agent's own session/request_permission
 * are not stored here, because the agent itself remembers "always".
 */
struct memory;

enum {
	MEMORY_MAX = 1024,            // answers per session
	MEMORY_ONCE_MAX = 64,         // actions that the user has allowed once
	MEMORY_ENTRY_MAX = 64 * 1024, // bytes of one answer; longer ones are not remembered
};

struct memory *memory_create(void);
void memory_destroy(struct memory *memory); // NULL is fine

/* Whether an answer about the subject could be kept. */
bool memory_has_room(const struct memory *memory, const struct subject *subject);

size_t memory_count(const struct memory *memory); // remembered answers

/*
 * Takes the content of the subject. Replaces an older answer about the same thing. There must be
 * room.
 */
void memory_add(struct memory *memory, struct subject *subject, bool allow);

/* ALLOW_ALWAYS or REJECT_ALWAYS; PENDING if nothing is remembered. memory may be NULL. */
enum policy_decision memory_find(const struct memory *memory, const struct subject *subject);

/*
 * The user has just allowed this in the agent's own question: it is allowed once more, until the
 * turn ends. Takes the content of the subject. If there are too many, the oldest is forgotten.
 */
void memory_add_once(struct memory *memory, struct subject *subject);

bool memory_has_once(const struct memory *memory); // whether there is any

/*
 * Whether memory_add_once has allowed the same; if so, the permission is used up. *out_old_text is
 * its old_text or NULL, owned by the caller.
 */
bool memory_take_once(
	struct memory *memory, const struct subject *subject, char **out_old_text) ATTR_NODISCARD;

/* Forgets everything from memory_add_once. */
void memory_end_turn(struct memory *memory);

/* Writes the answers as a JSON array of {operation, decision, path | command, …}, oldest first. */
void memory_write(const struct memory *memory, struct json_writer *writer);

#endif
