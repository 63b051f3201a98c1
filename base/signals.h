/* SPDX-License-Identifier: MIT */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

#include <stdbool.h>

/*
 * Whether this process ignores the signal. Whoever started it may want that (nohup, a shell's
 * background job): such a signal is not watched.
 */
bool signal_is_ignored(int signal);

#endif
