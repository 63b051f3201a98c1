/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "sync/rsync/print.h"
#include "tests/fuzz/fuzz.h"

/* What a look at a runtime tells, two of them with a "/" between: what is read is kept and found.
 */
static bool read_one(struct print *print, const uint8_t *data, size_t size)
{
	struct print again;
	char text[PRINT_TEXT_MAX];
	char second[PRINT_TEXT_MAX];
	if (!print_read(print, (struct span){(const char *)data, size})) {
		return false;
	}
	FUZZ_CHECK(size > 0 && data[size - 1] == '\0');
	FUZZ_CHECK(strlen(print->sum) == 64 && print->boot[0]);
	FUZZ_CHECK(print->newest >= 0 && print->now >= 0 && print->since_boot >= 0);
	print_format(print, text);
	FUZZ_CHECK(strlen(text) < PRINT_TEXT_MAX - 1 && !strchr(text, '\n'));
	FUZZ_CHECK(print_parse(&again, text));
	print_format(&again, second);
	FUZZ_CHECK(strcmp(text, second) == 0);
	FUZZ_CHECK(print_is_same(print, &again));
	FUZZ_CHECK(!print_is_settled(print) || print->newest < print->now);
	return true;
}

/* Of the sandbox's, in the store: any line at all. */
static void parse_any(const uint8_t *data, size_t size)
{
	struct print print;
	char *text = malloc(size + 1);
	FUZZ_CHECK(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	if (print_parse(&print, text)) {
		FUZZ_CHECK(strlen(print.sum) == 64 && print.boot[0]);
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *middle = size > 0 ? memchr(data, '/', size) : NULL;
	size_t len = middle ? (size_t)(middle - data) : size;
	struct print before;
	struct print after;
	parse_any(data, size);
	if (read_one(&before, data, len) && middle &&
		read_one(&after, middle + 1, size - len - 1)) {
		bool is_same = print_is_same(&before, &after);
		FUZZ_CHECK(!is_same || strcmp(before.sum, after.sum) == 0);
		FUZZ_CHECK(!is_same || before.now <= after.now);
	}
	return 0;
}
