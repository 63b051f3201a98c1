/* SPDX-License-Identifier: MIT */
#include "sync/id.h"

const char *id_text(char text[ID_TEXT_SIZE], const git_oid *id)
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < sizeof(id->id); i++) {
		text[2 * i] = digits[id->id[i] >> 4];
		text[2 * i + 1] = digits[id->id[i] & 0xf];
	}
	text[ID_TEXT_SIZE - 1] = '\0';
	return text;
}
