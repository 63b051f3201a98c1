/* SPDX-License-Identifier: MIT */
#ifndef BASE_PATH_QUOTE_H
#define BASE_PATH_QUOTE_H

#include "base/span.h"

/*
 * A path for people: as it is, or in double quotes with C escapes where it holds what
 * could mislead a reader or drive a terminal, as git does with core.quotePath=false:
 * control characters, quotes, backslashes, bytes that are no UTF-8, and characters that
 * utf8_is_hidden. The caller frees it.
 */
char *path_quote(struct span path);
char *path_quote_below(const char *folder, const char *path); // "FOLDER/PATH"

#endif
