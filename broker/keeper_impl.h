/* SPDX-License-Identifier: MIT */
#ifndef BROKER_KEEPER_IMPL_H
#define BROKER_KEEPER_IMPL_H

#include "base/list.h"
#include "broker/keeper.h"
#include "broker/record_saver.h"

/* What keeper.c (tasks) and keeper_roots.c (what is kept) share; nobody else includes this. */

/* A root that is kept. */
struct keep {
	struct list link; // keeper.keeps
	struct keeper *keeper;
	struct record record;
	struct workspace *workspace; // NULL where the mode is none
	char *store_folder;
	char name[SYNC_NAME_MAX / 2]; // of this sandbox in the store
	bool is_opened;               // its first sync went well
	bool has_failed;              // it went wrong
	struct last_sync last;
};

struct keeper {
	struct keeper_config config;
	struct record_saver *saver;
	struct list keeps; // of struct keep, oldest first
	struct list tasks; // of struct task; the first is being done
	ev_timer start;    // begins the first task, once its caller has returned
};

/* Begins to keep what the sandbox has and is not kept yet. */
void keeper_add_roots(struct keeper *keeper);

void keep_destroy(struct keep *keep);

/* Writes down in the record and in last what a sync did, or why it failed. */
void keep_note_sync(struct keep *keep, enum sync_reason reason, const struct sync_result *result,
	const struct error *err);

#endif
