/* SPDX-License-Identifier: MIT */
#ifndef SYNC_APPLY_JOURNAL_H
#define SYNC_APPLY_JOURNAL_H

#include "sync/store.h"

/*
 * The folders in which an apply works. It notes each one in the store before it works there, so
 * that the next apply finds the remains of a killed one without reading the whole tree. There is
 * one file per root.
 */
enum { JOURNAL_NAME_MAX = 64 };

struct journal {
	struct store *store;
	int fd; // -1: no folder was noted yet
	char name[JOURNAL_NAME_MAX];
};

void journal_init(struct journal *journal, struct store *store, const char *root);

/*
 * Visits once each folder that an earlier apply noted. `visit` sets *out_keep to keep the folder
 * noted for the next apply. If it returns false with err, the replay stops and all folders stay
 * noted.
 */
bool journal_replay(struct journal *journal,
	bool (*visit)(void *data, const char *folder, bool *out_keep, struct error *err),
	void *data, struct error *err) ATTR_NODISCARD;

bool journal_note(struct journal *journal, const char *folder, struct error *err) ATTR_NODISCARD;

/*
 * Forgets all folders if no remains are left anywhere. Otherwise the noted ones stay for the next
 * apply.
 */
void journal_forget(struct journal *journal);
void journal_finish(struct journal *journal);

#endif
