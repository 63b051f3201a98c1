/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_DNS_H
#define PROVIDERS_LOCAL_NET_DNS_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"
#include "providers/local/net/host_names.h"

/*
 * The messages of DNS (RFC 1035) that a cell's resolver reads and writes: one question each. An
 * answer has one address of type A, or nothing: of any other type, AAAA, HTTPS, SRV and TXT among
 * them, a name has none.
 */
enum dns_code { // RFC 1035, section 4.1.1
	DNS_DONE = 0,
	DNS_MALFORMED = 1,
	DNS_FAILED = 2,
	DNS_NO_SUCH_NAME = 3,
	DNS_UNKNOWN = 4,
	DNS_REFUSED = 5,
	DNS_SILENT = -1, // nothing is answered: it is no question
};

struct dns_question {
	char name[NAME_SIZE]; // host_name_read
	bool wants_address;   // type A
	size_t size;          // of the header and the question; 0: only the header is answered
};

enum { DNS_MESSAGE_MAX = 512, DNS_ANSWER_SECONDS = 60 };

/* What is to be answered where the question is not DNS_DONE. */
enum dns_code dns_read(struct span message, struct dns_question *out) ATTR_NODISCARD;

/* Writes the answer to a message that was read. `address` is in host order; 0: none. */
size_t dns_write(struct span message, const struct dns_question *question, enum dns_code code,
	uint32_t address, unsigned char out[DNS_MESSAGE_MAX]);

#endif
