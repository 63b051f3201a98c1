/* SPDX-License-Identifier: MIT */
#ifndef BROKER_POLICY_SUBJECT_H
#define BROKER_POLICY_SUBJECT_H

#include <stdbool.h>

#include "acp/message.h"
#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"
#include "broker/policy/policy.h"

/*
 * What an agent's request is about, read out of the message for policy: the
 * paths, the command, the kind of tool. ACP: fs/read_text_file,
 * fs/write_text_file, terminal/create, session/request_permission.
 */
struct subject {
	enum policy_operation operation;
	char **paths;     // owned, NULL-terminated; NULL: none
	char **asked;     // owned; the paths as they were asked for; NULL: they are not resolved
	bool is_resolved; // the paths are without links
	char **command;   // owned, NULL-terminated; NULL: none
	bool shell_line;
	char *cwd;        // owned; of a command, where it names one; NULL: the session's
	char *env;        // owned; raw JSON, the variables added for a command; NULL: none
	char **variables; // owned; their names, "" for one that cannot be read; NULL: none
	char *kind;       // owned; the tool call's; may be NULL
	char *new_text;   // owned; what a write brings, where that counts (grant_once.c); NULL
	char *old_text;   // owned; with it: what the file held, as a user was shown; NULL: nothing
	unsigned unknown; // of enum policy_unknown
};

/*
 * The operation that a user names: by its method, or by the word that rules have for it. False:
 * there is none of that name.
 */
bool subject_operation(const char *name, enum policy_operation *out_operation);

/*
 * False where a file's or a command's request is not as ACP has it: ERROR_PROTOCOL
 * (INVALID_PARAMS) names the member that is missing or wrong, ERROR_LIMIT that
 * there is too much of it; all of the subject is unknown then. A tool call may be
 * of any form: what cannot be read of it is unknown, and that is no mistake.
 */
bool subject_read(struct subject *subject, enum policy_operation operation,
	const struct message *message, struct error *err) ATTR_NODISCARD;
void subject_read_tool_call(struct subject *subject, const struct message *message);
void subject_finish(struct subject *subject);

/*
 * The same out of the params of _broker/policy/explain: path; command, args,
 * cwd, env; toolKind. What does not belong to the operation is left out.
 */
bool subject_read_params(struct subject *subject, enum policy_operation operation,
	struct span params, struct error *err) ATTR_NODISCARD;

/* A copy of a NULL-terminated list, owned by the caller; NULL of NULL. */
char **subject_words_copy(char *const *words);

/* A copy on the heap, and its end; NULL is fine. */
struct subject *subject_copy(const struct subject *subject);
void subject_destroy(struct subject *subject);

/* Takes other names for its paths, once: the same ones without links. Copied. */
void subject_set_paths(struct subject *subject, char *const *paths);

/*
 * The same operation on the same path, or the same command in the same surroundings; what is not
 * known is never the same.
 */
bool subject_equals(const struct subject *a, const struct subject *b);

/* As a question to policy; borrows from the subject and roots. */
struct policy_query subject_query(const struct subject *subject, const char *const *roots);

/* For a user: the command's words, or the first path; borrowed from text or subject. */
const char *subject_text(const struct subject *subject, char *text, size_t size);

/* The same in full; owned by the caller. */
char *subject_text_create(const struct subject *subject);

#endif
