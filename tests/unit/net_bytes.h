/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_NET_BYTES_H
#define TESTS_UNIT_NET_BYTES_H

#include <stddef.h>
#include <string.h>

/* What programs write to the network, as bytes. Each returns how many there are; out has room. */

/* A question of DNS for an address of a name. */
static inline size_t net_question(const char *name, char *out)
{
	static const char header[] = "\x12\x34\x01\0\0\1\0\0\0\0\0";
	size_t at = sizeof(header);
	memcpy(out, header, sizeof(header));
	while (*name) {
		size_t len = strcspn(name, ".");
		out[at++] = (char)len;
		memcpy(out + at, name, len);
		at += len;
		name += len + (name[len] == '.');
	}
	memcpy(out + at, "\0\0\1\0\1", 5);
	return at + 5;
}

/* The first record of TLS, with one extension before the name and one after it. */
static inline size_t net_hello(const char *name, char *out)
{
	size_t len = strlen(name);
	size_t extensions = 4 + 2 + (4 + 5 + len) + 4;
	size_t hello = 2 + 32 + 1 + (2 + 2) + 2 + 2 + extensions;
	const unsigned char head[] = {22, 3, 1, (unsigned char)((hello + 4) >> 8),
		(unsigned char)(hello + 4), 1, 0, (unsigned char)(hello >> 8), (unsigned char)hello,
		3, 3};
	const unsigned char middle[] = {0, 0, 2, 0x13, 1, 1, 0, (unsigned char)(extensions >> 8),
		(unsigned char)extensions, 0, 23, 0, 2, 1, 2, 0, 0, (unsigned char)((len + 5) >> 8),
		(unsigned char)(len + 5), (unsigned char)((len + 3) >> 8), (unsigned char)(len + 3),
		0, (unsigned char)(len >> 8), (unsigned char)len};
	const unsigned char tail[] = {0, 35, 0, 0};
	size_t at = 0;
	memcpy(out, head, sizeof(head));
	at += sizeof(head);
	memset(out + at, 7, 32);
	at += 32;
	memcpy(out + at, middle, sizeof(middle));
	at += sizeof(middle);
	memcpy(out + at, name, len);
	at += len;
	memcpy(out + at, tail, sizeof(tail));
	return at + sizeof(tail);
}

#endif
