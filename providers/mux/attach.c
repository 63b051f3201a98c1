/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/sha256.h"
#include "providers/mux/wire.h"

/* How a broker proves to its runner that another channel comes from it (wire.h). */

enum { PROOF_SIZE = 2 * SHA256_SIZE, NUMBER_MAX = 19 };
static const char word[] = "attach ";

static void prove(unsigned char out[SHA256_SIZE], const char key[RUNNER_KEY_SIZE],
	struct span nonce, struct span number)
{
	struct error err;
	struct buf text;
	buf_init(&text, RUNNER_TEXT_MAX);
	bool is_whole = buf_append(&text, nonce, &err) &&
	                buf_append(&text, SPAN_LITERAL(" "), &err) &&
	                buf_append(&text, number, &err);
	sha256_hmac(out, (struct span){key, RUNNER_KEY_SIZE},
		is_whole ? buf_span(&text) : (struct span){0});
	buf_finish(&text);
}

bool runner_attach_answer(struct buf *out, const char key[RUNNER_KEY_SIZE], struct span nonce,
	uint64_t number, struct error *err)
{
	unsigned char proof[SHA256_SIZE];
	char hex[PROOF_SIZE + 1];
	char digits[NUMBER_MAX + 2];
	snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
	prove(proof, key, nonce, span_of(digits));
	hex_write(hex, proof, sizeof(proof));
	return buf_append_format(out, err, "%s%s %s\n", word, digits, hex);
}

bool runner_attach_check(
	struct span line, const char key[RUNNER_KEY_SIZE], struct span nonce, uint64_t *out_number)
{
	unsigned char proof[SHA256_SIZE];
	unsigned char expected[SHA256_SIZE];
	size_t begin = sizeof(word) - 1;
	if (line.len < begin || memcmp(line.data, word, begin) != 0) {
		return false;
	}
	uint64_t number = 0;
	size_t at = begin;
	for (; at < line.len && line.data[at] >= '0' && line.data[at] <= '9'; at++) {
		number = number * 10 + (uint64_t)(line.data[at] - '0');
	}
	struct span digits = {line.data + begin, at - begin};
	if (digits.len == 0 || digits.len > NUMBER_MAX || at == line.len || line.data[at] != ' ' ||
		!hex_read(proof, sizeof(proof),
			(struct span){line.data + at + 1, line.len - at - 1})) {
		return false;
	}
	prove(expected, key, nonce, digits);
	*out_number = number;
	return sha256_is_same(proof, expected);
}
