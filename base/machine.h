/* SPDX-License-Identifier: MIT */
#ifndef BASE_MACHINE_H
#define BASE_MACHINE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Identifies this machine, by /etc/machine-id if possible. A container's machine-id comes from its
 * image, so other containers may have the same one; and its host name changes with each new
 * container. In a container, and without a valid /etc/machine-id, the id is therefore the content
 * of FOLDER/machine-id. This file is created once, at random, and lives as long as the data in the
 * folder. Without a folder (NULL, "") nothing is stored, and the host name is the id.
 *
 * Use the id only in hashes: machine-id(5) asks programs not to pass it on in any other form. Fails
 * if the folder's file can be neither read nor created; the error names it. Blocks. `root` is put
 * before all paths except the folder's; normally "".
 */
enum { MACHINE_ID_SIZE = 64 };
bool machine_id_read(const char *root, const char *folder, char machine[MACHINE_ID_SIZE],
	struct error *err) ATTR_NODISCARD;

/*
 * Identifies the data in `folder`, on whatever machine it is used: the content of
 * FOLDER/machine-id, as above. Blocks.
 */
bool folder_id_read(const char *folder, char id[MACHINE_ID_SIZE], struct error *err) ATTR_NODISCARD;

/* The id of this boot, padded with NULs; "" if the system has none. Blocks. */
enum { BOOT_ID_SIZE = 40 };
void boot_id_read(char boot[BOOT_ID_SIZE]);

#endif
