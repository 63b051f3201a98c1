/* SPDX-License-Identifier: MIT */
#ifndef BASE_PATH_QUOTE_H
#define BASE_PATH_QUOTE_H

#include "base/span.h"

/*
 * Returns a path for people to read. If the path contains something that could mislead a reader or
 * control a terminal, it is put in double quotes with C escapes, as git does with
 * core.quotePath=false; otherwise it is unchanged. These characters are escaped: control
 * characters, quotes, backslashes, bytes that are not UTF-8, and characters for which
 * utf8_is_hidden is true. The caller frees it.
 */
char *path_quote(struct span path);
char *path_quote_below(const char *folder, const char *path); // "FOLDER/PATH"

#endif
