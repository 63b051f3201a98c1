/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "providers/local/net/proxy.h"
#include "tests/fuzz/fuzz.h"

/* How a stream ends, and where. */
struct outcome {
	enum proxy_step step;
	size_t used;
	struct proxy_target target;
};

/* Reads the stream as it comes, `piece` bytes more each time. */
static struct outcome read_stream(const uint8_t *data, size_t size, size_t piece)
{
	struct proxy proxy = {.kind = PROXY_UNKNOWN};
	struct outcome outcome = {.step = PROXY_MORE};
	size_t end = 0;
	while (outcome.step == PROXY_MORE && end < size) {
		end = size - end < piece ? size : end + piece;
		do {
			size_t used;
			struct span answer;
			struct span input = {(const char *)data + outcome.used, end - outcome.used};
			outcome.step = proxy_read(&proxy, input, &used, &outcome.target, &answer);
			FUZZ_CHECK(used <= input.len);
			FUZZ_CHECK((outcome.step == PROXY_MORE) <= (used == 0));
			FUZZ_CHECK((outcome.step != PROXY_ANSWER && outcome.step != PROXY_WRONG) ||
				   answer.len > 0);
			outcome.used += used;
		} while (outcome.step == PROXY_ANSWER);
	}
	return outcome;
}

static void check_target(const struct proxy_target *target)
{
	char name[NAME_SIZE];
	FUZZ_CHECK(target->port != 0);
	if (target->is_address) {
		FUZZ_CHECK(target->address.family == AF_INET || target->address.family == AF_INET6);
		FUZZ_CHECK(target->name[0] == '\0');
	} else {
		FUZZ_CHECK(host_name_read(name, span_of(target->name)));
		FUZZ_CHECK(strcmp(name, target->name) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0 || size >= PROXY_HEAD_MAX) {
		return 0;
	}
	struct outcome whole = read_stream(data, size, size);
	struct outcome slow = read_stream(data, size, 1);
	FUZZ_CHECK(whole.step == slow.step && whole.used == slow.used);
	if (whole.step == PROXY_TARGET) {
		check_target(&whole.target);
		FUZZ_CHECK(whole.target.port == slow.target.port);
		FUZZ_CHECK(whole.target.is_address == slow.target.is_address);
		FUZZ_CHECK(strcmp(whole.target.name, slow.target.name) == 0);
		FUZZ_CHECK(memcmp(whole.target.address.bytes, slow.target.address.bytes,
				   sizeof(whole.target.address.bytes)) == 0);
	}
	return 0;
}
