/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CONFIG_CONFIG_SHOWN_H
#define BROKER_CONFIG_CONFIG_SHOWN_H

#include "broker/config/config.h"

/* What `acp-broker check` shows, for people (config_print.c) and for programs (config_json.c). */

/*
 * The program `name` on this machine, or NULL; the caller owns it. A PATH in `agent_env`, an
 * agent's own variables, comes before that of `environment`.
 */
char *config_find_program(const char *name, char *const *agent_env, const char *const *environment);

/* Whether the key is a limit or a deadline. Those are shown even at their defaults. */
bool config_is_number(const struct setting_key *key);

/*
 * Whether `check` shows a profile key's value as written. Other keys are shown in their own place,
 * and env may hold secrets.
 */
bool config_is_shown(const char *key);

const char *config_toolhost_text(const struct profile *profile); // "auto", …

#endif
