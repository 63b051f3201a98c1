/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CONFIG_CONFIG_READER_H
#define BROKER_CONFIG_CONFIG_READER_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

enum { CONFIG_FILE_MAX = 1 << 20 }; // bytes of a configuration file

/*
 * Called for one "section.subsection.key" of the file; section and key are in lower case. `value`
 * is NULL if the key stands without "=". Returning false stops the reading with err.
 */
typedef bool config_entry_handler(
	void *data, const char *name, const char *value, struct error *err);

/*
 * Reads one file in git-config syntax. Only this file: [include] is a mistake. If the file does not
 * exist, *out_found is false and the call succeeds. ERROR_CONFIG names the file, and the line if it
 * is known. Blocks for the file.
 */
bool config_reader_read(const char *path, config_entry_handler *on_entry, void *data,
	bool *out_found, struct error *err) ATTR_NODISCARD;

#endif
