/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_CARRIER_H
#define PROVIDERS_SSH_CARRIER_H

#include "providers/remote/carrier.h"
#include "providers/ssh/client.h"

/*
 * Makes the channels of one connection a carrier's streams. If the connection is lost, its streams
 * raise nothing: the client's listener learns of it and passes it on (remote_cut).
 */
struct ssh_carrier {
	struct carrier carrier;
	struct ssh_client *client; // borrowed
};

void ssh_carrier_init(struct ssh_carrier *carrier, struct ssh_client *client);

#endif
