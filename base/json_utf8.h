/* SPDX-License-Identifier: MIT */
#ifndef BASE_JSON_UTF8_H
#define BASE_JSON_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Well-formed UTF-8 as in RFC 3629 section 4: which second bytes a first byte allows. That rules
 * out overlong forms, surrogates and code points over U+10FFFF. The bytes after the second are 0x80
 * to 0xbf.
 */
struct utf8_lead {
	uint8_t len;  // of the whole sequence; 0 if no sequence begins with this byte
	uint8_t low;  // smallest second byte
	uint8_t high; // largest second byte
};

/* For bytes from 0x80 on: indexed by byte - 0x80. */
extern const struct utf8_lead utf8_leads[128];

enum { UTF8_MAX = 4, UTF8_REPLACEMENT = 0xfffd };

/*
 * The length of the well-formed sequence at the beginning of the bytes, or 0 if it is malformed or
 * cut short. The first byte must be 0x80 or more.
 */
static inline size_t utf8_sequence(const unsigned char *bytes, size_t available)
{
	struct utf8_lead lead = utf8_leads[bytes[0] - 0x80];
	if (lead.len == 0 || lead.len > available || bytes[1] < lead.low || bytes[1] > lead.high) {
		return 0;
	}
	for (size_t i = 2; i < lead.len; i++) {
		if ((bytes[i] & 0xc0) != 0x80) {
			return 0;
		}
	}
	return lead.len;
}

/* The length of the longest well-formed prefix of the bytes. */
size_t utf8_valid_length(const char *bytes, size_t len);

/* Writes a code point (no surrogate, at most U+10FFFF); returns its length. */
size_t utf8_encode(uint32_t code_point, char out_bytes[UTF8_MAX]);

static inline bool utf16_is_high(uint32_t unit)
{
	return unit >> 10 == 0xd800 >> 10;
}

static inline bool utf16_is_low(uint32_t unit)
{
	return unit >> 10 == 0xdc00 >> 10;
}

static inline uint32_t utf16_join(uint32_t high, uint32_t low)
{
	return 0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff);
}

#endif
