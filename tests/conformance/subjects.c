/* SPDX-License-Identifier: MIT */
#include "tests/conformance/subjects.h"

#include <stdio.h>

#include "providers/local/local.h"
#include "tests/fake/fake.h"

static struct provider *create_local(const struct provider_context *context, const char *folder)
{
	return local_provider_create(context);
}

/* As awkward as it can be: late, in small pieces, other names, a single root. */
static struct provider *create_fake(const struct provider_context *context, const char *folder)
{
	struct provider *provider = fake_provider_create(context);
	struct fake_behaviour *behaviour = fake_behaviour(provider);
	snprintf(behaviour->runtime_root, sizeof(behaviour->runtime_root), "%s/runtime", folder);
	behaviour->roots_max = 1;
	behaviour->delay_ms = 3;
	behaviour->read_chunk = 4096;
	behaviour->isolated = true;
	return provider;
}

const struct subject subjects[] = {
	{"local", create_local},
	{"fake", create_fake},
};
const size_t subject_count = ARRAY_LENGTH(subjects);
