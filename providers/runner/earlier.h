/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_RUNNER_EARLIER_H
#define PROVIDERS_RUNNER_EARLIER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"

/*
 * Runs that earlier connections may have left, for begin.c. It does what
 * providers/ssh/remote/earlier.sh does where there is a shell. It knows the folders of runs
 * (alive.c) and the marks of processes, and no broker. It blocks.
 *
 * The caller is in a container that has one PID namespace as long as it runs. So a run of another
 * namespace of this machine has ended when the container was started again, unless somebody still
 * holds its folder.
 */
struct earlier {
	struct earlier_run *runs; // owned
	size_t count;
};

void earlier_finish(struct earlier *earlier); // zeroed is fine

/*
 * Adds a run. `text` is "WORD FOLDER": how its connection ended, in a word of earlier.sh, and its
 * folder. `node` is the name of its machine; `here` is "BOOT.NAMESPACE" of this process. False: the
 * text is another one, or there are too many runs.
 */
bool earlier_add(struct earlier *earlier, const char *text, const char *node,
	const char *here) ATTR_NODISCARD;

/*
 * Ends them, within this time for all of them together. An orphan is asked first, and left alone if
 * a broker uses it; `token` names the question. Prints "ended COUNT", "kept TOKEN WHY" and one
 * "left WHY". False: some are left, so nothing may be started.
 */
bool earlier_end(struct earlier *earlier, const char *token, long long wait_ms) ATTR_NODISCARD;

#endif
