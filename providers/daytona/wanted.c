/* SPDX-License-Identifier: MIT */
#include "providers/daytona/wanted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"

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
		.ttl_min = profile->ttl_min,
		.sandbox_class = profile->sandbox_class,
		.is_public = wanted->policy.ingress == NETWORK_INGRESS_PUBLIC,
		.blocks_network = wanted->policy.mode == NETWORK_BLOCKED,
		.network_allow_list = wanted->cidrs,
		.domain_allow_list = wanted->hosts};
}

/* The next entry of a list with commas, without blanks; empty at its end. */
static struct span next_entry(const char **list)
{
	static const char between[] = ", \t";
	const char *begin = *list + strspn(*list, between);
	size_t len = strcspn(begin, between);
	*list = begin + len;
	return (struct span){begin, len};
}

static bool has_entry(const char *list, struct span wanted)
{
	for (;;) {
		struct span entry = next_entry(&list);
		if (entry.len == 0 ||
			(entry.len == wanted.len &&
				strncasecmp(entry.data, wanted.data, wanted.len) == 0)) {
			return entry.len > 0;
		}
	}
}

static bool has_all(const char *list, const char *wanted)
{
	for (;;) {
		struct span entry = next_entry(&wanted);
		if (entry.len == 0 || !has_entry(list, entry)) {
			return entry.len == 0;
		}
	}
}

/* The service may change the order and form of a list. */
static bool is_same(const char *told, const char *asked)
{
	return has_all(told, asked ? asked : "") && has_all(asked ? asked : "", told);
}

static bool is_network(const struct daytona_create *create, const struct daytona_sandbox *seen)
{
	return seen->blocks_network == create->blocks_network &&
	       is_same(seen->network_allow_list, create->network_allow_list) &&
	       is_same(seen->domain_allow_list, create->domain_allow_list);
}

void daytona_network_describe(const struct daytona_network *network, char *text, size_t size)
{
	const char *hosts = network->domain_allow_list ? network->domain_allow_list : "";
	const char *cidrs = network->network_allow_list ? network->network_allow_list : "";
	if (!*hosts && !*cidrs) {
		text_format(
			text, size, "network = %s", network->blocks_network ? "blocked" : "open");
	} else {
		text_format(text, size, "%s%s%s%s%s%s",
			network->blocks_network ? "blocked but for " : "",
			*hosts ? "allow-host = " : "", hosts, *hosts && *cidrs ? ", " : "",
			*cidrs ? "allow-cidr = " : "", cidrs);
	}
}

unsigned int daytona_wanted_unfit(
	const struct daytona_create *create, const struct daytona_sandbox *seen)
{
	bool leaves_archive = create->auto_archive_min < 0;
	const struct {
		enum daytona_unfit bit;
		bool is_fit;
	} table[] = {
		{DAYTONA_UNFIT_NETWORK, is_network(create, seen)},
		{DAYTONA_UNFIT_INGRESS, seen->is_public == create->is_public},
		{DAYTONA_UNFIT_AUTO_STOP, seen->auto_stop_min == create->auto_stop_min},
		{DAYTONA_UNFIT_AUTO_ARCHIVE,
			leaves_archive || seen->auto_archive_min == create->auto_archive_min},
		{DAYTONA_UNFIT_AUTO_DELETE, seen->auto_delete_min == create->auto_delete_min},
	};
	unsigned int unfit = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(table); i++) {
		unfit |= table[i].is_fit ? 0 : (unsigned int)table[i].bit;
	}
	return unfit;
}

void daytona_wanted_fixed(const struct daytona_create *create, const struct daytona_sandbox *seen,
	void (*tell)(void *data, const char *key, const char *there, const char *wanted),
	void *data)
{
	const struct {
		const char *key, *there, *wanted;
	} texts[] = {
		{"snapshot", seen->snapshot, create->snapshot},
		{"image", seen->image, create->image},
		{"target", seen->target, create->target},
		{"user", seen->user, create->user},
		{"class", seen->sandbox_class, create->sandbox_class},
	};
	const struct {
		const char *key;
		int there, wanted; // 0: unknown, or not wanted
	} numbers[] = {
		{"cpu", seen->cpu, create->cpu},
		{"memory", seen->memory_gib, create->memory_gib},
		{"disk", seen->disk_gib, create->disk_gib},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		if (texts[i].wanted && strcmp(texts[i].there, texts[i].wanted) != 0) {
			tell(data, texts[i].key, texts[i].there, texts[i].wanted);
		}
	}
	for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
		char there[16], wanted[16];
		if (numbers[i].wanted && numbers[i].there != numbers[i].wanted) {
			snprintf(there, sizeof(there), "%d", numbers[i].there);
			snprintf(wanted, sizeof(wanted), "%d", numbers[i].wanted);
			tell(data, numbers[i].key, numbers[i].there ? there : "", wanted);
		}
	}
}
