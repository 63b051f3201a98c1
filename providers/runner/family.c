/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/killer.h"
#include "base/tree.h"
#include "providers/runner/runner.h"

enum {
	SPAWNER_MS = 3000,  // time for the spawner and the guards to end everything
	GIVE_UP_MS = 18000, // then gives up: processes of another user, or stuck ones
	PAUSE_MS = 5,
};

/* Also continues stopped processes: at first only the spawner and guards are left. */
static bool reap(void *data)
{
	int status;
	pid_t pid;
	do {
		pid = waitpid(-1, &status, WNOHANG | WUNTRACED);
		if (pid > 0 && WIFSTOPPED(status)) {
			kill(pid, SIGCONT);
		}
	} while (pid > 0 || (pid < 0 && errno == EINTR));
	return !(pid < 0 && errno == ECHILD);
}

static size_t count_left(void)
{
	struct tree tree = {0};
	size_t count = tree_scan(&tree, NULL) ? tree_mark_below(&tree, getpid(), NULL, 0) : 1;
	tree_finish(&tree);
	return count;
}

size_t family_end(void)
{
	struct killer killer = {0};
	const struct killer_ground ground = {.reap = reap};
	long long begin_ms = clock_now_ms();
	while (reap(NULL)) {
		long long took_ms = clock_now_ms() - begin_ms;
		if (took_ms >= GIVE_UP_MS) {
			return count_left();
		}
		if (took_ms >= SPAWNER_MS && !killer.is_on) {
			killer_start(&killer);
		}
		int sleep_ms = killer_step(&killer, &ground);
		poll(NULL, 0, sleep_ms >= 0 && sleep_ms < PAUSE_MS ? sleep_ms : PAUSE_MS);
	}
	return 0;
}
