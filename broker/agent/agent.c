/* SPDX-License-Identifier: MIT */
#include "broker/agent/agent_internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/environment.h"
#include "base/log.h"
#include "base/real_path.h"
#include "base/secrets.h"
#include "base/text.h"
#include "base/words.h"
#include "broker/agent/provision.h"
#include "broker/config/config_shown.h"
#include "broker/config/known_agents.h"

/* ---- the process ---- */

static void agent_fail_lost(struct agent *agent, const struct error *err)
{
	/* The end of its output may have been noticed first, but that does not say why it ended. */
	if (agent->is_failing && !agent->is_lost) {
		log_failure(LOG_LEVEL_ERROR, err, "%s: %s", agent->subject, err->text);
	}
	agent->is_lost = true;
	const char *stage = agent->step ? agent->step : "relay";
	agent_fail_with_error(agent, err->reason ? err->reason : "SANDBOX_UNAVAILABLE",
		agent->exec ? stage : "prepare", err);
}

static void on_started(void *data)
{
	struct agent *agent = data;
	agent->is_started = true;
	agent_arm_answer(agent);
	agent_arm_wall(agent);
}

/* The longest folder that contains both paths; the caller owns it. */
static char *common_folder(const char *path, const char *other)
{
	size_t len = 0;
	for (size_t i = 0; path[i] && path[i] == other[i]; i++) {
		len = path[i] == '/' ? i : len;
	}
	return mem_strndup((struct span){path, len});
}

/*
 * The folder to show in the cell so that the agent's program is visible: it contains the program
 * and the target of its link, but is never the home. NULL if this is not a cell, or the program is
 * not on this machine. The caller owns it.
 */
static char *find_hidden_folder(const struct agent *agent)
{
	const struct sandbox_capabilities *can = sandbox_capabilities(agent->sandbox);
	const char *const *environment = sandbox_agent_environment(agent->sandbox);
	const struct profile *profile = agent->config.profile;
	char *program = can->confined && can->is_near ? config_find_program(profile->agent_argv[0],
								profile->agent_env, environment)
	                                              : NULL;
	char *real = program && program[0] == '/' ? real_path_find(program) : NULL;
	char *folder = real ? common_folder(program, real) : NULL;
	const char *home = environment_get(environment, "HOME");
	if (folder && (!folder[0] || (home && path_is_at_or_below(home, folder)))) {
		free(folder);
		folder = common_folder(real, real);
	}
	free(program);
	free(real);
	return folder;
}

/* Reports a missing program, and what to do about it. */
static void fail_missing(struct agent *agent, const struct error *err)
{
	struct error copy;
	char *hidden = find_hidden_folder(agent);
	if (hidden) {
		error_set(&copy, err->code,
			"%s: it is installed, but the confinement hides it: allow-read = %s in the "
			"profile shows it",
			err->text, hidden);
		free(hidden);
		agent_fail_with_error(agent, "AGENT_NOT_FOUND", "start", &copy);
		return;
	}
	const struct known_agent *known =
		known_agent_of_argv((const char *const *)agent->config.profile->agent_argv);
	const struct sandbox_capabilities *can = sandbox_capabilities(agent->sandbox);
	bool is_elsewhere = can->maps_paths || can->other_programs;
	error_set(&copy, err->code, "%s: install it%s%s%s%s", err->text,
		is_elsewhere ? " in the sandbox (setup = LINE in the profile can do that)" : "",
		known ? ": " : "", known ? known->install : "",
		is_elsewhere ? ", or give its full path there" : ", or give its full path");
	agent_fail_with_error(agent, "AGENT_NOT_FOUND", "start", &copy);
}

static void on_exec_failed(void *data, const struct error *err)
{
	struct agent *agent = data;
	agent->is_empty = true;
	if (!err->reason && err->code == ERROR_NOT_FOUND) {
		fail_missing(agent, err);
		return;
	}
	const char *code = err->reason                 ? err->reason
	                   : err->code == ERROR_DENIED ? "AGENT_NOT_EXECUTABLE"
	                                               : "AGENT_START_FAILED";
	agent_fail_with_error(agent, code, "start", err);
}

static void on_exited(void *data, struct process_status status)
{
	struct agent *agent = data;
	char how[64];
	log_info("%s: %s", agent->subject, process_status_text(status, how, sizeof(how)));
	agent->has_exited = true;
	agent->status = status;
	agent_tell_soon(agent);
	agent_check_ended(agent);
}

static void on_emptied(void *data)
{
	struct agent *agent = data;
	agent->is_empty = true;
	agent_tell_soon(agent);
}

static void on_lost(void *data, const struct error *err)
{
	struct agent *agent = data;
	agent->is_empty = true;
	agent_fail_lost(agent, err);
	agent_tell_soon(agent); // it may have failed before, and has waited for this
}

static void on_limit(void *data, enum limit_kind limit)
{
	struct agent *agent = data;
	const char *said = sandbox_limit(agent->sandbox, limit);
	char text[256];
	if (said && agent->config.listener->on_limit) {
		text_format(text, sizeof(text), "%s has reached %s: a process could not be started",
			agent->subject, said);
		agent->config.listener->on_limit(agent->config.data, text);
	}
}

static const struct exec_listener exec_listener = {
	.on_started = on_started,
	.on_failed = on_exec_failed,
	.on_exited = on_exited,
	.on_emptied = on_emptied,
	.on_lost = on_lost,
	.on_limit = on_limit,
};

static void start_process(struct agent *agent)
{
	const struct profile *profile = agent->config.profile;
	struct error err;
	agent->is_prepared = true;
	char **env = config_profile_environment(profile, sandbox_agent_environment(agent->sandbox));
	struct exec_spec spec = {
		.argv = (const char *const *)profile->agent_argv,
		.env = (const char *const *)env,
		.cwd = sandbox_start(agent->sandbox),
		.want_stdin = true,
		.suspends = true,
		.is_limited = true,
	};
	agent->exec = sandbox_exec(agent->sandbox, &spec, &exec_listener, agent, &err);
	words_free(env);
	if (!agent->exec) {
		agent_fail_with_error(agent, "AGENT_START_FAILED", "start", &err);
		return;
	}
	tail_start(&agent->tail, exec_take_stderr(agent->exec));
	link_connect(&agent->link, exec_take_stdout(agent->exec), exec_take_stdin(agent->exec));
	agent->config.listener->on_ready(agent->config.data);
}

/* ---- the sandbox ---- */

static void on_progress(void *data, const char *text)
{
	struct agent *agent = data;
	log_info("%s: %s", agent->subject, text);
}

static void on_provisioned(void *data, const struct error *err)
{
	struct agent *agent = data;
	if (agent->is_failing) {
		return;
	}
	if (err) {
		agent_fail_with_error(agent, failure_code_of(err), "prepare", err);
	} else {
		start_process(agent);
	}
}

/* Before the agent can print any of them. */
static void learn_secrets(const struct agent *agent)
{
	const char *const *environment = sandbox_agent_environment(agent->sandbox);
	const char *const *names = (const char *const *)agent->config.profile->masked_env;
	if (agent->config.secrets && !secrets_learn(agent->config.secrets, environment, names)) {
		log_warning("%s: too many secrets in the environment there: the log does not mask "
			    "all of them",
			agent->subject);
	}
}

static void on_ready(void *data)
{
	struct agent *agent = data;
	const struct profile *profile = agent->config.profile;
	ev_timer_stop(agent->config.loop, &agent->due);
	if (agent->is_failing) {
		return;
	}
	if (profile->sync.persistence == PERSISTENCE_ARCHIVE && !sandbox_can_rest(agent->sandbox)) {
		log_warning("%s: persistence = archive is the same as reuse with backend = %s",
			agent->subject, profile->backend);
	}
	for (const char *const *warning = sandbox_warnings(agent->sandbox); *warning; warning++) {
		log_warning("profile \"%s\": %s", profile->name, *warning);
	}
	learn_secrets(agent);
	if (!provision_is_needed(profile)) {
		start_process(agent);
		return;
	}
	agent->provision = provision_start(
		&(struct provision_config){
			.loop = agent->config.loop,
			.pool = agent->config.pool,
			.sandbox = agent->sandbox,
			.profile = profile,
			.subject = agent->subject,
		},
		on_provisioned, agent);
}

static void on_sandbox_failed(void *data, const struct error *err)
{
	agent_fail_lost(data, err);
}

static void on_sandbox_notice(void *data, const char *text)
{
	const struct agent *agent = data;
	if (agent->config.listener->on_notice) {
		agent->config.listener->on_notice(agent->config.data, text);
	}
}

static void on_sandbox_link_lost(void *data, const char *place, const struct error *why)
{
	const struct agent *agent = data;
	if (agent->config.listener->on_link_lost) {
		agent->config.listener->on_link_lost(agent->config.data, place, why);
	}
}

static void on_sandbox_link_back(void *data)
{
	const struct agent *agent = data;
	if (agent->config.listener->on_link_back) {
		agent->config.listener->on_link_back(agent->config.data);
	}
}

static void on_sandbox_connection(void *data, const struct sandbox_connection *connection)
{
	const struct agent *agent = data;
	if (agent->config.listener->on_connection) {
		agent->config.listener->on_connection(agent->config.data, connection);
	}
}

/* While the sandbox is being provisioned, there is no session whose user could be asked. */
static void on_wish(void *data, const struct sandbox_wish *wish)
{
	const struct agent *agent = data;
	if (agent->is_prepared && agent->config.listener->on_wish) {
		agent->config.listener->on_wish(agent->config.data, wish);
		return;
	}
	sandbox_decide(agent->sandbox, wish->id,
		&(struct sandbox_verdict){.rule = "network = ask",
			.why = "there is no session yet in which you could be asked"});
}

static void on_wish_gone(void *data, uint32_t id)
{
	const struct agent *agent = data;
	if (agent->config.listener->on_wish_gone) {
		agent->config.listener->on_wish_gone(agent->config.data, id);
	}
}

static void on_program(void *data, uint32_t id, const char *program)
{
	const struct agent *agent = data;
	if (agent->config.listener->on_program) {
		agent->config.listener->on_program(agent->config.data, id, program);
	}
}

static bool is_guarded(const void *guard, const char *root, const char *path, bool is_link)
{
	return guard_paths_have(guard, root, path, is_link);
}

static const struct sandbox_listener sandbox_listener = {
	.on_progress = on_progress,
	.on_ready = on_ready,
	.on_failed = on_sandbox_failed,
	.on_notice = on_sandbox_notice,
	.on_link_lost = on_sandbox_link_lost,
	.on_link_back = on_sandbox_link_back,
	.on_connection = on_sandbox_connection,
	.on_wish = on_wish,
	.on_wish_gone = on_wish_gone,
	.on_program = on_program,
};

static void prepare(struct agent *agent)
{
	struct error err;
	struct sandbox_request request = {
		.profile = agent->config.profile->name,
		.settings = &agent->config.profile->settings,
		.directory = agent->config.directory,
		.for_session = true,
		.is_guarded = is_guarded,
		.guard = agent->config.profile->sync.guard_paths,
		.prepare_timeout_ms = agent->config.profile->prepare_timeout_ms,
	};
	agent->sandbox =
		sandbox_prepare(agent->config.provider, &request, &sandbox_listener, agent, &err);
	if (!agent->sandbox) {
		agent_fail_with_error(agent, failure_code_of(&err), "prepare", &err);
		return;
	}
	if (agent->config.profile->prepare_timeout_ms > 0) {
		agent_timer_start(agent, &agent->due, agent->config.profile->prepare_timeout_ms);
	}
}

/* ---- the link ---- */

static bool on_frame(void *data, const struct frame *frame)
{
	struct agent *agent = data;
	return agent->config.listener->on_frame(agent->config.data, frame);
}

static void on_end(void *data, const struct error *err)
{
	struct agent *agent = data;
	agent->output_ended = true;
	agent_note_link_error(agent, err);
	agent_check_ended(agent);
}

static void on_broken(void *data, const struct error *err)
{
	struct agent *agent = data;
	log_failure(LOG_LEVEL_DEBUG, err, "%s: it no longer reads: %s", agent->subject, err->text);
	agent->input_ended = true;
	agent_note_link_error(agent, err->code == ERROR_UNAVAILABLE ? NULL : err);
	agent->config.listener->on_drained(agent->config.data); // nothing waits for it now
	agent_check_ended(agent);
}

static void on_drained(void *data)
{
	struct agent *agent = data;
	agent->config.listener->on_drained(agent->config.data);
}

static void on_flushed(void *data)
{
}

static const struct link_listener link_listener = {
	.on_frame = on_frame,
	.on_end = on_end,
	.on_broken = on_broken,
	.on_drained = on_drained,
	.on_flushed = on_flushed,
};

/* ---- life ---- */

/* The streams of one process. */
static void streams_init(struct agent *agent)
{
	const struct agent_config *config = &agent->config;
	tail_init(&agent->tail, config->loop, agent->subject, AGENT_STDERR_TAIL, config->secrets);
	struct link_config link_config = {
		.loop = config->loop,
		.places = config->places,
		.max_message = config->profile->max_message,
		.max_queue = config->profile->max_queue,
		.may_grow_pipes = true,
		.listener = &link_listener,
		.data = agent,
	};
	link_init(&agent->link, &link_config);
}

static void streams_finish(struct agent *agent)
{
	link_close(&agent->link);
	link_finish(&agent->link);
	tail_finish(&agent->tail);
}

static void on_again(struct soon *soon)
{
	struct agent *agent = CONTAINER_OF(soon, struct agent, again);
	if (!agent->is_failing) {
		start_process(agent);
	}
}

struct agent *agent_create(const struct agent_config *config)
{
	struct agent *agent = mem_alloc_zero(sizeof(*agent));
	agent->config = *config;
	text_format(agent->subject, sizeof(agent->subject), "agent \"%s\"",
		config->profile->agent_name);
	agent_end_init(agent);
	soon_init(&agent->again, agent->config.loop, on_again);
	streams_init(agent);
	prepare(agent);
	return agent;
}

bool agent_can_restart(const struct agent *agent)
{
	return agent->is_prepared && !agent->is_lost;
}

void agent_restart(struct agent *agent)
{
	assert(agent->is_gone && agent_can_restart(agent));
	log_info("%s: restarting it", agent->subject);
	streams_finish(agent);
	exec_destroy(agent->exec);
	agent->exec = NULL;
	streams_init(agent);
	agent->step = NULL;
	agent->stop_step = STOP_NONE;
	agent->stop_waits = 0;
	agent->is_started = agent->has_exited = agent->was_exit_told = agent->is_empty = false;
	agent->input_ended = agent->output_ended = false;
	agent->link_error = (struct error){.code = ERROR_NONE};
	agent->is_failing = agent->is_down = agent->is_gone = false;
	agent->noise_count = 0;
	soon_start(&agent->again);
}

void agent_destroy(struct agent *agent)
{
	if (!agent) {
		return;
	}
	agent_end_finish(agent);
	soon_stop(&agent->again);
	streams_finish(agent);
	provision_destroy(agent->provision);
	exec_destroy(agent->exec);
	if (agent->sandbox) {
		sandbox_close(agent->sandbox);
	}
	free(agent);
}

struct link *agent_link(struct agent *agent)
{
	return &agent->link;
}

pid_t agent_process(const struct agent *agent)
{
	return agent->exec ? exec_process(agent->exec) : 0;
}

struct sandbox *agent_sandbox(const struct agent *agent)
{
	return agent->is_prepared ? agent->sandbox : NULL;
}
