/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GRANT_H
#define BROKER_GRANT_H

#include "broker/session/hop.h"

/* True where the request was answered or set aside; false: it passes. */
bool grant_intercept(struct peer *peer, const struct call *call);

#endif
