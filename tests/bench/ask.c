/* SPDX-License-Identifier: MIT */
#include "tests/bench/ask.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	FIRST_ID = 10000000,
	SHOWN_MAX = 300, // bytes of an answer that is wrong
};

const char *ask(struct asker *asker, const char *method, const char *params, const char *tail,
	size_t *out_len)
{
	char head[PATH_MAX + 512];
	char mark[64];
	const unsigned id = FIRST_ID + ++asker->last_id;
	(void)snprintf(head, sizeof(head),
		"{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"%s\",\"params\":{\"sessionId\":\"%s\""
		",%s",
		id, method, asker->session, params);
	const size_t size = strlen(head) + strlen(tail) + sizeof("}}\n");
	char *line = malloc(size);
	if (line == NULL) {
		abort();
	}
	(void)snprintf(line, size, "%s%s}}\n", head, tail);
	const bool sent = write_all(STDOUT_FILENO, line, size - 1);
	free(line);
	const char *answer = sent ? lines_next(asker->lines, out_len) : NULL;
	(void)snprintf(mark, sizeof(mark), "{\"jsonrpc\":\"2.0\",\"id\":%u,\"result\":", id);
	const size_t mark_len = strlen(mark);
	if (answer == NULL || *out_len < mark_len || memcmp(answer, mark, mark_len) != 0) {
		(void)fprintf(stderr, "load_agent: %s: got %.*s\n", method,
			answer ? (int)(*out_len < SHOWN_MAX ? *out_len : SHOWN_MAX) : 0,
			answer ? answer : "");
		return NULL;
	}
	*out_len -= mark_len;
	return answer + mark_len;
}

bool is_result(const char *got, size_t len, const char *wanted, const char *method)
{
	const size_t wanted_len = strlen(wanted);

	if (got == NULL) {
		return false;
	}
	if (len < wanted_len || memcmp(got, wanted, wanted_len) != 0) {
		(void)fprintf(stderr, "load_agent: %s: the result differs: %.*s\n", method,
			(int)(len < SHOWN_MAX ? len : SHOWN_MAX), got);
		return false;
	}
	return true;
}
