/* SPDX-License-Identifier: MIT */
#include "broker/agent/login.h"

#include "base/environment.h"
#include "base/log.h"
#include "base/words.h"

/* One interactive run. */
struct login {
	struct ev_loop *loop;
	const struct profile *profile;
	const struct login_note *note;
	struct sandbox *sandbox; // owned
	struct exec *exec;       // owned
	struct error *err;       // the caller's
	int status;
	bool has_failed;
};

static void fail(struct login *login, const struct error *err)
{
	*login->err = *err;
	login->has_failed = true;
	ev_break(login->loop, EVBREAK_ALL);
}

static void on_failed(void *data, const struct error *err)
{
	fail(data, err);
}

static void on_exited(void *data, struct process_status status)
{
	struct login *login = data;
	login->status = status.signal != 0 ? 128 + status.signal : status.code;
}

static void on_emptied(void *data)
{
	struct login *login = data;
	ev_break(login->loop, EVBREAK_ALL);
}

static const struct exec_listener exec_listener = {
	.on_failed = on_failed,
	.on_exited = on_exited,
	.on_emptied = on_emptied,
	.on_lost = on_failed,
};

static void on_ready(void *data)
{
	struct login *login = data;
	struct error err;
	char **argv = NULL;
	char **base = config_profile_environment(
		login->profile, sandbox_agent_environment(login->sandbox));
	environment_drop(base, LOGIN_MARK);
	char **env =
		environment_merge((const char *const *)base, (const char *const *)login->note->env);
	words_append_all(&argv, (const char *const *)login->profile->agent_argv);
	words_append_all(&argv, (const char *const *)login->note->args);
	struct exec_spec spec = {
		.argv = (const char *const *)argv,
		.env = (const char *const *)env,
		.foreground = true,
	};
	login->exec = sandbox_exec(login->sandbox, &spec, &exec_listener, login, &err);
	words_free(base);
	words_free(env);
	words_free(argv);
	if (!login->exec) {
		fail(login, &err);
	}
}

static void on_progress(void *data, const char *text)
{
	log_info("%s", text);
}

static const struct sandbox_listener sandbox_listener = {
	.on_progress = on_progress,
	.on_ready = on_ready,
	.on_failed = on_failed,
};

bool login_run(struct ev_loop *loop, struct provider *provider, const struct profile *profile,
	const struct login_note *note, int *out_status, struct error *err)
{
	struct login login = {.loop = loop, .profile = profile, .note = note, .err = err};
	struct sandbox_request request = {.profile = profile->name, .settings = &profile->settings};
	login.sandbox = sandbox_prepare(provider, &request, &sandbox_listener, &login, err);
	if (!login.sandbox) {
		return error_prefix(err, "running %s for its login", profile->agent_argv[0]);
	}
	ev_run(loop, 0);
	exec_destroy(login.exec);
	sandbox_close(login.sandbox);
	if (login.has_failed) {
		return error_prefix(err, "running %s for its login", profile->agent_argv[0]);
	}
	*out_status = login.status;
	return true;
}
