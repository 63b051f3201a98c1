/* SPDX-License-Identifier: MIT */
#ifndef BROKER_METHODS_OWN_METHODS_H
#define BROKER_METHODS_OWN_METHODS_H

/*
 * This folder answers requests of the editor to the broker itself. It has the table of the methods
 * `_broker/…` and one file for each method, or for a few related ones. It knows agents, their
 * sandboxes and the ledger, and policy in order to explain it. It knows no other method and passes
 * nothing on. The relay hands it the requests, and tells it when an agent or the broker ends.
 */

#include <stddef.h>

struct call;
struct relay;

/*
 * Takes the editor's requests `_broker/…`. Each is answered exactly once; METHOD_NOT_FOUND if the
 * table does not have the method. initialize announces the methods in
 * _meta.broker.capabilities.methods.
 */
void own_methods_call(struct relay *relay, const struct call *call);

/* The name of the method at this index; NULL after the last. */
const char *own_method_name(size_t index);

#endif
