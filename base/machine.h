/* SPDX-License-Identifier: MIT */
#ifndef BASE_MACHINE_H
#define BASE_MACHINE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * What tells this machine from others: /etc/machine-id. That of a container is its image's, which
 * others may have, or it has none, and its name goes with it: there it is what stands in
 * FOLDER/machine-id, made at random once, so that it is as old as what is remembered in that
 * folder. Where there is no folder either (NULL, ""), nothing is remembered, and the host's name
 * does.
 *
 * It is for hashes alone: machine-id(5) asks that it leaves the machine in no other way. Fails
 * where the folder's file can be neither read nor made; the error names it. Blocks. `root` is
 * before all paths but the folder's: "".
 */
enum { MACHINE_ID_SIZE = 64 };
bool machine_id_read(const char *root, const char *folder, char machine[MACHINE_ID_SIZE],
	struct error *err) ATTR_NODISCARD;

/* The id of this boot, padded with NULs; "" where the system has none. Blocks. */
enum { BOOT_ID_SIZE = 40 };
void boot_id_read(char boot[BOOT_ID_SIZE]);

#endif
