/* SPDX-License-Identifier: MIT */
#ifndef BASE_REMOVE_FOLDER_H
#define BASE_REMOVE_FOLDER_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Removes a folder with its content, or another file with this name. A missing folder is no error.
 * Follows no link, neither below the path's last name nor at it, whatever changes meanwhile.
 * Blocks.
 */
bool remove_folder(const char *path, struct error *err) ATTR_NODISCARD;

#endif
