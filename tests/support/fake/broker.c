/* SPDX-License-Identifier: MIT */
#include <unistd.h>

#include "broker/cli/broker.h"
#include "providers/local/local.h"
#include "tests/support/fake/fake.h"

/* The broker with the fake provider besides its own: for whole-program tests of far sandboxes. */
static bool add_providers(
	struct registry *registry, const struct provider_context *context, struct error *err)
{
	return registry_add(registry, local_provider_create(context), err) &&
	       registry_add(registry, fake_provider_create(context), err);
}

int main(int argc, char **argv)
{
	static const struct broker_providers providers = {.add = add_providers};
	return broker_main(argc, argv, (const char *const *)environ, &providers);
}
