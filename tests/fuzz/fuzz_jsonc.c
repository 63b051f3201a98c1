/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/buf.h"
#include "broker/init/jsonc.h"
#include "tests/fuzz/fuzz.h"

enum { OUT_MAX = 4 << 20 };

static const char value[] = "{\n\t\"command\": \"b\",\n\t\"args\": []\n}";

static bool add(struct span text, struct buf *out, enum jsonc_outcome *out_outcome)
{
	struct error err;
	buf_init(out, OUT_MAX);
	return jsonc_add(text, "agent_servers", "n", SPAN_LITERAL(value), out, out_outcome, &err);
}

/* Checks that one piece was added, and that every other byte is unchanged. */
static void check_kept(struct span text, struct span out)
{
	size_t same = 0;
	while (same < text.len && text.data[same] == out.data[same]) {
		same++;
	}
	size_t rest = text.len - same;
	FUZZ_CHECK(out.len > text.len);
	FUZZ_CHECK(rest == 0 || memcmp(out.data + out.len - rest, text.data + same, rest) == 0);
}

/* Also checks that the added member can be found afterwards. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = {(const char *)data, size};
	struct buf out, again;
	enum jsonc_outcome outcome;
	bool ok = add(text, &out, &outcome);
	FUZZ_CHECK(out.len == 0 || (ok && outcome == JSONC_ADDED));
	if (ok && outcome == JSONC_ADDED) {
		check_kept(text, buf_span(&out));
		FUZZ_CHECK(add(buf_span(&out), &again, &outcome));
		FUZZ_CHECK(outcome == JSONC_SAME && again.len == 0);
		buf_finish(&again);
	}
	buf_finish(&out);
	return 0;
}
