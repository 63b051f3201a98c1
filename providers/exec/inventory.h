/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_INVENTORY_H
#define PROVIDERS_EXEC_INVENTORY_H

#include "providers/exec/sandbox.h"

/*
 * Implements provider_inventory, for the instances that have notes on this machine. The commands
 * `state` and `list` report their states.
 */
bool exec_inventory(const struct exec_shared *shared, const struct sandbox_request *request,
	enum inventory_act act, const char *name, const struct inventory_listener *listener,
	void *data, struct error *err) ATTR_NODISCARD;

#endif
