/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "providers/local/net/hello.h"
#include "tests/fuzz/fuzz.h"

/* Once the kind of a stream is known, the bytes that follow must not change it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[NAME_SIZE], other[NAME_SIZE];
	struct span whole = {(const char *)data, size};
	enum hello_step step = hello_read(whole, name);
	if (size >= HELLO_MAX) {
		FUZZ_CHECK(step != HELLO_MORE);
	}
	bool was_known = false;
	for (size_t i = 0; i < size && i < 512; i++) {
		enum hello_step begun = hello_read((struct span){whole.data, i}, other);
		FUZZ_CHECK(!was_known || begun == step);
		was_known = begun != HELLO_MORE;
		FUZZ_CHECK(!was_known || begun == step);
	}
	if (step == HELLO_NAME) {
		FUZZ_CHECK(host_name_read(other, span_of(name)) && strcmp(name, other) == 0);
	}
	return 0;
}
