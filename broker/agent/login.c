/* SPDX-License-Identifier: MIT */
#include "broker/agent/login.h"

#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/log.h"
#include "base/text.h"
#include "base/words.h"
#include "broker/agent/login_terminal.h"

static const double rest_max_s = 5.; // without output, after the exit

/* One interactive run. */
struct login {
	const struct login_request *request;
	struct ev_loop *loop;
	struct sandbox *sandbox;         // owned
	struct exec *exec;               // owned
	struct login_terminal *terminal; // owned; NULL: the process has the caller's own
	struct error *err;               // the caller's
	int status;
	ev_timer late; // ends the wait for the rest of the output
	bool has_started;
	bool has_exited;
	bool is_cut_off; // the link is lost
	bool is_late;
	bool was_shown; // with a terminal: everything that the process has written
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

/*
 * If the process cannot be reached or has given its terminal up, Ctrl-C ends the broker. The
 * deadline for the rest of the output stands still while the link is lost.
 */
static void settle(struct login *login)
{
	if (!login->terminal || !login->has_started) {
		return;
	}
	login_terminal_set_mode(login->terminal, login->is_cut_off || login->was_shown
							 ? LOGIN_TERMINAL_WAITS
						 : login->has_exited ? LOGIN_TERMINAL_ENDS
								     : LOGIN_TERMINAL_PASSES);
	if (login->has_exited && !login->is_cut_off) {
		ev_timer_again(login->loop, &login->late);
	} else {
		ev_timer_stop(login->loop, &login->late);
	}
}

static void on_started(void *data)
{
	struct login *login = data;
	login->has_started = true;
	settle(login);
}

/* Elsewhere, output may still be under way, and its end waits for what is left of the tree. */
static void on_exited(void *data, struct process_status status)
{
	struct login *login = data;
	login->status = status.signal != 0 ? 128 + status.signal : status.code;
	login->has_exited = true;
	if (login->was_shown) {
		ev_break(login->loop, EVBREAK_ALL);
	} else if (login->terminal) {
		exec_kill_tree(login->exec);
		settle(login);
	}
}

static void on_late(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct login *login = CONTAINER_OF(timer, struct login, late);
	if (!login_terminal_is_behind(login->terminal)) {
		login->is_late = true;
		ev_break(loop, EVBREAK_ALL);
	}
}

static void on_emptied(void *data)
{
	struct login *login = data;
	if (!login->terminal) {
		ev_break(login->loop, EVBREAK_ALL);
	}
}

static void on_output(void *data)
{
	settle(data);
}

static void on_shown(void *data)
{
	struct login *login = data;
	login->was_shown = true;
	if (login->has_exited) {
		ev_break(login->loop, EVBREAK_ALL);
	} else {
		settle(login);
	}
}

static const struct exec_listener exec_listener = {
	.on_started = on_started,
	.on_failed = on_failed,
	.on_exited = on_exited,
	.on_emptied = on_emptied,
	.on_lost = on_failed,
};

static const struct login_terminal_listener terminal_listener = {
	.on_output = on_output,
	.on_shown = on_shown,
	.on_failed = on_failed,
};

/* The environment of the agent and the note; elsewhere also the type of the caller's terminal. */
static char **make_environment(const struct login *login)
{
	const struct login_request *request = login->request;
	char **base = config_profile_environment(
		request->profile, sandbox_agent_environment(login->sandbox));
	environment_drop(base, LOGIN_MARK);
	if (login->terminal && request->terminal_type) {
		size_t size = sizeof("TERM=") + strlen(request->terminal_type);
		char *type = mem_alloc(size);
		text_whole(type, size, "TERM=%s", request->terminal_type);
		environment_drop(base, "TERM");
		words_append(&base, type);
		free(type);
	}
	char **env = environment_merge(
		(const char *const *)base, (const char *const *)request->note->env);
	words_free(base);
	return env;
}

static bool start(struct login *login, const struct terminal_size *size, struct error *err)
{
	char **argv = NULL;
	char **env = make_environment(login);
	words_append_all(&argv, (const char *const *)login->request->profile->agent_argv);
	words_append_all(&argv, (const char *const *)login->request->note->args);
	struct exec_spec spec = {
		.argv = (const char *const *)argv,
		.env = (const char *const *)env,
		.foreground = !login->terminal,
		.terminal = login->terminal ? size : NULL,
		.want_stdin = login->terminal != NULL,
		.merge_stderr = login->terminal != NULL,
	};
	login->exec = sandbox_exec(login->sandbox, &spec, &exec_listener, login, err);
	words_free(env);
	words_free(argv);
	return login->exec != NULL;
}

static bool refuse_place(const struct login *login, struct error *err)
{
	const char *wanted = login->request->note->profile;
	return error_set(err, ERROR_DENIED,
		"this login is for an agent %s%s, and the configuration now runs it elsewhere: "
		"start the session again in the editor, and log in from there",
		wanted ? "on the host of profile " : "on this machine", wanted ? wanted : "");
}

/* Before anything is connected to. */
static bool check_profile(const struct login *login, struct error *err)
{
	const char *wanted = login->request->note->profile;
	if (!wanted) {
		return true;
	}
	return strcmp(wanted, login->request->profile->name) == 0 ? login_terminal_check(err)
	                                                          : refuse_place(login, err);
}

/*
 * What an agent elsewhere has chosen must not run here, whatever the configuration says by now. Nor
 * does a login of this machine help an agent elsewhere.
 */
static bool check_place(const struct login *login, struct error *err)
{
	const char *wanted = login->request->note->profile;
	const struct sandbox_capabilities *can = sandbox_capabilities(login->sandbox);
	const char *why = sandbox_no_terminals(login->sandbox);
	if (wanted && !can->has_terminals && why) {
		return error_set(
			err, ERROR_UNAVAILABLE, "profile %s: %s: log in there", wanted, why);
	}
	return (wanted ? can->has_terminals : !can->has_terminals && can->is_near) ||
	       refuse_place(login, err);
}

static void on_ready(void *data)
{
	struct login *login = data;
	struct error err;
	struct terminal_size size = {0};
	if (!check_place(login, &err)) {
		fail(login, &err);
		return;
	}
	if (sandbox_capabilities(login->sandbox)->has_terminals) {
		login->terminal =
			login_terminal_create(login->loop, &terminal_listener, login, &err);
		if (!login->terminal) {
			fail(login, &err);
			return;
		}
		size = login_terminal_size(login->terminal);
	}
	if (!start(login, &size, &err)) {
		fail(login, &err);
	} else if (login->terminal) {
		login_terminal_connect(login->terminal, login->exec);
	}
}

static void on_progress(void *data, const char *text)
{
	log_info("%s", text);
}

static void on_link_lost(void *data, const char *place, const struct error *why)
{
	struct login *login = data;
	login->is_cut_off = true;
	settle(login);
	log_warning("the connection to %s was lost (%s): the login goes on once it is back; Ctrl-C "
		    "ends it",
		place, why->text);
}

static void on_link_back(void *data)
{
	struct login *login = data;
	log_info("the connection is back: the login goes on");
	login->is_cut_off = false;
	settle(login);
}

static const struct sandbox_listener sandbox_listener = {
	.on_progress = on_progress,
	.on_ready = on_ready,
	.on_failed = on_failed,
	.on_link_lost = on_link_lost,
	.on_link_back = on_link_back,
};

bool login_run(const struct login_request *request, int *out_status, struct error *err)
{
	const struct profile *profile = request->profile;
	struct login login = {
		.request = request, .loop = request->loop, .err = err, .status = EXIT_FAILURE};
	ev_timer_init(&login.late, on_late, 0., rest_max_s);
	struct sandbox_request wanted = {.profile = profile->name, .settings = &profile->settings};
	login.sandbox = check_profile(&login, err) ? sandbox_prepare(request->provider, &wanted,
							     &sandbox_listener, &login, err)
	                                           : NULL;
	if (!login.sandbox) {
		return error_prefix(err, "running %s for its login", profile->agent_argv[0]);
	}
	ev_run(login.loop, 0);
	ev_timer_stop(login.loop, &login.late);
	login_terminal_destroy(login.terminal);
	exec_destroy(login.exec);
	sandbox_close(login.sandbox);
	if (login.has_failed) {
		return error_prefix(err, "running %s for its login", profile->agent_argv[0]);
	}
	if (login.is_late) {
		log_warning("the login has ended, but something there still holds its terminal: "
			    "what it may write after %g s without output is not shown",
			rest_max_s);
	}
	*out_status = login.status;
	return true;
}
