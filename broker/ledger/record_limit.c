/* SPDX-License-Identifier: MIT */
#include "broker/ledger/record_limit.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "base/lock_file.h"
#include "base/text.h"
#include "broker/ledger/record.h"
#include "broker/ledger/record_owner.h"

enum { LOCK_WAIT_MS = 5000, LOCK_LOOK_MS = 10, WHO_MAX = 300 };

bool record_limit_lock(int folder_fd, struct error *err)
{
	enum lock_state lock =
		lock_file_wait(folder_fd, &(struct lock_wait){.look_ms = LOCK_LOOK_MS,
						  .deadline_ms = clock_now_ms() + LOCK_WAIT_MS});
	if (lock == LOCK_FAILED) {
		return error_set_errno(err, errno, "locking the folder of session records");
	}
	if (lock == LOCK_ELSEWHERE) {
		return error_set(err, ERROR_UNAVAILABLE,
			"another acp-broker has locked the folder of session records for "
			"%d s: try again once that broker continues or has ended",
			LOCK_WAIT_MS / 1000);
	}
	return true;
}

void record_limit_unlock(int folder_fd)
{
	lock_file_release(folder_fd);
}

/* ---- counting records ---- */

struct census {
	int folder_fd;
	const char *profile;
	size_t files, living;
	char who[WHO_MAX]; // as many as fit
};

static void count_file(void *data, const char *id)
{
	struct census *census = data;
	census->files++;
}

static void note(struct census *census, const struct record *record, pid_t pid)
{
	size_t len = strlen(census->who);
	char one[WHO_MAX];
	char root[84];
	text_format(root, sizeof(root), "%s", record->local_root);
	text_format(one, sizeof(one), "%s%s of %s (process %d)", len > 0 ? ", " : "", record->id,
		root, (int)pid);
	if (len + strlen(one) < sizeof(census->who)) {
		memcpy(census->who + len, one, strlen(one) + 1);
	}
	census->living++;
}

static bool is_at_work(const struct record *record, const char *profile)
{
	return strcmp(record->profile, profile) == 0 && record->state != RECORD_STOPPED &&
	       record->state != RECORD_FAILED;
}

static void count_living(void *data, const char *id)
{
	struct census *census = data;
	struct record_owner owner;
	struct record record;
	struct error unreadable;
	record_owner_find(census->folder_fd, id, &owner);
	bool finishes = owner.pid != 0 && !owner.is_session; // finishes a dead broker's work
	if (owner.is_held && !finishes &&
		record_load(census->folder_fd, id, &record, &unreadable)) {
		if (is_at_work(&record, census->profile)) {
			note(census, &record, owner.pid);
		}
		record_finish(&record);
	}
	record_owner_finish(&owner);
}

bool record_limit_check(int folder_fd, const char *profile, size_t max, struct error *err)
{
	struct census census = {.folder_fd = folder_fd, .profile = profile};
	if (!record_visit(folder_fd, count_file, &census, err)) {
		return false;
	}
	if (census.files < max) {
		return true; // unreadable ones do not count
	}
	if (!record_visit(folder_fd, count_living, &census, err)) {
		return false;
	}
	return census.living < max ||
	       error_set_reason(err, ERROR_LIMIT, "RESOURCE_LIMIT_EXCEEDED",
		       "profile \"%s\" is already working in %zu workspaces, and max-sessions is "
		       "%zu: %s; end one (acp-broker sessions stop), or raise max-sessions",
		       profile, census.living, max, census.who);
}
