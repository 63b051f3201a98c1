/* SPDX-License-Identifier: MIT */
#ifndef BROKER_POLICY_SUBJECT_ENV_H
#define BROKER_POLICY_SUBJECT_ENV_H

#include "base/buf.h"
#include "broker/policy/subject.h"

/* Takes the variables of a request, a JSON array (ACP: EnvVariable); null and [] are none. */
void subject_set_env(struct subject *subject, struct span env);

/*
 * The variables that are added for a command, as a user and the audit log get
 * to know them: LD_PRELOAD can make another command of any.
 */
enum {
	SUBJECT_ENV_SHOWN_MAX = 16 * 1024, // bytes of all that is shown
	SUBJECT_ENV_VALUE_MAX = 1024,      // bytes of one value, and of one name
};

/*
 * Appends a line "NAME=value" for each, as Markdown code, quoted where it could mislead a reader;
 * values are *** where the name is that of a secret. What is left out is said.
 * Nothing where none is added.
 */
bool subject_env_show(const struct subject *subject, struct buf *out) ATTR_NODISCARD;

/* The names as a JSON array, by the same limits; owned by the caller. NULL: none is added. */
char *subject_env_names(const struct subject *subject);

#endif
