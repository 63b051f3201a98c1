/* SPDX-License-Identifier: MIT */
#ifndef BASE_MACHINE_H
#define BASE_MACHINE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Identifies this machine: by /etc/machine-id if possible. Not in a container: its machine-id comes
 * from the image, so that other containers may have the same one, and its host name is as new as
 * the container. There, and without a valid /etc/machine-id, the id is the content of
 * FOLDER/machine-id, created once at random, so that it is as old as the data in that folder.
 * Without a folder (NULL, "") nothing is stored, and the host name is used.
 *
 * Use the id only in hashes: machine-id(5) asks not to let it leave the machine in another way.
 * Fails if the folder's file can be neither read nor created; the error names it. Blocks. `root` is
 * put before all paths except the folder's; normally "".
 */
enum { MACHINE_ID_SIZE = 64 };
bool machine_id_read(const char *root, const char *folder, char machine[MACHINE_ID_SIZE],
	struct error *err) ATTR_NODISCARD;

/* The id of this boot, padded with NULs; "" if the system has none. Blocks. */
enum { BOOT_ID_SIZE = 40 };
void boot_id_read(char boot[BOOT_ID_SIZE]);

#endif
