/* SPDX-License-Identifier: MIT */
#ifndef BROKER_POLICY_AUDIT_H
#define BROKER_POLICY_AUDIT_H

#include "base/attr.h"
#include "base/error.h"
#include "broker/policy/policy.h"

/*
 * The audit log: one JSON object a line for each decision on what an agent
 * asked for.
 *
 *     {"time":"2026-01-31T12:00:00.000Z","session":"s-1","operation":"fs/write_text_file",
 *      "subject":"/w/notes.txt","rule":"mode = ask-all","decision":"allow-once","by":"person"}
 *
 * A subject is the path or the command, without content, output and
 * environment; the names of the variables that were added for a command stand
 * in "variables". The secrets the broker knows (base/secrets.h) are masked. The file is 0600.
 * Before it grows over its size it becomes FILE.1, that one FILE.2, and so on to FILE.3; several
 * brokers may write one file. A write that fails is said once and ends the log, never the session.
 */
struct audit;
struct secrets;

enum {
	AUDIT_KEPT = 3,                // old files
	AUDIT_SUBJECT_MAX = 16 * 1024, // bytes; a longer one is cut
};

/* Who decided. */
enum audit_by {
	AUDIT_BY_POLICY,     // a rule, or the mode
	AUDIT_BY_REMEMBERED, // the user, with an earlier "always"
	AUDIT_BY_PERSON,
	AUDIT_BY_TIMEOUT, // permission-timeout passed
	AUDIT_BY_NOBODY,  // nobody could be asked, or the answer could not be used
};

/* Everything borrowed. */
struct audit_line {
	const char *session; // its id; NULL where it is not known
	const char *operation;
	const char *subject;
	const char *variables; // JSON: the names of those added for a command; NULL: none
	const char *rule;
	enum policy_decision decision;
	enum audit_by by;
};

/*
 * ERROR_CONFIG where the file cannot be written, or is no regular file. The secrets are borrowed
 * until it is closed; they may be NULL.
 */
struct audit *audit_open(const char *file, size_t max_bytes, const struct secrets *secrets,
	struct error *err) ATTR_NODISCARD;
void audit_close(struct audit *audit); // NULL is fine

/* Does nothing where audit is NULL. Writes to a disk: short, on the loop. */
void audit_write(struct audit *audit, const struct audit_line *line);

const char *audit_by_name(enum audit_by by); // "policy", "remembered", …

#endif
