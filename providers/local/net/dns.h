/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_DNS_H
#define PROVIDERS_LOCAL_NET_DNS_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"
#include "providers/local/net/host_names.h"

/*
 * DNS messages (RFC 1035) of a cell's resolver, with one question each. An answer has one address
 * of type A, or nothing. There are no records of other types, such as AAAA, HTTPS, SRV and TXT.
 */
enum dns_code { // RFC 1035, section 4.1.1
	DNS_DONE = 0,
	DNS_MALFORMED = 1,
	DNS_FAILED = 2,
	DNS_NO_SUCH_NAME = 3,
	DNS_UNKNOWN = 4,
	DNS_REFUSED = 5,
	DNS_SILENT = -1, // no answer, because the message is not a question
};

struct dns_question {
	char name[NAME_SIZE]; // as from host_name_read
	bool wants_address;   // the type is A
	size_t size;          // size of the header and question; 0: answer with the header alone
};

enum { DNS_MESSAGE_MAX = 512, DNS_ANSWER_SECONDS = 60 };

/* Reads a message. Returns the code of the answer if it is not DNS_DONE. */
enum dns_code dns_read(struct span message, struct dns_question *out) ATTR_NODISCARD;

/* Writes the answer to a message that was read. `address` is in host order; 0: none. */
size_t dns_write(struct span message, const struct dns_question *question, enum dns_code code,
	uint32_t address, unsigned char out[DNS_MESSAGE_MAX]);

#endif
