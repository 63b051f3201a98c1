/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "broker/cli/doctor_parts.h"
#include "broker/cli/scratch.h"
#include "broker/cli/sessions.h"
#include "broker/ledger/state_folder.h"

static bool forget(const struct sessions_means *means, int folder_fd,
	const struct session_entry *entry, struct error *err)
{
	bool is_removed = false;
	bool has_sandbox =
		entry->record.state != RECORD_STOPPED ||
		strcmp(entry->record.persistence, persistence_name(PERSISTENCE_TRANSIENT)) != 0;
	if (!has_sandbox && sessions_remove(folder_fd, entry->id, &is_removed, err) && is_removed) {
		return true;
	}
	return sessions_discard_one(means, entry->id, err);
}

bool doctor_forget(const struct doctor_means *means, const char *workspace, struct error *err)
{
	const struct sessions_means sessions = {
		.options = means->options,
		.environment = means->environment,
		.registry = means->registry,
		.loop = means->loop,
		.pool = means->pool,
		.state_folder = means->state_folder,
		.tools = means->tools,
	};
	struct session_entries entries;
	bool ok = true;
	ATTR_CLEANUP(fd_cleanup) int folder_fd = record_folder_open(means->state_folder, err);
	if (folder_fd < 0 || !sessions_load(folder_fd, &entries, err)) {
		return false;
	}
	for (size_t i = 0; i < entries.count; i++) {
		const struct session_entry *entry = &entries.entries[i];
		if (entry->is_readable && strcmp(entry->record.local_root, workspace) == 0) {
			ok = forget(&sessions, folder_fd, entry, err) && ok;
		}
	}
	sessions_finish(&entries);
	if (ok) {
		char *store = state_folder_store(means->state_folder, workspace);
		scratch_remove_folder(store);
		free(store);
	}
	return ok;
}
