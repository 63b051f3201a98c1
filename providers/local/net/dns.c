/* SPDX-License-Identifier: MIT */
#include "providers/local/net/dns.h"

#include <assert.h>
#include <string.h>

enum {
	HEADER_SIZE = 12,
	LABEL_MAX = 63,
	TYPE_A = 1,
	CLASS_IN = 1,
	TAIL_SIZE = 4, // type and class of a question
	RECORD_SIZE = 16,
	ENCODED_MAX = 255, // a name with its length bytes
};

/* The second byte of the header's flags, and the first. */
enum { FLAG_ANSWER = 0x80, FLAG_OPERATION = 0x78, FLAG_RECURSION = 0x01, FLAG_AVAILABLE = 0x80 };

static unsigned number_at(const unsigned char *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

/*
 * Joins the labels with dots. Returns the offset after them, or 0. Follows no compression pointer.
 */
static size_t read_labels(struct span message, char text[ENCODED_MAX + 1], size_t *out_len)
{
	size_t at = HEADER_SIZE;
	*out_len = 0;
	while (at < message.len) {
		size_t len = (unsigned char)message.data[at++];
		if (len == 0) {
			return at;
		}
		if (len > LABEL_MAX || len >= message.len - at ||
			*out_len + len + 1 > ENCODED_MAX || memchr(message.data + at, '.', len)) {
			return 0;
		}
		if (*out_len > 0) {
			text[(*out_len)++] = '.';
		}
		memcpy(text + *out_len, message.data + at, len);
		*out_len += len;
		at += len;
	}
	return 0;
}

enum dns_code dns_read(struct span message, struct dns_question *out)
{
	const unsigned char *bytes = (const unsigned char *)message.data;
	char text[ENCODED_MAX + 1];
	size_t len;
	*out = (struct dns_question){.size = 0};
	if (message.len < HEADER_SIZE || message.len > DNS_MESSAGE_MAX || bytes[2] & FLAG_ANSWER) {
		return DNS_SILENT;
	}
	if (bytes[2] & FLAG_OPERATION) {
		return DNS_UNKNOWN;
	}
	size_t end = number_at(bytes + 4) == 1 ? read_labels(message, text, &len) : 0;
	if (end == 0 || message.len - end < TAIL_SIZE) {
		return DNS_MALFORMED;
	}
	out->size = end + TAIL_SIZE;
	out->wants_address = number_at(bytes + end) == TYPE_A;
	if (number_at(bytes + end + 2) != CLASS_IN) {
		return DNS_REFUSED;
	}
	return host_name_read(out->name, (struct span){text, len}) ? DNS_DONE : DNS_NO_SUCH_NAME;
}

static void put_record(unsigned char *at, uint32_t address)
{
	const unsigned char record[RECORD_SIZE] = {0xc0, HEADER_SIZE, // the question's name
		0, TYPE_A, 0, CLASS_IN, 0, 0, 0, DNS_ANSWER_SECONDS, 0, 4,
		(unsigned char)(address >> 24), (unsigned char)(address >> 16),
		(unsigned char)(address >> 8), (unsigned char)address};
	memcpy(at, record, sizeof(record));
}

size_t dns_write(struct span message, const struct dns_question *question, enum dns_code code,
	uint32_t address, unsigned char out[DNS_MESSAGE_MAX])
{
	size_t size = question->size > 0 ? question->size : HEADER_SIZE;
	assert(code != DNS_SILENT && message.len >= size && size <= DNS_MESSAGE_MAX - RECORD_SIZE);
	memcpy(out, message.data, size);
	out[2] = (unsigned char)(FLAG_ANSWER | (out[2] & (FLAG_OPERATION | FLAG_RECURSION)));
	out[3] = (unsigned char)(FLAG_AVAILABLE | code);
	memset(out + 4, 0, HEADER_SIZE - 4);
	out[5] = question->size > 0;
	if (address != 0) {
		out[7] = 1;
		put_record(out + size, address);
		size += RECORD_SIZE;
	}
	return size;
}
