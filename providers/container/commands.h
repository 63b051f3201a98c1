/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_CONTAINER_COMMANDS_H
#define PROVIDERS_CONTAINER_COMMANDS_H

#include "providers/exec/profile.h"

/*
 * The keys of `backend = container`, and the engine's commands that they mean: those that a profile
 * of `backend = exec` would name. podman and docker take the same words.
 *
 * With `image`, start makes a container whose first process is the runner, which the engine shows
 * to it (CONTAINER_RUNNER), so that the image needs no program for that. With `container`, all is
 * done in one that somebody else has made, and nobody here starts or ends it.
 */
enum { CONTAINER_OWN_KEYS = 6, CONTAINER_KEYS = CONTAINER_OWN_KEYS + EXEC_COMMON_COUNT };
extern const struct setting_key container_keys[CONTAINER_KEYS];
extern const struct exec_platform container_platform;

#define CONTAINER_RUNNER "/.acp-broker/acp-runner"

#endif
