/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "providers/local/net/proxy.h"
#include "providers/local/request.h"
#include "tests/fuzz/fuzz.h"

/* How a stream ends, and where. */
struct outcome {
	enum proxy_step step;
	size_t used;
	struct proxy_target target;
	struct proxy proxy;
};

/* Reads the stream as it comes, `piece` bytes more each time. */
static struct outcome read_stream(const uint8_t *data, size_t size, size_t piece)
{
	struct outcome outcome = {.step = PROXY_MORE};
	size_t end = 0;
	while (outcome.step == PROXY_MORE && end < size) {
		end = size - end < piece ? size : end + piece;
		do {
			size_t used;
			struct span answer;
			struct span input = {(const char *)data + outcome.used, end - outcome.used};
			outcome.step =
				proxy_read(&outcome.proxy, input, &used, &outcome.target, &answer);
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

/* The server must get one request for a path, with one host and no field of the hop. */
static void check_head(const struct proxy *proxy)
{
	static const char *const left_out[] = {
		"keep-alive", "te", "trailer", "upgrade", "proxy-connection"};
	struct span head = {proxy->head, proxy->head_len};
	struct request request;
	FUZZ_CHECK(request_head_size(head, 0) == head.len);
	FUZZ_CHECK(request_read(&request, head) == 0);
	FUZZ_CHECK(request.is_chunked == proxy->body.is_chunked);
	FUZZ_CHECK(request.length == proxy->body.left);
	FUZZ_CHECK(span_is(request_find(&request, "connection"), "close"));
	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++) {
		FUZZ_CHECK(!request_find(&request, left_out[i]).data);
	}
}

static void check_same(const struct outcome *whole, const struct outcome *slow)
{
	FUZZ_CHECK(whole->target.port == slow->target.port);
	FUZZ_CHECK(whole->target.is_address == slow->target.is_address);
	FUZZ_CHECK(strcmp(whole->target.name, slow->target.name) == 0);
	FUZZ_CHECK(memcmp(whole->target.address.bytes, slow->target.address.bytes,
			   sizeof(whole->target.address.bytes)) == 0);
	FUZZ_CHECK(whole->proxy.kind == slow->proxy.kind);
	FUZZ_CHECK((whole->proxy.kind == PROXY_REQUEST) == (whole->proxy.head != NULL));
	FUZZ_CHECK(whole->proxy.head_len == slow->proxy.head_len);
	FUZZ_CHECK(!whole->proxy.head ||
		   memcmp(whole->proxy.head, slow->proxy.head, whole->proxy.head_len) == 0);
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
		check_same(&whole, &slow);
	}
	if (whole.proxy.head) {
		check_head(&whole.proxy);
	}
	proxy_finish(&whole.proxy);
	proxy_finish(&slow.proxy);
	return 0;
}
