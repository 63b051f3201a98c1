/* SPDX-License-Identifier: MIT */
#ifndef BROKER_INIT_PROFILE_TEXT_H
#define BROKER_INIT_PROFILE_TEXT_H

#include "base/buf.h"
#include "base/settings.h"

/* Writes profiles as text of a configuration file. The buffers must have room. */

/* Whether init accepts this name for a profile: letters, digits and "._@-", and not too long. */
bool profile_text_is_name(const char *name);

/* Appends [profile "NAME"] and its keys. */
void profile_text_write(const char *name, const struct settings *settings, struct buf *out);

/* Appends only the keys, one per line, to compare two profiles of the same name. */
void profile_text_write_keys(const struct settings *settings, struct buf *out);

/* Whether both have the same keys with the same values, in any order. */
bool profile_text_is_same(const struct settings *one, const struct settings *other);

/*
 * Appends the old file, unchanged, and the profile after it. If `old` is NULL, the file is new, and
 * a [broker] section names the profile as the default.
 */
void profile_text_add(
	const struct span *old, const char *name, const struct settings *settings, struct buf *out);

#endif
