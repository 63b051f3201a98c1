/* SPDX-License-Identifier: MIT */
#ifndef BASE_HEX_H
#define BASE_HEX_H

/* The value of a hexadecimal digit of either case; -1 for anything else. */
static inline int hex_digit(char digit)
{
	if (digit >= '0' && digit <= '9') {
		return digit - '0';
	}
	char lower = (char)(digit | 0x20);
	return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

#endif
