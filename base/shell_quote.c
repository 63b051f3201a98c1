/* SPDX-License-Identifier: MIT */
#include "base/shell_quote.h"

#include <string.h>

#include "base/buf.h"

char *shell_quote(const char *text)
{
	char *quoted = mem_alloc(strlen(text) * 4 + 3);
	char *to = quoted;
	*to++ = '\'';
	for (; *text; text++) {
		to = *text == '\'' ? stpcpy(to, "'\\''") : (*to = *text, to + 1);
	}
	*to++ = '\'';
	*to = '\0';
	return quoted;
}
