/* SPDX-License-Identifier: MIT */
#include "broker/cli/sandboxes.h"

#include <stdlib.h>
#include <string.h>

#include "base/words.h"

/* Gives a provider one order; the loop runs until that is done. */
struct order {
	struct ev_loop *loop;
	const struct profile *profile;
	struct sandbox_entries *entries; // NULL: lists nothing
	bool is_done;
	struct error err; // ERROR_NONE: success
};

static void entry_finish(struct sandbox_entry *entry)
{
	free(entry->name);
	free(entry->id);
	free(entry->state);
	free(entry->profile);
	free(entry->workspace);
	free(entry->created);
	free(entry->why);
	words_free(entry->sessions);
}

void sandboxes_finish(struct sandbox_entries *entries)
{
	for (size_t i = 0; i < entries->count; i++) {
		entry_finish(&entries->entries[i]);
	}
	free(entries->entries);
	free(entries->problems);
	*entries = (struct sandbox_entries){0};
}

/* ---- listing ---- */

/*
 * Two profiles of one account list the same sandboxes. The profile that the sandbox names is used.
 */
static bool is_known(struct sandbox_entries *entries, const struct inventory_entry *found,
	const struct profile *profile)
{
	for (size_t i = 0; i < entries->count; i++) {
		struct sandbox_entry *entry = &entries->entries[i];
		if (strcmp(entry->found_by->backend, profile->backend) == 0 &&
			strcmp(entry->id, found->id) == 0) {
			bool is_own = strcmp(profile->name, found->profile) == 0;
			entry->found_by = is_own ? profile : entry->found_by;
			return true;
		}
	}
	return false;
}

static void on_entry(void *data, const struct inventory_entry *found)
{
	struct order *order = data;
	struct sandbox_entries *entries = order->entries;
	if (!entries || is_known(entries, found, order->profile)) {
		return;
	}
	size_t size = (entries->count + 1) * sizeof(*entries->entries);
	entries->entries = mem_realloc(entries->entries, size);
	entries->entries[entries->count++] = (struct sandbox_entry){
		.name = mem_strdup(found->name),
		.id = mem_strdup(found->id),
		.state = mem_strdup(found->state),
		.profile = mem_strdup(found->profile),
		.workspace = mem_strdup(found->workspace),
		.created = mem_strdup(found->created),
		.why = mem_strdup(found->why),
		.cpu = found->cpu,
		.memory_gib = found->memory_gib,
		.disk_gib = found->disk_gib,
		.is_in_use = found->is_in_use,
		.found_by = order->profile,
	};
}

static void on_done(void *data, const struct error *err)
{
	struct order *order = data;
	order->is_done = true;
	if (err) {
		order->err = *err;
	}
	ev_break(order->loop, EVBREAK_ALL);
}

bool sandboxes_order(const struct sessions_means *means, const struct profile *profile,
	enum inventory_act act, const char *name, struct sandbox_entries *out_entries,
	struct error *err)
{
	static const struct inventory_listener listener = {
		.on_entry = on_entry, .on_done = on_done};
	struct order order = {.loop = means->loop, .profile = profile, .entries = out_entries};
	struct sandbox_request request = {.profile = profile->name, .settings = &profile->settings};
	struct provider *provider = registry_get(means->registry, profile->backend, err);
	if (!provider ||
		!provider_inventory(provider, &request, act, name, &listener, &order, err)) {
		return false;
	}
	while (!order.is_done) {
		ev_run(means->loop, 0);
	}
	if (order.err.code != ERROR_NONE) {
		*err = order.err;
	}
	return order.err.code == ERROR_NONE;
}

static void ask(const struct sessions_means *means, const struct profile *profile,
	struct sandbox_entries *entries)
{
	struct sandbox_problem problem = {.profile = profile};
	struct provider *provider = registry_get(means->registry, profile->backend, &problem.err);
	if (!provider || !provider_has_inventory(provider)) {
		return;
	}
	entries->asked++;
	if (sandboxes_order(means, profile, INVENTORY_LIST, NULL, entries, &problem.err)) {
		return;
	}
	size_t size = (entries->problem_count + 1) * sizeof(*entries->problems);
	entries->problems = mem_realloc(entries->problems, size);
	entries->problems[entries->problem_count++] = problem;
}

void sandboxes_load(const struct sessions_means *means, const struct config *config,
	struct sandbox_entries *out)
{
	*out = (struct sandbox_entries){0};
	ask(means, &config->profile, out);
	for (size_t i = 0; !means->options->profile && i < config->other_count; i++) {
		ask(means, &config->others[i], out);
	}
}

/* ---- the records ---- */

bool sandboxes_is_of(const struct record *record, const struct sandbox_entry *entry)
{
	const char *backend = entry->found_by->backend;
	/* Files that are never synced stay in the sandbox, even after its session. */
	bool is_there =
		record->reference && strcmp(record->sync, sync_mode_name(SYNC_MODE_NONE)) == 0;
	if ((sessions_is_collected(record) && !is_there) || strcmp(record->backend, backend) != 0) {
		return false;
	}
	if (record->reference) {
		return strcmp(record->reference, entry->name) == 0;
	}
	/* The record was written before its sandbox had a name. */
	return strcmp(record->profile, entry->profile) == 0 &&
	       strcmp(record->local_root, entry->workspace) == 0;
}
