/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_CONTAINER_COMMANDS_H
#define PROVIDERS_CONTAINER_COMMANDS_H

#include "providers/exec/profile.h"

/*
 * The keys of `backend = container`, and the engine's commands for them, which a profile of
 * `backend = exec` would name itself. podman and docker take the same words.
 *
 * With `image`, start makes a container and mounts the runner in it (CONTAINER_RUNNER). The runner
 * is the first process, so the image needs no program that keeps the container running. With
 * `container`, the broker works in a container that somebody else has made, and neither starts nor
 * ends it.
 */
enum { CONTAINER_OWN_KEYS = 6, CONTAINER_KEYS = CONTAINER_OWN_KEYS + EXEC_COMMON_COUNT };
extern const struct setting_key container_keys[CONTAINER_KEYS];
extern const struct exec_platform container_platform;

#define CONTAINER_RUNNER "/.acp-broker/acp-runner"

#endif
