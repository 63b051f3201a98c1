/* SPDX-License-Identifier: MIT */
#ifndef BASE_CONFIG_TEXT_H
#define BASE_CONFIG_TEXT_H

#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/span.h"

/*
 * The syntax of git-config(1), read from memory one setting at a time. It knows no files, no
 * includes and no keys. libgit2 has a parser too, but to load that library takes longer than
 * everything else that a start does.
 */
struct config_text {
	struct span text;  // borrowed
	size_t at;         // next byte
	size_t line;       // of the last step, from 1
	size_t next_line;  // of the next byte
	struct buf word;   // being read
	char *section;     // owned; NULL before the first
	const char *wrong; // after CONFIG_TEXT_WRONG: what is wrong in this line
};

enum config_text_step { CONFIG_TEXT_END, CONFIG_TEXT_SETTING, CONFIG_TEXT_WRONG };

void config_text_init(struct config_text *source, struct span text);
void config_text_finish(struct config_text *source);

/*
 * Reads up to the next setting. Its key is "section.name" or "section.sub.name", with section and
 * name in lower case; the value is NULL if there is no "=". The caller frees both. They are set for
 * CONFIG_TEXT_SETTING alone. A key before the first section has no dot; git refuses it.
 */
enum config_text_step config_text_next(
	struct config_text *source, char **out_key, char **out_value) ATTR_NODISCARD;

#endif
