/* SPDX-License-Identifier: MIT */
#ifndef TESTS_CONFORMANCE_CONNECTED_H
#define TESTS_CONFORMANCE_CONNECTED_H

#include "providers/provider.h"

/*
 * The ssh provider, connected to a real sshd by one of its clients. The sshd starts with the first
 * provider and serves all cases; its home is not the folder of any of them.
 */
struct provider *connected_libssh2_create(
	const struct provider_context *context, const char *folder);
struct provider *connected_openssh_create(
	const struct provider_context *context, const char *folder);

/* The same with a runner. If no runner can be used, the cases fail. */
struct provider *connected_libssh2_runner_create(
	const struct provider_context *context, const char *folder);
struct provider *connected_openssh_runner_create(
	const struct provider_context *context, const char *folder);

/* Ends the sshd if it runs. */
void connected_finish(void);

#endif
