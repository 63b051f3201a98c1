/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "providers/local/net/dns.h"
#include "tests/fuzz/fuzz.h"

/*
 * The input is a message to a cell's resolver. The answer must be a message with the same question.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned char out[DNS_MESSAGE_MAX];
	char name[NAME_SIZE];
	struct dns_question question;
	struct dns_question again;
	struct span message = {(const char *)data, size};
	enum dns_code code = dns_read(message, &question);
	if (code == DNS_SILENT) {
		return 0;
	}
	size_t len = dns_write(message, &question, code, code == DNS_DONE ? NAMES_FIRST : 0, out);
	FUZZ_CHECK(len >= 12 && len <= sizeof(out) && memcmp(out, data, 2) == 0);
	FUZZ_CHECK((out[3] & 0xf) == (int)code);
	FUZZ_CHECK(dns_read((struct span){(const char *)out, len}, &again) == DNS_SILENT);
	if (code == DNS_DONE) {
		FUZZ_CHECK(host_name_read(name, span_of(question.name)));
		FUZZ_CHECK(strcmp(name, question.name) == 0);
		out[2] = data[2];
		FUZZ_CHECK(dns_read((struct span){(const char *)out, len}, &again) == DNS_DONE);
		FUZZ_CHECK(strcmp(again.name, question.name) == 0 && again.size == question.size);
	}
	return 0;
}
