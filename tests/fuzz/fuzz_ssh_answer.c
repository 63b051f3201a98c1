/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "providers/ssh/files_impl.h"
#include "tests/fuzz/fuzz.h"

/* The output of a script for files. The first byte chooses the script, the second one the limit. */
enum { BYTES_MAX = 4096 };

static bool ends_with(const uint8_t *data, size_t size, const char *end, size_t len)
{
	return size >= len && memcmp(data + size - len, end, len) == 0;
}

static void check_content(const struct buf *output, const uint8_t *data, size_t size, size_t max)
{
	size_t head = sizeof("content");
	size_t end = sizeof("\0whole");
	FUZZ_CHECK(size >= head + end && output->len == size - head - end && output->len <= max);
	FUZZ_CHECK(memcmp(data, "content", head) == 0);
	FUZZ_CHECK(ends_with(data, size, "\0whole", end));
	FUZZ_CHECK(
		output->len == 0 || memcmp(buf_span(output).data, data + head, output->len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2) {
		return 0;
	}
	enum file_script script = data[0] % (FILE_SCRIPT_RESOLVE + 1);
	size_t max = (size_t)data[1] * 8;
	data += 2;
	size -= 2;
	struct buf output;
	struct error err;
	struct file_answer answer = {0};
	buf_init(&output, BYTES_MAX);
	if (buf_append(&output, (struct span){(const char *)data, size}, &err)) {
		bool ok = file_answer_read(script, "/a", max, &output, "", &answer, &err);
		FUZZ_CHECK(ok || err.code != ERROR_NONE);
		if (ok && script == FILE_SCRIPT_READ && memchr(data, '\0', size) == data + 7 &&
			data[0] == 'c') {
			check_content(&output, data, size, max);
		} else if (ok) {
			FUZZ_CHECK(ends_with(data, size, "\0end", sizeof("\0end")));
		}
		FUZZ_CHECK(memchr(answer.path, '\0', sizeof(answer.path)) != NULL);
	}
	buf_finish(&output);
	return 0;
}
