/* SPDX-License-Identifier: MIT */
/*
 * Takes snapshots of a directory and prints what each cost:
 *
 *     sync_snapshot STORE ROOT [COUNT [based]]
 *
 * Each is taken with the tree of the one before as its base, where "based" is said.
 * A line each: seconds, files, files read, the peak of private memory in KiB.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "sync/snapshot.h"

/* The number after a word at the beginning of a line; of several lines, the last one. */
static long read_kib(const char *path, const char *word)
{
	char line[256];
	long kib = 0;
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, word, strlen(word)) == 0) {
			kib = strtol(line + strlen(word), NULL, 10);
		}
	}
	if (file) {
		fclose(file);
	}
	return kib;
}

/* Counts only our own pages: the system can get those of mapped files again. */
static long private_kib(void)
{
	return read_kib("/proc/self/smaps_rollup", "Private_Dirty:");
}

static long peak_kib(void)
{
	return read_kib("/proc/self/status", "VmHWM:");
}

static bool take_once(struct store *store, const char *root, git_oid *base, bool *has_base)
{
	struct error err;
	struct snapshot snapshot;
	struct timespec begin, end;
	struct snapshot_request request = {.root = root,
		.base = *has_base ? base : NULL,
		.limits = snapshot_default_limits,
		.cache = "bench"};
	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (!snapshot_take(store, &request, &snapshot, &err)) {
		fprintf(stderr, "sync_snapshot: %s\n", err.text);
		return false;
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	double seconds =
		(double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
	printf("%.4f s, %zu files, %zu read, private %ld KiB, peak resident %ld KiB%s%s\n", seconds,
		snapshot.files, snapshot.read_files, private_kib(), peak_kib(),
		snapshot.note[0] ? ", " : "", snapshot.note);
	*base = snapshot.tree;
	*has_base = true;
	return true;
}

int main(int argc, char **argv)
{
	struct store store;
	struct error err;
	if (argc < 3) {
		fprintf(stderr, "usage: sync_snapshot STORE ROOT [COUNT [based]]\n");
		return 2;
	}
	if (!store_open(&store, argv[1], 0, &err)) {
		fprintf(stderr, "sync_snapshot: %s\n", err.text);
		return 1;
	}
	long count = argc > 3 ? strtol(argv[3], NULL, 10) : 1;
	bool is_based = argc > 4 && strcmp(argv[4], "based") == 0;
	git_oid base;
	bool has_base = false;
	bool taken = true;
	for (long i = 0; taken && i < count; i++) {
		has_base = has_base && is_based;
		taken = take_once(&store, argv[2], &base, &has_base);
	}
	store_close(&store);
	return taken ? 0 : 1;
}
