/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "acp/splice.h"
#include "base/buf.h"
#include "tests/fuzz/fuzz.h"

/*
 * The first byte is the message's length, then come edits: start, length and the replacement's
 * length, one byte each. The result must be that of a walk over the message that looks for an edit
 * at each byte.
 */
enum { EDITS_MAX = 512, WITH_MAX = 16, RESULT_MAX = 256 + EDITS_MAX * WITH_MAX };

struct naive_edit {
	size_t start;
	size_t end;
	size_t with_len;
	char with[WITH_MAX];
};

struct naive {
	size_t len;
	char message[256];
	size_t count;
	struct naive_edit edits[EDITS_MAX];
};

static void read_input(struct naive *naive, const uint8_t *data, size_t size)
{
	naive->len = data[0];
	naive->count = 0;
	for (size_t i = 0; i < naive->len; i++) {
		naive->message[i] = (char)('a' + i % 26);
	}
	for (size_t at = 1; at + 3 <= size && naive->count < EDITS_MAX; at += 3) {
		struct naive_edit *edit = &naive->edits[naive->count];
		edit->start = data[at];
		/* From 240 on: an end before the start, or far outside. */
		edit->end = edit->start + data[at + 1];
		if (data[at + 1] >= 240) {
			edit->end = data[at + 1] % 2 ? edit->start - 1 : SIZE_MAX;
		}
		edit->with_len = data[at + 2] % WITH_MAX;
		for (size_t i = 0; i < edit->with_len; i++) {
			edit->with[i] = (char)('0' + (naive->count + i) % 60);
		}
		naive->count++;
	}
}

static bool clash(const struct naive_edit *a, const struct naive_edit *b)
{
	if (a->start == a->end || b->start == b->end) {
		const struct naive_edit *insertion = a->start == a->end ? a : b;
		const struct naive_edit *other = insertion == a ? b : a;
		return other->start < insertion->start && insertion->start < other->end;
	}
	return a->start < b->end && b->start < a->end;
}

static bool is_valid(const struct naive *naive)
{
	for (size_t i = 0; i < naive->count; i++) {
		const struct naive_edit *edit = &naive->edits[i];
		if (edit->start > edit->end || edit->end > naive->len) {
			return false;
		}
		for (size_t j = 0; j < i; j++) {
			if (clash(edit, &naive->edits[j])) {
				return false;
			}
		}
	}
	return true;
}

static size_t apply(const struct naive *naive, char *to)
{
	size_t length = 0;
	size_t at = 0;
	while (at <= naive->len) {
		const struct naive_edit *replacement = NULL;
		for (size_t i = 0; i < naive->count; i++) {
			const struct naive_edit *edit = &naive->edits[i];
			if (edit->start == at && edit->end == at) {
				memcpy(to + length, edit->with, edit->with_len);
				length += edit->with_len;
			} else if (edit->start == at) {
				replacement = edit;
			}
		}
		if (replacement) {
			memcpy(to + length, replacement->with, replacement->with_len);
			length += replacement->with_len;
			at = replacement->end;
			continue;
		}
		if (at < naive->len) {
			to[length++] = naive->message[at];
		}
		at++;
	}
	return length;
}

static void compare(const struct splice *splice, const struct naive *naive)
{
	static char expected[RESULT_MAX];
	size_t length = apply(naive, expected);
	struct span message = {naive->message, naive->len};
	FUZZ_CHECK(splice_length(splice, naive->len) == length);

	struct buf out;
	buf_init(&out, length + 2);
	FUZZ_CHECK(buf_append(&out, SPAN_LITERAL("> "), NULL));
	FUZZ_CHECK(splice_append(splice, message, &out, NULL));
	buf_consume(&out, 2);
	FUZZ_CHECK(span_equals(buf_span(&out), (struct span){expected, length}));
	buf_clear(&out);

	size_t most = splice_piece_count(splice);
	struct iovec *pieces = mem_alloc(most * sizeof(pieces[0]));
	size_t count = splice_pieces(splice, message, pieces);
	FUZZ_CHECK(count <= most);
	for (size_t i = 0; i < count; i++) {
		FUZZ_CHECK(pieces[i].iov_len > 0);
		struct span piece = {pieces[i].iov_base, pieces[i].iov_len};
		FUZZ_CHECK(buf_append(&out, piece, NULL));
	}
	FUZZ_CHECK(span_equals(buf_span(&out), (struct span){expected, length}));
	free(pieces);
	buf_finish(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct naive naive;
	static struct splice splice; // used again, so that clearing is tried, too
	if (splice.bytes.max == 0) {
		splice_init(&splice);
	}
	if (size == 0) {
		return 0;
	}
	read_input(&naive, data, size);
	splice_clear(&splice);
	for (size_t i = 0; i < naive.count; i++) {
		const struct naive_edit *edit = &naive.edits[i];
		struct span with = {edit->with, edit->with_len};
		FUZZ_CHECK(splice_add(&splice, edit->start, edit->end, with, NULL));
	}
	struct error err = {0};
	bool ok = splice_seal(&splice, naive.len, &err);
	FUZZ_CHECK(ok == is_valid(&naive));
	FUZZ_CHECK(ok || err.code == ERROR_PROTOCOL);
	if (ok) {
		compare(&splice, &naive);
	}
	return 0;
}
