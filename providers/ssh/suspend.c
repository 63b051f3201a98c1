/* SPDX-License-Identifier: MIT */
#include "providers/ssh/host_impl.h"

#include <string.h>

/*
 * Freezes a process on the host (remote/freeze.sh), by orders to the control. Neither the control
 * nor the shell of the process is ever frozen.
 */

/* No answer comes from a process that has not started yet, has ended, or cannot be reached. */
static bool order(struct suspension_member *member, bool freezes)
{
	struct ssh_process *process = CONTAINER_OF(member, struct ssh_process, suspends);
	struct ssh_host *host = process->host;
	bool is_there =
		process->state == SSH_PROCESS_RUNNING || process->state == SSH_PROCESS_EXITED;
	if (!host || host->is_over || !host->control.is_ready || !is_there || process->shell <= 0 ||
		process->was_killed) {
		return false;
	}
	ssh_control_order(
		host, "%s %u %ld\n", freezes ? "freeze" : "thaw", process->id, process->shell);
	return true;
}

void ssh_exec_join(struct exec *exec, struct suspension *suspension)
{
	struct ssh_process *process = CONTAINER_OF(exec, struct ssh_process, exec);
	process->suspends.order = order;
	suspension_join(suspension, &process->suspends);
}

void ssh_process_on_frozen(struct ssh_process *process, const char *rest)
{
	if (strcmp(rest, "signals") == 0) {
		suspension_note_signals(
			&process->suspends, "the user cannot make a cgroup v2 on that host");
	}
	suspension_answer(&process->suspends, NULL);
}

void ssh_process_on_obeyed(struct ssh_process *process, const char *rest)
{
	suspension_answer(&process->suspends, NULL);
}

void ssh_process_on_unfrozen(struct ssh_process *process, const char *rest)
{
	struct error err;
	error_set(&err, ERROR_TIMEOUT,
		"freezing \"%s\" on %s: it starts new processes faster than they can be stopped, "
		"or a process that it started cannot be stopped",
		process->command, ssh_host_name(process->host));
	suspension_answer(&process->suspends, &err);
}
