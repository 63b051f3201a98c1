/* SPDX-License-Identifier: MIT */
#ifndef BROKER_POLICY_AUDIT_H
#define BROKER_POLICY_AUDIT_H

#include "base/attr.h"
#include "base/error.h"
#include "broker/policy/policy.h"

/*
 * The audit log: one JSON object per line, for each decision about an agent's request.
 *
 *     {"time":"2026-01-31T12:00:00.000Z","session":"s-1","operation":"fs/write_text_file",
 *      "subject":"/w/notes.txt","rule":"mode = ask-all","decision":"allow-once","by":"person"}
 *
 * A subject is the path or the command, without content, output and environment. "variables" has
 * the names of the variables that were added for a command. Secrets that the broker knows
 * (base/secrets.h) are masked. The file has the mode 0600. Before it exceeds its size it is renamed
 * to FILE.1, that one to FILE.2, and so on up to FILE.3. Several brokers may write one file. A
 * failed write is reported once and ends the log, never the session.
 */
struct audit;
struct secrets;

enum {
	AUDIT_KEPT = 3,                // old files
	AUDIT_SUBJECT_MAX = 16 * 1024, // bytes; a longer subject is cut
};

/* Who decided. */
enum audit_by {
	AUDIT_BY_POLICY,     // a rule, or the mode
	AUDIT_BY_REMEMBERED, // the user, with an earlier "always"
	AUDIT_BY_PERSON,
	AUDIT_BY_TIMEOUT, // permission-timeout passed
	AUDIT_BY_NOBODY,  // nobody could be asked, or the answer could not be used
	AUDIT_BY_EDITOR,  // none: the editor itself requested it (_broker/exec, _broker/fs)
};

/* Further fields of a line about a connection. All are borrowed; NULL and 0 are left out. */
struct audit_connection {
	const char *way;
	const char *result;
	const char *server_name;
	size_t left_out; // lines left out before this one
};

/* All pointers are borrowed. */
struct audit_line {
	const char *session; // its id; NULL: unknown
	const char *operation;
	const char *subject;
	const char *variables; // JSON: names of the variables added for the command; NULL: none
	const char *rule;
	const struct audit_connection *connection; // for "network/connect"; NULL: another operation
	enum policy_decision decision;
	enum audit_by by;
};

/*
 * ERROR_CONFIG if the file cannot be written or is not a regular file. Borrows the secrets until
 * audit_close; they may be NULL.
 */
struct audit *audit_open(const char *file, size_t max_bytes, const struct secrets *secrets,
	struct error *err) ATTR_NODISCARD;
void audit_close(struct audit *audit); // NULL is fine

/* Does nothing if audit is NULL. Writes a short line to disk, on the loop. */
void audit_write(struct audit *audit, const struct audit_line *line);

const char *audit_by_name(enum audit_by by); // "policy", "remembered", …

#endif
