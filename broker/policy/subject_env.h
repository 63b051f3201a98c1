/* SPDX-License-Identifier: MIT */
#ifndef BROKER_POLICY_SUBJECT_ENV_H
#define BROKER_POLICY_SUBJECT_ENV_H

#include "base/buf.h"
#include "broker/policy/subject.h"

/* Takes the variables of a request, a JSON array (ACP: EnvVariable). null and [] mean none. */
void subject_set_env(struct subject *subject, struct span env);

/*
 * Shows the user and the audit log which variables are added for a command. They matter, because
 * LD_PRELOAD can turn any command into another.
 */
enum {
	SUBJECT_ENV_SHOWN_MAX = 16 * 1024, // bytes of everything shown
	SUBJECT_ENV_VALUE_MAX = 1024,      // bytes of one value, and of one name
};

/*
 * Appends a line "NAME=value" for each variable, as Markdown code, quoted if it could mislead a
 * reader. The value is *** if the name is that of a secret. Says so if some are left out. Appends
 * nothing if none is added.
 */
bool subject_env_show(const struct subject *subject, struct buf *out) ATTR_NODISCARD;

/* The names as a JSON array, with the same limits; the caller owns it. NULL if none is added. */
char *subject_env_names(const struct subject *subject);

#endif
