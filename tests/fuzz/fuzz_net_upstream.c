/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "providers/local/net/upstream.h"
#include "tests/fuzz/fuzz.h"

/* What follows the head of an answer, and how the answer is cut, must not change its reading. */
static void check_answer(struct span bytes)
{
	size_t used = 0, other_used = 0;
	unsigned status = 0, other_status = 0;
	enum upstream_step step = upstream_read_answer(bytes, &used, &status);
	if (step == UPSTREAM_ANSWERED) {
		FUZZ_CHECK(used <= bytes.len && used <= UPSTREAM_ANSWER_MAX);
		FUZZ_CHECK(memcmp(bytes.data + used - 4, "\r\n\r\n", 4) == 0);
		FUZZ_CHECK(status <= 999);
	}
	FUZZ_CHECK(step != UPSTREAM_MORE || bytes.len < UPSTREAM_ANSWER_MAX);
	enum upstream_step begun = UPSTREAM_MORE;
	size_t len = 0;
	while (begun == UPSTREAM_MORE && len < bytes.len) {
		len++;
		begun = upstream_read_answer(
			(struct span){bytes.data, len}, &other_used, &other_status);
	}
	FUZZ_CHECK(begun == step);
	if (step == UPSTREAM_ANSWERED) {
		FUZZ_CHECK(len == used && other_used == used && other_status == status);
	}
}

/* Whatever the variables contain, the request is one request for the target. */
static void check_variables(struct span bytes)
{
	char text[2048], head[UPSTREAM_HEAD_SIZE];
	size_t half = bytes.len / 2;
	struct upstream upstream;
	struct error err;
	struct proxy_target target;
	if (bytes.len >= sizeof(text) - 64 || memchr(bytes.data, '\0', bytes.len)) {
		return;
	}
	snprintf(text, sizeof(text), "https_proxy=%.*s", (int)half, bytes.data);
	char other[2048];
	snprintf(other, sizeof(other), "http_proxy=%.*s", (int)(bytes.len - half),
		bytes.data + half);
	const char *const environment[] = {text, text + strlen(text) + 1, other, NULL};
	snprintf(text + strlen(text) + 1, sizeof(text) - strlen(text) - 1, "no_proxy=%.*s",
		(int)(bytes.len - half), bytes.data + half);
	if (!upstream_read(&upstream, environment, &err)) {
		return;
	}
	FUZZ_CHECK(upstream_is_whole(&upstream));
	FUZZ_CHECK(upstream_is_set(&upstream) == (half > 0));
	FUZZ_CHECK(proxy_read_authority(&target, SPAN_LITERAL("a.b.example:443"), 0));
	(void)upstream_takes(&upstream, &target);
	FUZZ_CHECK(proxy_read_authority(&target, SPAN_LITERAL("[2001:db8::1]:443"), 0));
	(void)upstream_takes(&upstream, &target);
	FUZZ_CHECK(!upstream_is_set(&upstream) || upstream_is(&upstream, &upstream.place));
	for (uint32_t i = 0; i < upstream.other_count; i++) {
		FUZZ_CHECK(upstream_is(&upstream, &upstream.others[i]));
	}
	size_t len = upstream_write(&upstream, &target, head);
	FUZZ_CHECK(len == strlen(head) && strstr(head, "\r\n\r\n") == head + len - 4);
	const char *login = strstr(head, "\r\nProxy-Authorization: ");
	FUZZ_CHECK((login != NULL) == (upstream.key[0] != '\0'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0) {
		return 0;
	}
	struct span bytes = {(const char *)data + 1, size - 1};
	if (data[0] == 'v') {
		check_variables(bytes);
	} else if (size < UPSTREAM_ANSWER_MAX + 64) {
		check_answer(bytes);
	}
	return 0;
}
