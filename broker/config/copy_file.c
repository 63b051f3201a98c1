/* SPDX-License-Identifier: MIT */
#include "broker/config/copy_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/real_path.h"
#include "base/text.h"

/* The part of the path after "~/" or after the home directory; NULL if it is in neither. */
static const char *below_home(const char *path, const char *home)
{
	if (strncmp(path, "~/", 2) == 0) {
		return path + 2;
	}
	size_t len = home ? strlen(home) : 0;
	while (len > 0 && home[len - 1] == '/') {
		len--;
	}
	return len > 0 && strncmp(path, home, len) == 0 && path[len] == '/' ? path + len + 1 : NULL;
}

static char *place_source(const char *source, const char *home, struct error *err)
{
	if (source[0] == '/') {
		return mem_strdup(source);
	}
	if (strncmp(source, "~/", 2) != 0) {
		error_set(err, ERROR_CONFIG, "expected /PATH or ~/PATH, got %s", source);
		return NULL;
	}
	if (!home) {
		error_set(err, ERROR_CONFIG, "%s needs HOME, which is not set", source);
		return NULL;
	}
	size_t size = strlen(home) + strlen(source);
	char *placed = mem_alloc(size);
	text_whole(placed, size, "%s%s", home, source + 1);
	return placed;
}

static const char *place_target(
	const char *source, const char *target, const char *home, struct error *err)
{
	const char *placed = target;
	if (!target) {
		placed = below_home(source, home);
		if (!placed) {
			error_set(err, ERROR_CONFIG,
				"expected %s:TARGET, because the file is not below the home "
				"directory",
				source);
			return NULL;
		}
	} else if (strncmp(target, "~/", 2) == 0) {
		placed = target + 2;
	}
	size_t len = strlen(placed);
	if (len == 0 || placed[len - 1] == '/' || path_goes_up(placed)) {
		error_set(err, ERROR_CONFIG, "expected the name of a file without \"..\", got %s",
			target ? target : source);
		return NULL;
	}
	return placed;
}

bool copy_file_read(
	const char *text, const char *home, struct copy_file *out_file, struct error *err)
{
	const char *colon = strchr(text, ':');
	char *name =
		mem_strndup((struct span){text, colon ? (size_t)(colon - text) : strlen(text)});
	char *source = place_source(name, home, err);
	const char *target =
		source ? place_target(name, colon ? colon + 1 : NULL, home, err) : NULL;
	if (target) {
		*out_file = (struct copy_file){.source = source, .target = mem_strdup(target)};
	} else {
		free(source);
	}
	free(name);
	return target != NULL;
}

void copy_file_finish(struct copy_file *file)
{
	free(file->source);
	free(file->target);
}
