/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_COPY_SWEEP_H
#define PROVIDERS_LOCAL_COPY_SWEEP_H

#include "providers/provider.h"

/*
 * Removes the folders that killed brokers made for the copies of a single session (copy-per =
 * session) and in which no copy was begun. Nothing else would find them, because each session has a
 * new folder. A folder with a file of an agent stays.
 */
struct provider_sweep *copy_sweep(struct provider *provider, const struct provider_context *context,
	const struct sandbox_request *request, const char *const *kept, provider_swept *done,
	void *data, struct error *err) ATTR_NODISCARD;
void copy_sweep_cancel(struct provider_sweep *sweep);

#endif
