/* SPDX-License-Identifier: MIT */
#include "providers/daytona/gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/point.h"
#include "providers/daytona/note.h"

enum { USER_MAX = 1024, SSH_PORT = 22 };

static const double retry_seconds = 0.05;

/* Takes the lock, on the pool; outlives a gate that is destroyed. */
struct gate_work {
	struct pool_job job;
	struct daytona_gate *gate;
	char *state_folder, *name; // owned; the first may be NULL
	int lock_fd;
	struct error err;
};

struct daytona_gate {
	struct daytona_gate_config config;
	daytona_gate_done *done; // until the first token has come
	struct gate_work *work;  // owned
	ev_timer retry;
	long long deadline_ms;
	int lock_fd;                        // held; or -1
	bool looks;                         // daytona_gate_look
	struct daytona_call *call;          // for a token; or NULL
	struct ssh_admission_turn *asking;  // waits for a token; or NULL
	struct ssh_admission_turn *granted; // connects with a token; or NULL
	char user[USER_MAX];                // secret; from the first token, until it is used; or ""
	char *host;                         // owned; NULL until known
	int port;
};

static void work_drop(struct pool_job *job)
{
	struct gate_work *work = CONTAINER_OF(job, struct gate_work, job);
	fd_close(&work->lock_fd);
	free(work->state_folder);
	free(work->name);
	free(work);
}

/* ---- end of a request ---- */

static void release(struct daytona_gate *gate)
{
	fd_close(&gate->lock_fd);
}

static void fail(struct daytona_gate *gate, const struct error *err)
{
	struct ssh_admission_turn *turn = gate->asking;
	struct error copy = *err;
	error_prefix(&copy, "sandbox %s: requesting a token of the SSH gateway", gate->config.name);
	release(gate);
	gate->asking = NULL;
	if (turn) {
		ssh_admission_refuse(turn, &copy);
	} else if (gate->done) {
		daytona_gate_done *done = gate->done;
		gate->done = NULL;
		done(gate->config.data, &copy);
	}
}

static void grant(struct daytona_gate *gate)
{
	struct ssh_admission_turn *turn = gate->asking;
	gate->asking = NULL;
	gate->granted = turn;
	ssh_admission_grant(turn, gate->user);
	explicit_bzero(gate->user, sizeof(gate->user));
}

static void succeed(struct daytona_gate *gate)
{
	if (gate->asking) {
		grant(gate);
	} else if (gate->done) {
		daytona_gate_done *done = gate->done;
		gate->done = NULL;
		done(gate->config.data, NULL);
	}
}

/* ---- the login name ---- */

static bool put_user(struct daytona_gate *gate, const char *token, struct error *err)
{
	const char *form = gate->config.profile->ssh_user;
	const struct {
		const char *word, *value;
	} words[] = {{"{token}", token}, {"{id}", gate->config.id}, {"{name}", gate->config.name},
		{"{key}", daytona_api_key(gate->config.api)}};
	size_t len = 0;
	while (*form && len + 1 < sizeof(gate->user)) {
		size_t i = 0;
		while (i < ARRAY_LENGTH(words) &&
			strncmp(form, words[i].word, strlen(words[i].word)) != 0) {
			i++;
		}
		if (i == ARRAY_LENGTH(words)) {
			gate->user[len++] = *form++;
			continue;
		}
		size_t size = strlen(words[i].value);
		if (size >= sizeof(gate->user) - len) {
			break;
		}
		memcpy(gate->user + len, words[i].value, size);
		len += size;
		form += strlen(words[i].word);
	}
	gate->user[len] = '\0';
	return !*form || error_set(err, ERROR_CONFIG, "ssh-user: the login name is too long");
}

/* ---- tokens ---- */

static bool take_place(
	struct daytona_gate *gate, const struct daytona_access *access, struct error *err)
{
	const struct daytona_profile *profile = gate->config.profile;
	const char *host = profile->ssh_host ? profile->ssh_host : access->host;
	int port = profile->ssh_port ? profile->ssh_port : access->port;
	if (!*host) {
		return error_set(err, ERROR_CONFIG,
			"the service does not say where its SSH gateway is: set ssh-host");
	}
	mem_set_text(&gate->host, host);
	gate->port = port ? port : SSH_PORT;
	return true;
}

static void on_access(void *data, const struct daytona_access *access, const struct error *err)
{
	struct daytona_gate *gate = data;
	struct error failure;
	gate->call = NULL;
	if (err) {
		fail(gate, err);
	} else if (!take_place(gate, access, &failure) ||
		   !put_user(gate, access->token, &failure)) {
		fail(gate, &failure);
	} else {
		point("daytona.token");
		succeed(gate);
	}
}

static void ask_token(struct daytona_gate *gate)
{
	const struct daytona_profile *profile = gate->config.profile;
	static const struct daytona_access no_access = {.token = "", .host = "", .expires_at = ""};
	if (strstr(profile->ssh_user, "{token}")) {
		gate->call = daytona_ask_access(
			gate->config.api, gate->config.id, profile->token_min, on_access, gate);
	} else {
		on_access(gate, &no_access, NULL);
	}
}

/* What runs in a sandbox ends in these states. */
static bool ends_runs(const char *state)
{
	static const char *const states[] = {
		"stopping", "stopped", "archiving", "archived", "destroying", "destroyed", "error"};
	for (size_t i = 0; i < ARRAY_LENGTH(states); i++) {
		if (strcmp(state, states[i]) == 0) {
			return true;
		}
	}
	return false;
}

static void on_state(void *data, const struct daytona_sandbox *seen, const struct error *err)
{
	struct daytona_gate *gate = data;
	struct error over;
	gate->call = NULL;
	if (seen && !ends_runs(seen->state)) {
		ask_token(gate);
	} else if (seen || err->code == ERROR_NOT_FOUND) {
		error_set_reason(&over, ERROR_UNAVAILABLE, "SANDBOX_UNAVAILABLE",
			"what ran there has ended, because the sandbox %s%s while the connection "
			"was lost",
			seen ? "is " : "was deleted", seen ? seen->state : "");
		fail(gate, &over);
	} else {
		fail(gate, err);
	}
}

static void mint(struct daytona_gate *gate)
{
	if (gate->looks) {
		gate->call = daytona_get(gate->config.api, gate->config.id, on_state, gate);
	} else {
		ask_token(gate);
	}
}

/* ---- the lock ---- */

static void on_run(struct pool_job *job)
{
	struct gate_work *work = CONTAINER_OF(job, struct gate_work, job);
	work->lock_fd =
		daytona_note_lock(work->state_folder, work->name, DAYTONA_LOCK_TOKEN, &work->err);
}

static void on_locked(struct pool_job *job)
{
	struct gate_work *work = CONTAINER_OF(job, struct gate_work, job);
	struct daytona_gate *gate = work->gate;
	if (!gate->done && !gate->asking) {
		fd_close(&work->lock_fd); // it was cancelled meanwhile
	} else if (work->lock_fd >= 0) {
		gate->lock_fd = work->lock_fd;
		work->lock_fd = -1;
		mint(gate);
	} else if (work->err.code != ERROR_UNAVAILABLE) {
		fail(gate, &work->err);
	} else if (clock_now_ms() >= gate->deadline_ms) {
		error_set_reason(&work->err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
			"other brokers have been connecting to it for more than %lld s "
			"(auth-timeout)",
			gate->config.profile->auth_timeout_ms / 1000);
		fail(gate, &work->err);
	} else {
		ev_timer_set(&gate->retry, retry_seconds, 0.);
		ev_timer_start(gate->config.context->loop, &gate->retry);
	}
}

static void on_retry(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct daytona_gate *gate = CONTAINER_OF(timer, struct daytona_gate, retry);
	struct error err;
	if (gate->lock_fd >= 0) {
		mint(gate); // the earlier connection has not reported its end
		return;
	}
	if (!pool_submit(gate->config.context->pool, &gate->work->job, &err)) {
		fail(gate, &err);
	}
}

static void begin(struct daytona_gate *gate)
{
	gate->deadline_ms = clock_now_ms() + gate->config.profile->auth_timeout_ms;
	if (pool_has(&gate->work->job) || ev_is_active(&gate->retry)) {
		return; // the job of the earlier request, which was cancelled, also serves this one
	}
	ev_timer_set(&gate->retry, 0., 0.);
	ev_timer_start(gate->config.context->loop, &gate->retry);
}

/* ---- for connections ---- */

static void ask(void *data, struct ssh_admission_turn *turn)
{
	struct daytona_gate *gate = data;
	gate->asking = turn;
	if (*gate->user) {
		grant(gate);
	} else {
		begin(gate);
	}
}

static void cancel(void *data, struct ssh_admission_turn *turn)
{
	struct daytona_gate *gate = data;
	if (gate->asking == turn) {
		gate->asking = NULL;
		ev_timer_stop(gate->config.context->loop, &gate->retry);
		daytona_call_cancel(gate->call);
		gate->call = NULL;
		release(gate);
	}
}

static void settled(void *data, struct ssh_admission_turn *turn)
{
	struct daytona_gate *gate = data;
	if (gate->granted == turn) {
		gate->granted = NULL;
		point("daytona.connected");
		if (!gate->asking) {
			release(gate);
		}
	}
}

const struct ssh_admission daytona_admission = {.ask = ask, .cancel = cancel, .settled = settled};

/* ---- life ---- */

struct daytona_gate *daytona_gate_open(
	const struct daytona_gate_config *config, daytona_gate_done *done)
{
	struct daytona_gate *gate = mem_alloc_zero(sizeof(*gate));
	struct gate_work *work = mem_alloc_zero(sizeof(*work));
	gate->config = *config;
	gate->done = done;
	gate->lock_fd = -1;
	gate->work = work;
	work->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_locked, .drop = work_drop};
	work->gate = gate;
	work->lock_fd = -1;
	work->state_folder = mem_strdup_or_null(config->context->state_folder);
	work->name = mem_strdup(config->name);
	ev_init(&gate->retry, on_retry);
	begin(gate);
	return gate;
}

void daytona_gate_destroy(struct daytona_gate *gate)
{
	if (!gate) {
		return;
	}
	ev_timer_stop(gate->config.context->loop, &gate->retry);
	daytona_call_cancel(gate->call);
	release(gate);
	explicit_bzero(gate->user, sizeof(gate->user));
	pool_leave(&gate->work->job);
	free(gate->host);
	free(gate);
}

void daytona_gate_look(struct daytona_gate *gate)
{
	gate->looks = true;
}

const char *daytona_gate_host(const struct daytona_gate *gate)
{
	return gate->host;
}

int daytona_gate_port(const struct daytona_gate *gate)
{
	return gate->port;
}
