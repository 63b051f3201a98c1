/* SPDX-License-Identifier: MIT */
#include "providers/local/said_lines.h"

#include "base/fd.h"

enum { LINES_AT_ONCE = 256, LINES_A_SECOND = 10 };

void said_lines_init(struct said_lines *lines)
{
	*lines = (struct said_lines){.left = LINES_AT_ONCE, .since_ms = clock_now_ms()};
}

bool said_lines_take(struct said_lines *lines, struct sandbox_connection *said)
{
	long long now_ms = clock_now_ms();
	long long more = (now_ms - lines->since_ms) * LINES_A_SECOND / 1000;
	if (more > 0) {
		lines->left =
			lines->left + more < LINES_AT_ONCE ? lines->left + more : LINES_AT_ONCE;
		lines->since_ms = now_ms;
	}
	if (lines->left == 0) {
		lines->left_out++;
		return false;
	}
	lines->left--;
	said->left_out = lines->left_out;
	lines->left_out = 0;
	return true;
}
