/* SPDX-License-Identifier: MIT */
#include "broker/toolhost/quirks.h"

#include <string.h>

#include "base/attr.h"

static const struct quirks table[] = {
	/* Treats every error of fs/read_text_file, even "Resource not found", as a failed write. */
	{"gemini-cli", .missing_file_is_empty = true},
};

static const struct quirks none = {.agent_name = ""};

const struct quirks *quirks_of(const char *agent_name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(table); i++) {
		if (strcmp(table[i].agent_name, agent_name) == 0) {
			return &table[i];
		}
	}
	return &none;
}
