/* SPDX-License-Identifier: MIT */
#include "base/own_environment.h"
#include "base/words.h"
#include "broker/cli/broker.h"
#include "providers/container/container.h"
#include "providers/daytona/daytona.h"
#include "providers/exec/exec.h"
#include "providers/local/cell/inside.h"
#include "providers/local/keys/holder.h"
#include "providers/local/local.h"
#include "providers/local/net/forward.h"
#include "providers/local/net/relay.h"
#include "providers/ssh/ssh.h"

static bool add_providers(
	struct registry *registry, const struct provider_context *context, struct error *err)
{
	return registry_add(registry, local_provider_create(context), err) &&
	       registry_add(registry, ssh_provider_create(context), err) &&
	       registry_add(registry, daytona_provider_create(context), err) &&
	       registry_add(registry, exec_provider_create(context), err) &&
	       registry_add(registry, container_provider_create(context), err);
}

int main(int argc, char **argv)
{
	static const struct broker_providers providers = {.add = add_providers};
	if (cell_is_asked(argc, argv)) {
		cell_run();
	}
	if (relay_is_asked(argc, argv)) {
		relay_run();
	}
	if (forward_is_asked(argc, argv)) {
		forward_run();
	}
	if (holder_is_asked(argc, argv)) {
		holder_run();
	}
	char **environment = own_environment_take();
	int status = broker_main(argc, argv, (const char *const *)environment, &providers);
	words_free(environment);
	return status;
}
