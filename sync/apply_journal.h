/* SPDX-License-Identifier: MIT */
#ifndef SYNC_APPLY_JOURNAL_H
#define SYNC_APPLY_JOURNAL_H

#include "sync/store.h"

/*
 * The folders in which an apply works, noted in the store before it works there,
 * so that the next one finds what a killed one left without reading the whole tree.
 * One file for each root.
 */
enum { JOURNAL_NAME_MAX = 64 };

struct journal {
	struct store *store;
	int fd; // -1: nothing was noted yet
	char name[JOURNAL_NAME_MAX];
};

void journal_init(struct journal *journal, struct store *store, const char *root);

/*
 * Visits each folder that a former one noted, once. What is noted afterwards is what `visit` wants
 * kept for the next one; it returns false with err to stop, and then all stays noted.
 */
bool journal_replay(struct journal *journal,
	bool (*visit)(void *data, const char *folder, bool *out_keep, struct error *err),
	void *data, struct error *err) ATTR_NODISCARD;

bool journal_note(struct journal *journal, const char *folder, struct error *err) ATTR_NODISCARD;

/* Nothing is left anywhere: forgets all. Else what was noted stays for the next one. */
void journal_forget(struct journal *journal);
void journal_finish(struct journal *journal);

#endif
