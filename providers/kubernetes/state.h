/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_KUBERNETES_STATE_H
#define PROVIDERS_KUBERNETES_STATE_H

#include "providers/exec/profile.h"

/*
 * What `kubectl get --output=json` prints about the pods and the volume claim of one sandbox:
 * struct exec_platform says what these return. A pod that has ended leaves the sandbox stopped if
 * it has a volume claim, because its files are still there; otherwise the sandbox is gone.
 */
bool kubernetes_read_state(
	struct span out, enum exec_state *out_state, char says[EXEC_SAYS_SIZE]) ATTR_NODISCARD;
struct span kubernetes_read_name(struct span out);

#endif
