/* SPDX-License-Identifier: MIT */
#include "broker/ledger/recovery.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/freeze_group.h"
#include "base/log.h"
#include "base/text.h"
#include "broker/ledger/holdings.h"
#include "broker/ledger/record_owner.h"

/* A record without a broker that did not end properly. */
struct found {
	char id[RECORD_ID_SIZE];
	char updated[32];
	long long tried_ms;                   // time of the last attempt to finish it; 0: none
	char *profile, *backend, *local_root; // owned
	const struct profile *of;             // the profile to finish it with
	bool is_own;                          // it belongs to the broker's own profile
	bool has_failed;                      // or was cut short; so it may fail again
	bool ends;                            // a finished copy that was unused for too long
	time_t used;
};

/* A job that reads the records. It outlives a recovery that is destroyed. */
struct look {
	struct pool_job job;
	struct recovery *recovery;
	char *state_folder; // owned
	bool ends_copies;   // a profile has a copy-max-age
	int folder_fd;
	struct found *found; // owned
	size_t count;
};

struct recovery {
	struct recovery_config config;
	ev_timer begin;
	ev_timer due;      // recovery-timeout
	struct look *look; // owned
	bool is_over;      // nothing more is begun
	bool is_woken;     // looks again afterwards
	size_t next;
	struct collect *collect;  // owned; the present one
	void (*done)(void *data); // of recovery_end; NULL: recovery_end was not called
	void *data;
};

static void found_finish(struct found *found)
{
	free(found->profile);
	free(found->backend);
	free(found->local_root);
}

static void look_clear(struct look *look)
{
	for (size_t i = 0; i < look->count; i++) {
		found_finish(&look->found[i]);
	}
	free(look->found);
	look->found = NULL;
	look->count = 0;
}

static void look_drop(struct pool_job *job)
{
	struct look *look = CONTAINER_OF(job, struct look, job);
	look_clear(look);
	free(look->state_folder);
	free(look);
}

/* ---- the records, on the pool ---- */

static struct found *add_found(struct look *look)
{
	look->found = mem_realloc(look->found, (look->count + 1) * sizeof(*look->found));
	return &look->found[look->count++];
}

static void look_at(void *data, const char *id)
{
	struct look *look = data;
	struct record record;
	struct record_owner owner;
	struct error err;
	if (!record_load(look->folder_fd, id, &record, &err)) {
		if (err.code != ERROR_NOT_FOUND) {
			log_warning("recovery: %s; it is not changed", err.text);
		}
		return;
	}
	record_owner_find(look->folder_fd, id, &owner);
	if (record.state != RECORD_STOPPED && !owner.is_held) {
		struct found *found = add_found(look);
		*found = (struct found){.profile = mem_strdup(record.profile),
			.backend = mem_strdup(record.backend),
			.local_root = mem_strdup(record.local_root),
			.tried_ms = owner.was_finishing ? owner.noted_ms : 0,
			.has_failed = owner.was_finishing || record.state == RECORD_FAILED ||
		                      record.error};
		memcpy(found->id, record.id, sizeof(found->id));
		memcpy(found->updated, record.updated, sizeof(found->updated));
	}
	record_owner_finish(&owner);
	record_finish(&record);
}

static void look_for_copies(struct look *look)
{
	struct holdings holdings;
	struct error err;
	if (!holdings_find(&holdings, look->state_folder, false, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err, "recovery: %s", err.text);
	}
	for (size_t i = 0; i < holdings.count; i++) {
		const struct holding *copy = &holdings.list[i];
		if (copy->kind != HOLDING_COPY || copy->state != HOLDING_FINISHED) {
			continue;
		}
		struct found *found = add_found(look);
		*found = (struct found){.profile = mem_strdup(copy->profile),
			.local_root = mem_strdup(copy->workspace),
			.used = copy->used,
			.ends = true};
		memcpy(found->id, copy->record, sizeof(found->id));
	}
	holdings_finish(&holdings);
}

static void run_look(struct pool_job *job)
{
	struct look *look = CONTAINER_OF(job, struct look, job);
	struct error err;
	char path[PATH_MAX];
	size_t left = freeze_group_end_left(); // before their sandboxes are collected
	if (left > 0) {
		log_warning(
			"recovery: ended the processes of %zu agents or commands whose brokers and "
			"guards are gone",
			left);
	}
	text_whole(path, sizeof(path), "%s/sessions", look->state_folder);
	if (access(path, F_OK) != 0) {
		return; // there are no records; the folder is not created only to look
	}
	look->folder_fd = record_folder_open(look->state_folder, &err);
	if (look->folder_fd < 0 || !record_visit(look->folder_fd, look_at, look, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err, "recovery: %s", err.text);
	}
	fd_close(&look->folder_fd);
	if (look->ends_copies) {
		look_for_copies(look);
	}
}

/* ---- choosing the profiles ---- */

static bool is_of(const struct found *found, const struct profile *profile)
{
	return strcmp(found->profile, profile->name) == 0;
}

static const struct profile *find_profile(
	const struct recovery_config *config, const struct found *found)
{
	if (is_of(found, config->collect.profile)) {
		return config->collect.profile;
	}
	for (size_t i = 0; i < config->other_count; i++) {
		if (is_of(found, &config->others[i])) {
			return &config->others[i];
		}
	}
	return NULL;
}

/* A copy is removed only by its own profile's copy-max-age. */
static bool is_too_old(const struct found *found)
{
	long long age_ms = found->of ? found->of->sync.copy_max_age_ms : 0;
	return age_ms > 0 && (long long)(time(NULL) - found->used) >= age_ms / 1000;
}

/* False, and logs it, if the configuration does not have its profile. */
static bool choose_profile(const struct recovery_config *config, struct found *found)
{
	const struct profile *profile = find_profile(config, found);
	found->of = profile;
	found->is_own = profile == config->collect.profile;
	if (found->ends) {
		return is_too_old(found);
	}
	if (profile && strcmp(found->backend, profile->backend) == 0) {
		return true;
	}
	if (profile) {
		log_warning("recovery: session %s of %s, whose broker is gone, belongs to profile "
			    "\"%s\" with backend %s, but the configuration has backend %s for this "
			    "profile; the session is not changed (see acp-broker sessions list)",
			found->id, found->local_root, found->profile, found->backend,
			profile->backend);
	} else {
		log_warning("recovery: session %s of %s, whose broker is gone, belongs to profile "
			    "\"%s\", which the configuration does not have; the session is not "
			    "changed (see acp-broker sessions list)",
			found->id, found->local_root, found->profile);
	}
	return false;
}

/*
 * A record that failed, or was cut short by recovery-timeout, may use up all the time again. So
 * such records come after the others, and the most recently tried one comes last: each gets its
 * turn at some start.
 */
static int compare(const void *a, const void *b)
{
	const struct found *x = a;
	const struct found *y = b;
	if (x->ends || y->ends) {
		return x->ends - y->ends; // they hold no edits
	}
	if (x->has_failed && y->has_failed && x->tried_ms != y->tried_ms) {
		return x->tried_ms < y->tried_ms ? -1 : 1;
	}
	if (x->has_failed || y->has_failed) {
		return x->has_failed != y->has_failed ? x->has_failed - y->has_failed
		                                      : strcmp(x->updated, y->updated);
	}
	return x->is_own != y->is_own ? y->is_own - x->is_own : strcmp(y->updated, x->updated);
}

static void choose_profiles(struct look *look, const struct recovery_config *config)
{
	size_t count = 0;
	for (size_t i = 0; i < look->count; i++) {
		if (choose_profile(config, &look->found[i])) {
			look->found[count++] = look->found[i];
		} else {
			found_finish(&look->found[i]);
		}
	}
	look->count = count;
	if (count > 1) {
		qsort(look->found, count, sizeof(*look->found), compare);
	}
}

/* ---- finishing one ---- */

static void stop(struct recovery *recovery)
{
	recovery->is_over = true;
	ev_timer_stop(recovery->config.collect.loop, &recovery->begin);
	ev_timer_stop(recovery->config.collect.loop, &recovery->due);
	if (recovery->collect && collect_stop(recovery->collect)) {
		return; // this one is not collected further
	}
	collect_destroy(recovery->collect);
	recovery->collect = NULL;
}

/* Finished records are not done twice, because they say so. */
static void look_again(struct recovery *recovery)
{
	recovery->is_woken = false;
	recovery->is_over = false;
	recovery->next = 0;
	look_clear(recovery->look);
	ev_timer_set(&recovery->begin, 0., 0.);
	ev_timer_start(recovery->config.collect.loop, &recovery->begin);
}

static void end_look(struct recovery *recovery)
{
	stop(recovery);
	if (recovery->is_woken && !recovery->collect && !pool_has(&recovery->look->job)) {
		look_again(recovery);
	}
}

static void collect_next(struct recovery *recovery);

static void say_ended(
	const struct found *found, enum collect_outcome outcome, const struct error *err)
{
	if (outcome == COLLECT_DONE) {
		log_info("recovery: the copy of %s was not used for %lld h (copy-max-age) and is "
			 "removed",
			found->local_root, found->of->sync.copy_max_age_ms / 3600000);
	} else if (outcome == COLLECT_FAILED) {
		log_failure(LOG_LEVEL_WARNING, err,
			"recovery: the copy of %s was not used for %lld h (copy-max-age), and "
			"stays: %s",
			found->local_root, found->of->sync.copy_max_age_ms / 3600000, err->text);
	}
}

/* Times and counts differ each time, so they are ignored. */
static bool is_same_text(const char *one, const char *other)
{
	static const char digits[] = "0123456789";
	for (;;) {
		one += strspn(one, digits);
		other += strspn(other, digits);
		if (*one != *other || !*one) {
			return *one == *other;
		}
		one++;
		other++;
	}
}

/* An earlier start has logged the same; acp-broker sessions list shows it too. */
static bool was_told(const struct record *record, const struct error *err)
{
	return record && record->state == RECORD_FAILED && record->error &&
	       is_same_text(record->error, err->text);
}

static void on_collected(void *data, enum collect_outcome outcome, const struct record *record,
	const struct error *err)
{
	struct recovery *recovery = data;
	const struct found *found = &recovery->look->found[recovery->next++];
	if (found->ends) {
		say_ended(found, outcome, err);
	} else if (outcome == COLLECT_DONE) {
		log_info("recovery: session %s of %s, whose broker is gone, is collected",
			found->id, record->local_root);
	} else if (outcome == COLLECT_FAILED && recovery->is_over) {
		log_info("recovery: session %s is left for another time", found->id);
	} else if (outcome == COLLECT_FAILED && was_told(record, err)) {
		log_failure(LOG_LEVEL_DEBUG, err,
			"recovery: session %s of %s is still not collected: %s", found->id,
			record->local_root, err->text);
	} else if (outcome == COLLECT_FAILED) {
		log_failure(LOG_LEVEL_ERROR, err,
			"recovery: session %s%s%s, whose broker is gone, is not collected: %s; "
			"the sandbox stays, and the next start tries again (see acp-broker "
			"sessions list)",
			found->id, record ? " of " : "", record ? record->local_root : "",
			err->text);
	}
	collect_destroy(recovery->collect);
	recovery->collect = NULL;
	if (recovery->done) {
		recovery->done(recovery->data);
	} else {
		collect_next(recovery);
	}
}

static void begin_collect(struct recovery *recovery, const struct found *found)
{
	struct error err;
	struct collect_config config = recovery->config.collect;
	if (!found->is_own) {
		config.provider = registry_get(recovery->config.registry, found->of->backend, &err);
		assert(config.provider); // the configuration was checked
		config.profile = found->of;
	}
	config.is_discarded = false;
	config.ends = found->ends;
	config.done = on_collected;
	config.data = recovery;
	recovery->collect = collect_start(&config, found->id);
}

static void collect_next(struct recovery *recovery)
{
	const struct look *look = recovery->look;
	if (recovery->is_over || recovery->next == look->count ||
		recovery->next == RECOVERY_RECORDS_MAX) {
		end_look(recovery);
		return;
	}
	begin_collect(recovery, &look->found[recovery->next]);
}

static void on_looked(struct pool_job *job)
{
	struct look *look = CONTAINER_OF(job, struct look, job);
	choose_profiles(look, &look->recovery->config);
	collect_next(look->recovery);
}

static void on_begin(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct recovery *recovery = CONTAINER_OF(timer, struct recovery, begin);
	struct error err;
	ev_timer_set(&recovery->due, recovery->config.timeout_ms / 1000., 0.);
	ev_timer_start(loop, &recovery->due);
	if (!pool_submit(recovery->config.collect.pool, &recovery->look->job, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err, "recovery: %s", err.text);
		stop(recovery);
	}
}

static void on_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct recovery *recovery = CONTAINER_OF(timer, struct recovery, due);
	const struct look *look = recovery->look;
	log_warning("recovery: not done within %d s (recovery-timeout); %zu sessions are left for "
		    "the next start, or for acp-broker sessions collect",
		recovery->config.timeout_ms / 1000,
		pool_has(&look->job) ? (size_t)0 : look->count - recovery->next);
	end_look(recovery);
}

/* ---- life ---- */

struct recovery *recovery_start(const struct recovery_config *config)
{
	struct recovery *recovery = mem_alloc_zero(sizeof(*recovery));
	struct look *look = mem_alloc_zero(sizeof(*look));
	recovery->config = *config;
	recovery->look = look;
	look->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = run_look, .done = on_looked, .drop = look_drop};
	look->recovery = recovery;
	look->state_folder = mem_strdup(config->collect.state_folder);
	look->ends_copies = config->collect.profile->sync.copy_max_age_ms > 0;
	for (size_t i = 0; i < config->other_count; i++) {
		look->ends_copies |= config->others[i].sync.copy_max_age_ms > 0;
	}
	look->folder_fd = -1;
	ev_init(&recovery->due, on_due);
	ev_timer_init(&recovery->begin, on_begin, config->delay_ms / 1000., 0.);
	ev_timer_start(config->collect.loop, &recovery->begin);
	return recovery;
}

void recovery_wake(struct recovery *recovery)
{
	if (!recovery || recovery->done || ev_is_active(&recovery->begin)) {
		return; // it has not looked yet
	}
	recovery->is_woken = true;
	if (!pool_has(&recovery->look->job) && !recovery->collect) {
		look_again(recovery);
	}
}

bool recovery_end(struct recovery *recovery, void (*done)(void *data), void *data)
{
	if (!recovery) {
		return false;
	}
	recovery->done = done;
	recovery->data = data;
	stop(recovery);
	return recovery->collect != NULL;
}

void recovery_destroy(struct recovery *recovery)
{
	if (!recovery) {
		return;
	}
	ev_timer_stop(recovery->config.collect.loop, &recovery->begin);
	ev_timer_stop(recovery->config.collect.loop, &recovery->due);
	collect_destroy(recovery->collect);
	pool_leave(&recovery->look->job);
	free(recovery);
}
