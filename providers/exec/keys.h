/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_KEYS_H
#define PROVIDERS_EXEC_KEYS_H

#include "providers/exec/profile.h"

/* The keys of `backend = exec`, and its platform: the commands that the profile names. */
enum { EXEC_KEYS = EXEC_KEYED_VERBS + EXEC_COMMON_COUNT };
extern const struct setting_key exec_keys[EXEC_KEYS];
extern const struct exec_platform exec_platform;

#endif
