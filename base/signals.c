/* SPDX-License-Identifier: MIT */
#include "base/signals.h"

#include <signal.h>
#include <stddef.h>

bool signal_is_ignored(int signal)
{
	struct sigaction action;
	return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}
