/* SPDX-License-Identifier: MIT */
#ifndef TESTS_CONFORMANCE_CONNECTED_H
#define TESTS_CONFORMANCE_CONNECTED_H

#include "providers/provider.h"

/*
 * The provider of ssh, connected to a real sshd by one of its clients. The sshd is started with
 * the first provider and serves all cases; its home is the folder of none of them.
 */
struct provider *connected_libssh2_create(
	const struct provider_context *context, const char *folder);
struct provider *connected_openssh_create(
	const struct provider_context *context, const char *folder);

/* Ends the sshd, if there is one. */
void connected_finish(void);

#endif
