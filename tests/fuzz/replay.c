/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

/* Runs a fuzz target once with each file of the folders named on the command line. */
static void die(const char *what, const char *path)
{
	fprintf(stderr, "%s %s: %s\n", what, path, strerror(errno));
	exit(EXIT_FAILURE);
}

static void run_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	if (!file) {
		die("opening", path);
	}
	if (fseek(file, 0, SEEK_END) != 0) {
		die("seeking in", path);
	}
	long size = ftell(file);
	if (size < 0) {
		die("measuring", path);
	}
	rewind(file);
	/* Of exactly that size, so that a read behind it is seen. */
	uint8_t *data = malloc((size_t)size);
	if (!data && size > 0) {
		die("reading", path);
	}
	if (fread(data, 1, (size_t)size, file) != (size_t)size) {
		die("reading", path);
	}
	fclose(file);
	LLVMFuzzerTestOneInput(data, (size_t)size);
	free(data);
}

static int run_folder(const char *folder)
{
	DIR *dir = opendir(folder);
	if (!dir) {
		die("opening", folder);
	}
	int count = 0;
	const struct dirent *entry;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.') {
			continue;
		}
		char path[4096];
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		run_file(path);
		count++;
	}
	closedir(dir);
	return count;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		int count = run_folder(argv[i]);
		printf("%s: %d files\n", argv[i], count);
		if (count == 0) {
			fprintf(stderr, "%s is empty\n", argv[i]);
			return EXIT_FAILURE;
		}
	}
	return argc > 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
