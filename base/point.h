/* SPDX-License-Identifier: MIT */
#ifndef BASE_POINT_H
#define BASE_POINT_H

#include <stdbool.h>

/*
 * A named place in the code at which a test can kill the program, stop it, or make what
 * follows fail. Only the files that a program for tests compiles with ACP_POINTS have
 * them (tests/support/points); everywhere else they are nothing.
 *
 * True: what follows is to fail, and errno says of what; `point("x") || call() < 0`. Where
 * nothing can fail the value is not used. Names are "what.state", each one in one place.
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
