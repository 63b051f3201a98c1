/* SPDX-License-Identifier: MIT */
#ifndef BROKER_METHODS_OWN_METHODS_H
#define BROKER_METHODS_OWN_METHODS_H

/*
 * This folder answers what the editor asks of the broker itself: the table of the methods
 * `_broker/…`, and one file for each of them or for a few that belong together. It knows agents,
 * their sandboxes and the ledger, and policy where it explains it. It knows no other method and
 * passes nothing on. The relay hands it the requests, and tells it of the end of an agent or of
 * the broker.
 */

#include <stddef.h>

struct call;
struct relay;

/*
 * The requests of the editor's that the broker answers itself: _broker/…. Each
 * is answered exactly once, with METHOD_NOT_FOUND where the table has no such
 * method. Announced in _meta.broker.capabilities.methods.
 */
void own_methods_call(struct relay *relay, const struct call *call);

/* The n-th method's name; NULL after the last. */
const char *own_method_name(size_t index);

#endif
