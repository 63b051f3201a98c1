/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "sync/rsync/print.h"
#include "sync/rsync/reach.h"
#include "tests/fuzz/fuzz.h"

/*
 * Two reports of the script that looks at a runtime, with a "/" between them: what was read must be
 * stored and found again.
 */
static void read_reach(struct span words)
{
	struct reach reach;
	struct rules rules, none;
	rules_init(&rules);
	rules_init(&none);
	if (reach_read(&reach, words, &none, -1)) {
		for (size_t i = 1; i < reach.count; i++) {
			FUZZ_CHECK(strcmp(reach.folders[i - 1], reach.folders[i]) < 0);
		}
		FUZZ_CHECK(reach.count == 0 || !*reach.folders[0]);
		reach_add_rules(&reach, &none, &rules);
		FUZZ_CHECK(rules.count <= reach.count + 1);
		reach_finish(&reach);
	}
	rules_finish(&rules);
}

static bool read_one(struct print *print, const uint8_t *data, size_t size)
{
	struct print again;
	char text[PRINT_TEXT_MAX];
	char second[PRINT_TEXT_MAX];
	struct span more;
	if (!print_read(print, (struct span){(const char *)data, size}, &more)) {
		return false;
	}
	read_reach(more);
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

/* A print from the store may be any line, because the sandbox made it. */
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
