/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_SWEEP_H
#define PROVIDERS_EXEC_SWEEP_H

#include "providers/exec/sandbox.h"

/* Implement provider_sweep and provider_sweep_cancel. */
struct provider_sweep *exec_sweep(struct provider *provider, const struct exec_shared *shared,
	const struct sandbox_request *request, const char *const *kept, provider_swept *done,
	void *data, struct error *err) ATTR_NODISCARD;
void exec_sweep_cancel(struct provider_sweep *sweep);

#endif
