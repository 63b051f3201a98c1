/* SPDX-License-Identifier: MIT */
#include "broker/cli/stderr_line.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mask.h"
#include "base/text.h"

void stderr_failure(const struct error *err)
{
	if (log_format_is(LOG_FORMAT_JSON)) {
		log_failure(LOG_LEVEL_ERROR, err, "%s", err->text);
		return;
	}
	struct span text = span_of(err->text);
	fputs("acp-broker: ", stderr);
	while (text.len > 0) {
		char room[MASK_SIZE];
		struct span shown = mask_next(&text, room);
		fwrite(shown.data, 1, shown.len, stderr);
	}
	fputc('\n', stderr);
}

void stderr_note(const char *format, ...)
{
	char text[ERROR_TEXT_MAX];
	va_list args;
	va_start(args, format);
	text_vformat(text, sizeof(text), format, args);
	va_end(args);
	if (log_format_is(LOG_FORMAT_JSON)) {
		log_info("%s", text);
		return;
	}
	char *line = mask_line(span_of(text));
	fprintf(stderr, "acp-broker: %s\n", line);
	free(line);
}
