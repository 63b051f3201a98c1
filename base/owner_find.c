/* SPDX-License-Identifier: MIT */
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/owner.h"

/* Not in owner.c, because a static program cannot look up users. */

enum { NAMES_BYTES = 16384 }; // for an entry of getpwuid_r(3)

/* False if it belongs to root, or the owner is unknown. */
static bool find_ordinary(const char *folder, struct owner *out)
{
	struct stat status;
	struct passwd found;
	struct passwd *entry = NULL;
	char names[NAMES_BYTES];
	if (stat(folder, &status) != 0 || status.st_uid == 0) {
		return false;
	}
	*out = (struct owner){.is_other = true, .uid = status.st_uid, .gid = OWNER_OF_ROOTS};
	if (getpwuid_r(out->uid, &found, names, sizeof(names), &entry) != 0) {
		entry = NULL;
	}
	/*
	 * The owner need not be a member of the folder's group. So we use that group only if the
	 * user is unknown.
	 */
	if (entry && entry->pw_gid != 0) {
		out->gid = entry->pw_gid;
	} else if (!entry && status.st_gid == status.st_uid) {
		out->gid = status.st_gid;
	}
	return true;
}

struct owner owner_find(const char *folder)
{
	struct owner owner = {.uid = geteuid(), .gid = getegid()};
	if (owner.uid == 0 && !find_ordinary(folder ? folder : ".", &owner)) {
		owner = (struct owner){
			.is_other = true, .uid = OWNER_OF_ROOTS, .gid = OWNER_OF_ROOTS};
	}
	return owner;
}

struct owner owner_of_workspace(const char *folder)
{
	struct owner owner = {.uid = geteuid(), .gid = getegid()};
	if (owner.uid == 0) {
		(void)find_ordinary(folder, &owner);
	}
	return owner;
}
