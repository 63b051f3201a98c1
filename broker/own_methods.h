/* SPDX-License-Identifier: MIT */
#ifndef BROKER_OWN_METHODS_H
#define BROKER_OWN_METHODS_H

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
