/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_KUBERNETES_COMMANDS_H
#define PROVIDERS_KUBERNETES_COMMANDS_H

#include "providers/exec/profile.h"

/*
 * The keys of `backend = kubernetes`, and the commands of kubectl for them, which a profile of
 * `backend = exec` would name itself.
 *
 * An instance is a pod that only sleeps, and with the key storage a volume claim, which outlives
 * the pod. Both have a label with the sandbox's name (%n), by which all commands find them. Only
 * `kubectl exec` needs the pod's own name (%i), which the API server makes: so a pod that has ended
 * is never in the way of the next one.
 */
enum { KUBERNETES_OWN_KEYS = 14, KUBERNETES_KEYS = KUBERNETES_OWN_KEYS + EXEC_LINK_COUNT };
extern const struct setting_key kubernetes_keys[KUBERNETES_KEYS];
extern const struct exec_platform kubernetes_platform;

#endif
