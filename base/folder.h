/* SPDX-License-Identifier: MIT */
#ifndef BASE_FOLDER_H
#define BASE_FOLDER_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/* Creates the missing folders of an absolute path (mkdir -p -m 700). Blocks. */
bool folder_make(const char *path, struct error *err) ATTR_NODISCARD;

/* The same for a folder of the broker's state. Its error names the setting for another place. */
bool folder_make_state(const char *path, struct error *err) ATTR_NODISCARD;

#endif
