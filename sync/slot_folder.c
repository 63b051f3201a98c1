/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/beneath.h"
#include "sync/parked.h"
#include "sync/slot.h"

enum { DEPTH_MAX = 100 };

/* A check accepts and counts parked versions. */
enum kind { VISIT_CHECK, VISIT_REMOVE };

struct visit {
	enum kind kind;
	size_t parked;
};

static bool visit_folder(int folder, const char *name, struct visit *visit, int depth);

static bool visit_names(DIR *names, struct visit *visit, int depth)
{
	struct dirent *entry;
	while ((entry = readdir(names)) != NULL) {
		struct span name = span_of(entry->d_name);
		if (span_is(name, ".") || span_is(name, "..")) {
			continue;
		}
		if (visit->kind == VISIT_CHECK && parked_is_name(name)) {
			visit->parked++;
		} else if (!visit_folder(dirfd(names), entry->d_name, visit, depth)) {
			return false;
		}
	}
	return true;
}

/* Fails at the first entry that is not a folder. */
static bool visit_folder(int folder, const char *name, struct visit *visit, int depth)
{
	int fd = depth > DEPTH_MAX
	                 ? -1
	                 : beneath_open(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	DIR *names = fd < 0 ? NULL : fdopendir(fd);
	if (!names) {
		if (fd >= 0) {
			close(fd);
		}
		return false;
	}
	bool visited = visit_names(names, visit, depth + 1);
	closedir(names);
	return visited && (visit->kind == VISIT_CHECK || unlinkat(folder, name, AT_REMOVEDIR) == 0);
}

bool slot_make_way(int folder, const char *name)
{
	struct visit check = {.kind = VISIT_CHECK};
	struct visit removal = {.kind = VISIT_REMOVE};
	char kept[NAME_MAX + 1];
	if (!visit_folder(folder, name, &check, 0)) {
		return false;
	}
	return check.parked ? slot_keep(folder, name, name, kept) == 0
	                    : visit_folder(folder, name, &removal, 0);
}
