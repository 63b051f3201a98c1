/* SPDX-License-Identifier: MIT */
#ifndef BASE_POINT_H
#define BASE_POINT_H

#include <stdbool.h>

/*
 * A named place in the code where a test can kill the program, stop it, or make the next call fail.
 * Only files that a test program compiles with ACP_POINTS have them (tests/support/points);
 * elsewhere they do nothing.
 *
 * True means: the next call shall fail, and errno has the error; `point("x") || call() < 0`. Where
 * nothing can fail, the result is ignored. Names are "what.state", each used in one place.
 */
#ifdef ACP_POINTS
bool point(const char *name);
#else
static inline bool point(const char *name)
{
	return false;
}
#endif

#endif
