/* SPDX-License-Identifier: MIT */
#include "providers/daytona/wanted.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

enum { LIST_MAX = 128 * 1024 };

static char *join(char *const *words)
{
	struct buf text;
	bool fits = true;
	if (!words[0]) {
		return NULL;
	}
	buf_init(&text, LIST_MAX);
	for (size_t i = 0; fits && words[i]; i++) {
		fits = buf_append_format(&text, NULL, "%s%s", i ? "," : "", words[i]);
	}
	char *joined = fits ? mem_strndup(buf_span(&text)) : NULL;
	buf_finish(&text);
	return joined;
}

bool daytona_wanted_init(
	struct daytona_wanted *wanted, const struct daytona_profile *profile, struct error *err)
{
	const char *key;
	*wanted = (struct daytona_wanted){0};
	if (!network_policy_read(&wanted->policy, &profile->settings, &key, err)) {
		return error_prefix(err, "%s", key);
	}
	wanted->has_policy = true;
	wanted->cidrs = join(wanted->policy.cidrs);
	wanted->hosts = join(wanted->policy.hosts);
	return true;
}

void daytona_wanted_finish(struct daytona_wanted *wanted)
{
	if (wanted->has_policy) {
		network_policy_finish(&wanted->policy);
	}
	free(wanted->cidrs);
	free(wanted->hosts);
	*wanted = (struct daytona_wanted){0};
}

void daytona_wanted_name(struct daytona_wanted *wanted, const struct daytona_profile *profile,
	const struct daytona_identity *identity)
{
	daytona_identity_labels(identity, wanted->labels);
	daytona_identity_query(identity, wanted->query);
	wanted->create = (struct daytona_create){.name = identity->name,
		.snapshot = profile->snapshot,
		.image = profile->image,
		.target = profile->target,
		.user = profile->user,
		.labels = wanted->labels,
		.cpu = profile->cpu,
		.memory_gib = profile->memory_gib,
		.disk_gib = profile->disk_gib,
		.auto_stop_min = profile->auto_stop_min,
		.auto_archive_min = profile->auto_archive_min,
		.auto_delete_min = profile->auto_delete_min,
		.is_public = wanted->policy.ingress == NETWORK_INGRESS_PUBLIC,
		.blocks_network = wanted->policy.mode == NETWORK_BLOCKED,
		.network_allow_list = wanted->cidrs,
		.domain_allow_list = wanted->hosts};
}

static bool is_same(const char *told, const char *asked)
{
	return strcmp(told, asked ? asked : "") == 0;
}

bool daytona_wanted_is_network(
	const struct daytona_create *create, const struct daytona_sandbox *seen)
{
	return seen->blocks_network == create->blocks_network &&
	       is_same(seen->network_allow_list, create->network_allow_list) &&
	       is_same(seen->domain_allow_list, create->domain_allow_list);
}
