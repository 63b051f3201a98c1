/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_RECORD_FOLDER_H
#define TESTS_UNIT_RECORD_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "broker/ledger/record.h"

/* A state folder with records, for one test. */
struct record_folder {
	char path[64];
	int fd; // of the records in it
};

static inline void record_folder_make(struct record_folder *folder)
{
	struct error err;
	snprintf(folder->path, sizeof(folder->path), "/tmp/test-records-XXXXXX");
	assert_non_null(mkdtemp(folder->path));
	folder->fd = record_folder_open(folder->path, &err);
	assert_true(folder->fd >= 0);
}

/* Removes the folder, which must have only these records. */
static inline void record_folder_drop(
	struct record_folder *folder, char ids[][RECORD_ID_SIZE], size_t count)
{
	struct error err;
	char path[96];
	for (size_t i = 0; i < count; i++) {
		assert_true(record_remove(folder->fd, ids[i], &err));
	}
	fd_close(&folder->fd);
	snprintf(path, sizeof(path), "%s/sessions", folder->path);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(folder->path), 0);
}

#endif
