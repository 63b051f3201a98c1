/* SPDX-License-Identifier: MIT */
#include "broker/config/sync_settings.h"

#include <assert.h>
#include <string.h>

#include "base/buf.h"

const char *sync_mode_name(enum sync_mode mode)
{
	static const char *const names[] = {"none", "session-bidirectional", "turn-bidirectional"};
	assert((size_t)mode < ARRAY_LENGTH(names));
	return names[mode];
}

static const char *const persistences[] = {"transient", "reuse", "archive"};

const char *persistence_name(enum persistence persistence)
{
	assert((size_t)persistence < ARRAY_LENGTH(persistences));
	return persistences[persistence];
}

bool persistence_parse(const char *name, enum persistence *out_persistence)
{
	for (size_t i = 0; i < ARRAY_LENGTH(persistences); i++) {
		if (strcmp(name, persistences[i]) == 0) {
			*out_persistence = (enum persistence)i;
			return true;
		}
	}
	return false;
}
