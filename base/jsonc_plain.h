/* SPDX-License-Identifier: MIT */
#ifndef BASE_JSONC_PLAIN_H
#define BASE_JSONC_PLAIN_H

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

/*
 * Reads JSON with comments and trailing commas, as editors' settings and devcontainer.json have it.
 *
 * `plain` has room for as many bytes as the text. It gets JSON of the same length: everything that
 * is not JSON becomes white space. So an offset means the same place in both. Fails with
 * ERROR_PROTOCOL if the text is invalid, or with ERROR_LIMIT if it is nested too deeply; both name
 * the line. *out_is_blank: there is no value.
 */
bool jsonc_plain(
	struct span text, char *plain, bool *out_is_blank, struct error *err) ATTR_NODISCARD;

/* The length of a byte order mark at the beginning of the text. */
size_t jsonc_mark_length(struct span text);

/* 1 for a text without a line end. */
size_t jsonc_count_lines(struct span text);

#endif
