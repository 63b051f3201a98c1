/* SPDX-License-Identifier: MIT */
#ifndef SYNC_PATH_ORDER_H
#define SYNC_PATH_ORDER_H

/* Like strcmp, but '/' sorts before all other characters: a folder is followed by its content. */
static inline int path_compare(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	int left = *a == '/' ? 1 : (unsigned char)*a + (*a != '\0');
	int right = *b == '/' ? 1 : (unsigned char)*b + (*b != '\0');
	return left - right;
}

#endif
