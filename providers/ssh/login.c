/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/text.h"
#include "providers/ssh/host_impl.h"

/*
 * Asks the login shell once for its environment, and looks up programs in its PATH; this is an exec
 * like any other (remote/login.sh). If the shell does not answer in time, it is killed, and the
 * environment of a plain channel is used.
 */
enum { ANSWER_MAX = 1 << 20, ANSWER_WORDS_MAX = 8192, FACTS_COUNT = 5 };

static const double lost_pause_s = 1.;

static const char *const allowed[] = {
	"HOME", "LANG", "TERM", "USER", "LOGNAME", "SHELL", "TMPDIR", "PATH", "LC_*"};

static bool is_allowed(const char *entry)
{
	size_t len = strcspn(entry, "=");
	for (size_t i = 0; i < ARRAY_LENGTH(allowed); i++) {
		size_t size = strlen(allowed[i]);
		if (allowed[i][size - 1] == '*' ? strncmp(entry, allowed[i], size - 1) == 0
						: len == size && !strncmp(entry, allowed[i], len)) {
			return entry[len] == '=' && environment_name_is_valid(entry, len);
		}
	}
	return false;
}

/* ---- the facts ---- */

/* The user's configuration wins, then the login shell, then the plain channel. */
static void add(struct ssh_host *host, const char *entry)
{
	char name[256];
	size_t len = strcspn(entry, "=");
	if (len >= sizeof(name)) {
		return;
	}
	memcpy(name, entry, len);
	name[len] = '\0';
	const char *const *there = (const char *const *)host->environment;
	if (!there || !ssh_environment_get(there, name)) {
		words_append(&host->environment, entry);
	}
}

static void add_allowed(struct ssh_host *host, char *const *entries)
{
	for (; entries && *entries; entries++) {
		if (is_allowed(*entries)) {
			add(host, *entries);
		}
	}
}

/* Only the channel's own value leads to the user's ssh-agent. */
static void add_more(struct ssh_host *host)
{
	const char *name = ssh_host_more_variables(host);
	char *const *entries = host->control.environment;
	for (size_t len = strlen(name); len > 0 && entries && *entries; entries++) {
		if (strncmp(*entries, name, len) == 0 && (*entries)[len] == '=') {
			add(host, *entries);
		}
	}
}

static const char *fact(const struct ssh_host *host, const char *name, const char *fallback)
{
	const char *value = ssh_environment_get(host->facts.environment, name);
	return value && *value ? value : fallback;
}

/*
 * The agent gets the variables that login-env names; programs that the broker itself runs there do
 * not.
 */
static void add_login_env(struct ssh_host *host)
{
	const char *const *names = host->request.login_env;
	const char *const *base = (const char *const *)host->environment;
	struct login_env *chosen = &host->login_env;
	bool was_told = !host->login.is_plain;
	login_env_choose(chosen, was_told ? (const char *const *)host->texts : NULL, names, base);
	words_append_all(&host->agent_environment, base);
	words_append_all(&host->agent_environment, (const char *const *)chosen->entries);
}

/* After "facts" come the system, machine, versions, and initial directory. */
static void finish(struct ssh_host *host, char **facts)
{
	static const char plain_path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
	char *const *set_env = host->request.target->set_env;
	for (; set_env && *set_env; set_env++) {
		words_append(&host->environment, *set_env);
	}
	add_allowed(host, host->texts);
	add_allowed(host, host->control.environment);
	add_more(host);
	add(host, plain_path);
	add_login_env(host);
	bool is_whole = facts && words_count(facts) >= FACTS_COUNT;
	host->facts = (struct ssh_host_facts){
		.environment = (const char *const *)host->environment,
		.agent_environment = (const char *const *)host->agent_environment,
		.login_missing = (const char *const *)host->login_env.missing,
		.login_too_big = (const char *const *)host->login_env.too_big,
		.login_is_unknown = host->login.is_plain,
		.system = is_whole ? facts[0] : "",
		.machine = is_whole ? facts[1] : "",
		.git_version = is_whole ? facts[2] : "",
		.rsync_version = is_whole ? facts[3] : "",
		.ended = host->control.ended,
		.kept = (const char *const *)host->control.kept,
	};
	host->facts.home = fact(host, "HOME", "/");
	host->facts.directory = is_whole ? facts[4] : "/";
	host->facts.user = fact(host, "USER", fact(host, "LOGNAME", ""));
	host->facts.shell = fact(host, "SHELL", "/bin/sh");
	host->facts.path = fact(host, "PATH", plain_path + 5);
	ssh_login_stop(host);
	ssh_host_become_ready(host);
}

/* Splits the answer into host->texts; true if it is complete. */
static bool read_answer(struct ssh_host *host, char ***out_facts)
{
	static const char begin[] = "acp-broker-environment";
	struct span text = buf_span(&host->login.answer);
	const char *at = text.len > 0 ? memmem(text.data, text.len, begin, sizeof(begin)) : NULL;
	const char *end = text.data + text.len;
	size_t facts_at = 0;
	size_t count = 0;
	words_wipe_free(host->texts);
	host->texts = NULL;
	for (at = at ? at + sizeof(begin) : end; at < end;) {
		const char *nul = memchr(at, '\0', (size_t)(end - at));
		if (!nul || count++ == ANSWER_WORDS_MAX) {
			return false;
		}
		if (strcmp(at, "acp-broker-end") == 0) {
			*out_facts = host->texts + facts_at;
			return facts_at > 0;
		}
		words_append(&host->texts, at);
		if (strcmp(at, "acp-broker-facts") == 0) {
			facts_at = words_count(host->texts);
		}
		at = nul + 1;
	}
	return false;
}

/* ---- asking the login shell ---- */

static void ask(struct ssh_host *host, bool is_plain);

static void on_answer_end(struct ssh_host *host, const char *why)
{
	char **facts = NULL;
	char text[256];
	bool is_whole = read_answer(host, &facts);
	bool was_plain = host->login.is_plain;
	if (is_whole || was_plain) {
		finish(host, facts);
		return;
	}
	text_format(text, sizeof(text),
		"The login shell of %s %s: commands are searched for in the PATH "
		"of a plain connection",
		ssh_host_name(host), why);
	ssh_login_stop(host);
	ssh_host_progress(host, text);
	if (!host->is_over) {
		ask(host, true);
	}
}

/* Without an exit, the end of its output may be due to a lost connection. */
static void end_once_it_has_exited(struct ssh_host *host)
{
	if (host->login.is_silent && host->login.has_exited) {
		ssh_host_enter(host);
		on_answer_end(host, "did not report its environment");
		ssh_host_leave(host);
	}
}

static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
	struct ssh_login *login = CONTAINER_OF(io, struct ssh_login, io);
	struct ssh_host *host = CONTAINER_OF(login, struct ssh_host, login);
	char piece[16384];
	struct error err;
	ssize_t count = read(login->fd, piece, sizeof(piece));
	if (count < 0 && io_is_transient(errno)) {
		return;
	}
	if (count <= 0) {
		ev_io_stop(loop, io);
		login->is_silent = true;
		end_once_it_has_exited(host);
		return;
	}
	bool is_taken = buf_append(&login->answer, (struct span){piece, (size_t)count}, &err);
	struct span text = buf_span(&login->answer);
	static const char end[] = "acp-broker-end";
	if (is_taken && (text.len < sizeof(end) || memcmp(text.data + text.len - sizeof(end), end,
							   sizeof(end)) != 0)) {
		return;
	}
	ssh_host_enter(host);
	on_answer_end(host, "did not report its environment");
	ssh_host_leave(host);
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct ssh_login *login = CONTAINER_OF(timer, struct ssh_login, deadline);
	struct ssh_host *host = CONTAINER_OF(login, struct ssh_host, login);
	char why[64] = "was lost";
	if (!login->is_lost) {
		snprintf(why, sizeof(why), "did not answer within %lld s",
			host->request.login_timeout_ms / 1000);
	}
	ssh_host_enter(host);
	on_answer_end(host, why);
	ssh_host_leave(host);
}

static void wait_for(struct ssh_host *host, double seconds)
{
	struct ssh_login *login = &host->login;
	ev_timer_stop(host->loop, &login->deadline);
	ev_timer_set(&login->deadline, seconds, 0.);
	ev_timer_start(host->loop, &login->deadline);
}

/* If the connection is lost as well, the host is notified in a moment, and this is over. */
static void on_lost(void *data, const struct error *err)
{
	struct ssh_host *host = data;
	host->login.is_lost = true;
	ev_io_stop(host->loop, &host->login.io);
	wait_for(host, lost_pause_s);
}

static void on_failed(void *data, const struct error *err)
{
	if (error_has_reason(err, "LINK_LOST")) {
		on_lost(data, err);
	} else {
		on_answer_end(data, "could not be started");
	}
}

static void on_exited(void *data, struct process_status status)
{
	struct ssh_host *host = data;
	host->login.has_exited = true;
	end_once_it_has_exited(host);
}

static const struct exec_listener listener = {
	.on_failed = on_failed,
	.on_exited = on_exited,
	.on_lost = on_lost,
};

/* The script starts itself again, by a line that every shell understands in the same way. */
static char **env_with_script(const char *const *env)
{
	static const char name[] = "ACP_BROKER_LOGIN=";
	char **words = words_copy(env);
	size_t size = sizeof(name) + strlen(ssh_login_script);
	char *entry = mem_alloc(size);
	text_whole(entry, size, "%s%s", name, ssh_login_script);
	words_append(&words, entry);
	free(entry);
	return words;
}

static void ask(struct ssh_host *host, bool is_plain)
{
	struct ssh_login *login = &host->login;
	const char *const *env = (const char *const *)host->control.environment;
	static const char *const none[] = {NULL};
	env = env ? env : none;
	const char *shell = ssh_environment_get(env, "SHELL");
	const char *argv[] = {ssh_host_sh(host), "-c", ssh_login_script, "acp-broker-login",
		is_plain ? "dump" : "shell", shell ? shell : ssh_host_sh(host), NULL};
	char **with_script = env_with_script(env);
	struct exec_spec spec = {.argv = argv, .env = (const char *const *)with_script, .cwd = "/"};
	struct error err;
	login->is_plain = is_plain;
	login->is_lost = login->is_silent = login->has_exited = false;
	buf_init(&login->answer, ANSWER_MAX);
	ev_init(&login->deadline, on_deadline);
	wait_for(host, (double)host->request.login_timeout_ms / 1000.);
	login->exec = ssh_host_exec(host, &spec, &listener, host, &err);
	words_free(with_script);
	if (!login->exec) {
		login->is_lost = true;
		wait_for(host, lost_pause_s);
		return;
	}
	login->fd = exec_take_stdout(login->exec);
	ev_io_init(&login->io, on_readable, login->fd, EV_READ);
	ev_io_start(host->loop, &login->io);
}

void ssh_login_start(struct ssh_host *host)
{
	ssh_host_progress(host, "Asking the login shell for its environment");
	if (!host->is_over) {
		ask(host, false);
	}
}

void ssh_login_stop(struct ssh_host *host)
{
	struct ssh_login *login = &host->login;
	if (login->exec) {
		ev_io_stop(host->loop, &login->io);
		fd_close(&login->fd);
	}
	ev_timer_stop(host->loop, &login->deadline);
	exec_destroy(login->exec);
	login->exec = NULL;
	buf_wipe(&login->answer);
}
