/* SPDX-License-Identifier: MIT */
#ifndef BROKER_INIT_PROFILE_TEXT_H
#define BROKER_INIT_PROFILE_TEXT_H

#include "base/buf.h"
#include "base/settings.h"

/* Profiles as text of a configuration file. The buffers have no maximum that matters. */

/* Whether a profile may have the name here: letters, digits and "._@-", and not too long. */
bool profile_text_is_name(const char *name);

/* Appends [profile "NAME"] and its keys. */
void profile_text_write(const char *name, const struct settings *settings, struct buf *out);

/* The keys alone, a line each: what two profiles of one name are compared by. */
void profile_text_write_keys(const struct settings *settings, struct buf *out);

/* Whether both have the same keys with the same values, in whatever order. */
bool profile_text_is_same(const struct settings *one, const struct settings *other);

/*
 * The whole file with the profile added at its end; nothing that is there is changed. `old` is
 * NULL for a new file, whose [broker] section then names the profile.
 */
void profile_text_add(
	const struct span *old, const char *name, const struct settings *settings, struct buf *out);

#endif
