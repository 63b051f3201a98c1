/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_INVENTORY_H
#define PROVIDERS_EXEC_INVENTORY_H

#include "providers/exec/sandbox.h"

/*
 * Implements provider_inventory: the instances of which this machine has notes, each with the state
 * that the commands `state` and `list` report.
 */
bool exec_inventory(const struct exec_shared *shared, const struct sandbox_request *request,
	enum inventory_act act, const char *name, const struct inventory_listener *listener,
	void *data, struct error *err) ATTR_NODISCARD;

#endif
