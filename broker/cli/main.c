/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/own_environment.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/words.h"
#include "broker/cli/broker.h"
#include "providers/container/container.h"
#include "providers/daytona/daytona.h"
#include "providers/exec/exec.h"
#include "providers/local/cell/inside.h"
#include "providers/local/keys/holder.h"
#include "providers/kubernetes/kubernetes.h"
#include "providers/local/local.h"
#include "providers/local/net/forward.h"
#include "providers/local/net/relay.h"
#include "providers/slurm/slurm.h"
#include "providers/ssh/ssh.h"

static bool add_providers(
	struct registry *registry, const struct provider_context *context, struct error *err)
{
	return registry_add(registry, local_provider_create(context), err) &&
	       registry_add(registry, ssh_provider_create(context), err) &&
	       registry_add(registry, daytona_provider_create(context), err) &&
	       registry_add(registry, exec_provider_create(context), err) &&
	       registry_add(registry, container_provider_create(context), err) &&
	       registry_add(registry, slurm_provider_create(context), err) &&
	       registry_add(registry, kubernetes_provider_create(context), err);
}

/*
 * A HOME with ".." in it names its folder through another one, which a cell does not show. So the
 * broker and all that it starts get the folder's own path.
 */
static void tidy_home(char **environment)
{
	for (char **entry = environment; *entry; entry++) {
		if (strncmp(*entry, "HOME=", 5) == 0 && path_goes_up(*entry + 5)) {
			char *path = real_path(*entry + 5);
			char *tidy = mem_alloc_zero(strlen(path) + 6);
			text_whole(tidy, strlen(path) + 6, "HOME=%s", path);
			free(path);
			free(*entry);
			*entry = tidy;
		}
	}
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
	tidy_home(environment);
	int status = broker_main(argc, argv, (const char *const *)environment, &providers);
	words_free(environment);
	return status;
}
