/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CONFIG_CONFIG_READER_H
#define BROKER_CONFIG_CONFIG_READER_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

enum { CONFIG_FILE_MAX = 1 << 20 }; // bytes of a configuration file

/*
 * One "section.subsection.key" of the file, section and key in lower case.
 * `value` is NULL where the key stands without "=". False ends the reading
 * with err.
 */
typedef bool config_entry_handler(
	void *data, const char *name, const char *value, struct error *err);

/*
 * Reads one file in git-config syntax, and only this one: [include] is a
 * mistake. libgit2 does it in a short-lived child process, because a process
 * that once loaded it stays 3 MiB bigger. *out_found is false where there is no
 * such file, which is no failure. ERROR_CONFIG names the file, and the line
 * where it is known. Before any thread is started; blocks for some
 * milliseconds.
 */
bool config_reader_read(const char *path, config_entry_handler *on_entry, void *data,
	bool *out_found, struct error *err) ATTR_NODISCARD;

#endif
