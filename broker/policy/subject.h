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
 * The subject of an agent's request, which we read from the message for policy: the paths, the
 * command, the kind of tool. ACP: fs/read_text_file, fs/write_text_file, terminal/create,
 * session/request_permission.
 */
struct subject {
	enum policy_operation operation;
	char **paths;     // owned, NULL-terminated; NULL: none
	char **asked;     // owned; the paths as the agent wrote them; NULL: not resolved
	bool is_resolved; // links in the paths are resolved
	char **command;   // owned, NULL-terminated; NULL: none
	bool shell_line;
	char *cwd;        // owned; of a command that names one; NULL: the session's
	char *env;        // owned; raw JSON of the variables added for a command; NULL: none
	char **variables; // owned; their names, "" for one that is unreadable; NULL: none
	char *kind;       // owned; the tool call's; may be NULL
	char *new_text;   // owned; the new content of a write, if needed (grant_once.c); or NULL
	char *old_text;   // owned; beside new_text: the old content that the user saw; or NULL
	unsigned unknown; // of enum policy_unknown
};

/*
 * Finds the operation that a user names, by its method or by its word in rules. False if there is
 * none.
 */
bool subject_operation(const char *name, enum policy_operation *out_operation);

/*
 * Reads a file or command request. False if it does not follow ACP: ERROR_PROTOCOL (INVALID_PARAMS)
 * names the missing or wrong member; ERROR_LIMIT says that there is too much; then the whole
 * subject is unknown. A tool call may have any form: parts that cannot be read are unknown, which
 * is not an error.
 */
bool subject_read(struct subject *subject, enum policy_operation operation,
	const struct message *message, struct error *err) ATTR_NODISCARD;
void subject_read_tool_call(struct subject *subject, const struct message *message);
void subject_finish(struct subject *subject);

/*
 * The same from the params of _broker/policy/explain: path; command, args, cwd, env; toolKind.
 * Members that do not belong to the operation are ignored.
 */
bool subject_read_params(struct subject *subject, enum policy_operation operation,
	struct span params, struct error *err) ATTR_NODISCARD;

/* Copies a NULL-terminated list; the caller owns it. NULL for NULL. */
char **subject_words_copy(char *const *words);

/* Copies it on the heap, and frees such a copy. NULL is fine. */
struct subject *subject_copy(const struct subject *subject);
void subject_destroy(struct subject *subject);

/* Sets the resolved names of its paths, once. Copied. */
void subject_set_paths(struct subject *subject, char *const *paths);

/*
 * Whether both are the same operation on the same path, or the same command in the same
 * surroundings. Unknown parts are never the same.
 */
bool subject_equals(const struct subject *a, const struct subject *b);

/* Makes a query for policy; borrows from the subject and roots. */
struct policy_query subject_query(const struct subject *subject, const char *const *roots);

/* A text for the user: the command's words, or the first path; borrowed from text or subject. */
const char *subject_text(const struct subject *subject, char *text, size_t size);

/* The same, uncut; the caller owns it. */
char *subject_text_create(const struct subject *subject);

#endif
