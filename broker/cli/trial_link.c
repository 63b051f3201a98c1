/* SPDX-License-Identifier: MIT */
#include <unistd.h>

#include "base/text.h"
#include "broker/cli/trial.h"

/*
 * Tries whether the sandbox's processes go on without the connection: starts one, closes the
 * connection, and looks whether it still runs when the provider has connected again.
 */

/* What runs there meanwhile. */
struct staying {
	bool has_started;
	bool has_ended;
	struct error err;
};

static void on_started(void *data)
{
	((struct staying *)data)->has_started = true;
}

static void on_failed(void *data, const struct error *err)
{
	struct staying *staying = data;
	staying->has_started = staying->has_ended = true;
	staying->err = *err;
}

static void on_exited(void *data, struct process_status status)
{
	struct staying *staying = data;
	staying->has_ended = true;
	error_set(&staying->err, ERROR_UNAVAILABLE, "a process there has ended meanwhile");
}

static const struct exec_listener listener = {
	.on_started = on_started,
	.on_failed = on_failed,
	.on_exited = on_exited,
	.on_lost = on_failed,
};

static bool lose_link(struct trial *trial, struct staying *staying, struct error *err)
{
	int timeout_ms = trial->means->config->profile.prepare_timeout_ms;
	if (!trial_wait(trial, &staying->has_started, timeout_ms, "prepare-timeout", err)) {
		return false;
	}
	if (!staying->has_ended) {
		sandbox_drop_link(trial->sandbox);
		if (!trial_wait(trial, &trial->is_back, timeout_ms, "prepare-timeout", err)) {
			return error_prefix(err,
				"its process there was gone after the new connection; a host may "
				"end a login's processes together with the login "
				"(KillUserProcesses of logind.conf, a container)");
		}
	}
	if (staying->has_ended) {
		*err = staying->err;
	}
	return !staying->has_ended;
}

bool trial_check_outlives(struct trial *trial, char note[TRIAL_NOTE_MAX], struct error *err)
{
	static const char *const argv[] = {"/bin/sleep", "600", NULL};
	struct staying staying = {.has_started = false};
	const char *outlives = sandbox_outlives(trial->sandbox);
	text_format(note, TRIAL_NOTE_MAX, "%s", outlives ? outlives : "there is no connection");
	if (!sandbox_capabilities(trial->sandbox)->outlives) {
		return true;
	}
	struct exec *exec = sandbox_exec(trial->sandbox,
		&(struct exec_spec){.argv = argv, .merge_stderr = true}, &listener, &staying, err);
	if (!exec) {
		return false;
	}
	int out = exec_take_stdout(exec);
	bool ok = lose_link(trial, &staying, err);
	exec_destroy(exec);
	close(out);
	return ok;
}
