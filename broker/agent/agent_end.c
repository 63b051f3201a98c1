/* SPDX-License-Identifier: MIT */
#include "broker/agent/agent_internal.h"

#include <signal.h>

#include "base/log.h"
#include "base/text.h"
#include "broker/agent/provision.h"

enum { STOP_WAITS_MAX = 10 }; // acp-broker.config(5), stop-eof-timeout

static void stop_next_step(struct agent *agent);

/* ---- reporting the end ---- */

void agent_timer_start(struct agent *agent, struct ev_timer *timer, int ms)
{
	ev_timer_stop(agent->config.loop, timer);
	ev_now_update(agent->config.loop);
	ev_timer_set(timer, ms / 1000.0, 0.0);
	ev_timer_start(agent->config.loop, timer);
}

struct span agent_last_words(struct agent *agent)
{
	tail_catch_up(&agent->tail);
	struct span words = tail_span(&agent->tail);
	return words.len == 0 && agent->sandbox ? sandbox_said(agent->sandbox) : words;
}

static void on_withdrawn(void *data, const struct error *err)
{
	struct agent *agent = data;
	if (agent->is_withdrawn) {
		return; // the stop was hurried
	}
	agent->is_withdrawn = true;
	if (err) {
		log_failure(LOG_LEVEL_ERROR, err, "%s: %s", agent->subject, err->text);
		text_append(agent->failure.text, sizeof(agent->failure.text), "; %s", err->text);
		agent->left = *err;
	}
	agent_tell_soon(agent);
}

/*
 * True while a sandbox in which no agent will start is withdrawn; the listener is told only after
 * that. Its copies or its setup may have failed, or may still run.
 */
static bool withdraws(struct agent *agent)
{
	if (agent->is_prepared || agent->is_withdrawn || !agent->sandbox ||
		!sandbox_can_withdraw(agent->sandbox)) {
		return false;
	}
	if (!agent->is_withdrawing) {
		agent->is_withdrawing = true;
		ev_timer_stop(agent->config.loop, &agent->due);
		provision_destroy(agent->provision);
		agent->provision = NULL;
		sandbox_withdraw(agent->sandbox, on_withdrawn, agent);
	}
	return true;
}

const struct error *agent_left(const struct agent *agent)
{
	return agent->left.code != ERROR_NONE ? &agent->left : NULL;
}

/* Called only by the tell timer, so that no listener runs inside one of its own calls. */
static void tell(struct agent *agent)
{
	if (agent->has_exited && !agent->was_exit_told && !agent->is_down) {
		agent->was_exit_told = true;
		agent->config.listener->on_exited(agent->config.data);
	}
	if (agent->is_failing && !agent->is_down) {
		if (withdraws(agent)) {
			return;
		}
		agent->is_down = true;
		ev_timer_stop(agent->config.loop, &agent->due);
		ev_timer_stop(agent->config.loop, &agent->wall);
		ev_timer_stop(agent->config.loop, &agent->drain);
		agent->failure.detail = agent_last_words(agent);
		link_close(&agent->link);
		if (agent->exec && !agent->is_empty) {
			exec_kill_tree(agent->exec);
		}
		agent->config.listener->on_down(agent->config.data, &agent->failure);
	}
	bool is_over = !agent->exec || agent->is_empty || agent->stop_step == STOP_FORCED;
	if (agent->is_down && is_over && !agent->is_gone) {
		agent->is_gone = true;
		ev_timer_stop(agent->config.loop, &agent->stop);
		agent->config.listener->on_gone(agent->config.data);
	}
}

static void on_tell(struct soon *soon)
{
	tell(CONTAINER_OF(soon, struct agent, tell));
}

void agent_tell_soon(struct agent *agent)
{
	soon_start(&agent->tell);
}

void agent_fail(struct agent *agent, const struct error *failure)
{
	if (agent->is_failing) {
		return;
	}
	agent->is_failing = true;
	agent->failure = *failure;
	if (agent->exec && agent->stop_step < STOP_KILL) {
		agent->stop_step = STOP_TERM;
		stop_next_step(agent);
	}
	agent_tell_soon(agent);
}

void agent_fail_with_error(
	struct agent *agent, const char *code, const char *stage, const struct error *err)
{
	struct error failure = *err;
	failure.reason = code;
	error_prefix(&failure, "%s", agent->subject);
	agent_fail(agent, error_at(&failure, stage));
}

/* Describes what the agent printed instead of an answer. */
static void describe_noise(const struct agent *agent, char *text, size_t size)
{
	text[0] = '\0';
	if (agent->noise_count > 0) {
		text_format(text, size,
			"; it wrote %d lines that are no JSON-RPC message, the first: %s",
			agent->noise_count, agent->noise);
	}
}

static void fail_as_exited(struct agent *agent)
{
	struct error err;
	char how[ERROR_TEXT_MAX];
	char noise[NOISE_MAX + 80];
	describe_noise(agent, noise, sizeof(noise));
	if (agent->link_error.code != ERROR_NONE) {
		text_format(how, sizeof(how), "was lost, %s", agent->link_error.text);
	} else if (agent->has_exited) {
		process_status_text(agent->status, how, sizeof(how));
	} else {
		text_format(how, sizeof(how), "closed its %s",
			agent->output_ended ? "output" : "input");
	}
	const char *stage = agent->step ? agent->step : "relay";
	enum limit_kind kind = agent->status.limit;
	const char *limit = agent->has_exited ? sandbox_limit(agent->sandbox, kind) : NULL;
	bool was_ended = limit && kind != LIMIT_PROCESSES; // a failed fork alone ends nothing
	agent_fail(agent,
		failure_set(&err, was_ended ? "RESOURCE_LIMIT_EXCEEDED" : "AGENT_EXITED", stage,
			"%s (%s) %s%s%s%s%s%s", agent->subject,
			agent->config.profile->agent_argv[0], how,
			agent->step ? " before it answered " : "", agent->step ? agent->step : "",
			was_ended ? ", because it reached "
			: limit   ? "; it had reached "
				  : "",
			limit ? limit : "", noise));
}

void agent_note_noise(struct agent *agent, struct span line)
{
	if (agent->noise_count++ == 0) {
		text_format(agent->noise, sizeof(agent->noise), "%.*s", (int)line.len, line.data);
	}
}

/* ---- deadlines ---- */

static void on_due(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct agent *agent = CONTAINER_OF(timer, struct agent, due);
	const struct profile *profile = agent->config.profile;
	struct error err;
	char noise[NOISE_MAX + 80];
	if (agent->exec && sandbox_extend_timer(agent->sandbox, timer, &agent->away_ms)) {
		return;
	}
	describe_noise(agent, noise, sizeof(noise));
	if (!agent->exec) {
		failure_set(&err, "TIMEOUT_EXCEEDED", "prepare",
			"%s: the sandbox was not ready within %d ms (prepare-timeout)",
			agent->subject, profile->prepare_timeout_ms);
	} else {
		failure_set(&err, "TIMEOUT_EXCEEDED", agent->step ? agent->step : "start",
			"%s (%s) did not answer %s within %d ms (start-timeout)%s", agent->subject,
			profile->agent_argv[0], agent->step ? agent->step : "at all",
			profile->start_timeout_ms, noise);
	}
	agent_fail(agent, &err);
}

void agent_arm_answer(struct agent *agent)
{
	if (agent->step && agent->is_started && agent->config.profile->start_timeout_ms > 0) {
		agent->away_ms = sandbox_away_ms(agent->sandbox);
		agent_timer_start(agent, &agent->due, agent->config.profile->start_timeout_ms);
	}
}

/* All processes that it has started end with it. */
static void on_wall(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct agent *agent = CONTAINER_OF(timer, struct agent, wall);
	struct error err;
	agent_fail(agent,
		failure_set(&err, "RESOURCE_LIMIT_EXCEEDED", agent->step ? agent->step : "relay",
			"%s (%s) was ended, because it reached wall = %s", agent->subject,
			agent->config.profile->agent_argv[0],
			settings_get(&agent->config.profile->settings, "wall")));
}

void agent_arm_wall(struct agent *agent)
{
	if (agent->config.profile->wall_ms > 0) {
		agent_timer_start(agent, &agent->wall, agent->config.profile->wall_ms);
	}
}

void agent_expect_answer(struct agent *agent, const char *step)
{
	agent->step = step;
	agent_arm_answer(agent);
}

void agent_has_answered(struct agent *agent)
{
	agent->step = NULL;
	if (agent->is_started) {
		ev_timer_stop(agent->config.loop, &agent->due);
	}
}

static void on_drain(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct agent *agent = CONTAINER_OF(timer, struct agent, drain);
	bool is_unread = agent->has_exited && link_is_over(&agent->link); // and nobody ever will
	if (sandbox_extend_timer(agent->sandbox, timer, &agent->drain_away_ms)) {
		return; // the rest may be under way
	}
	if (link_is_paused(&agent->link) && !is_unread) {
		agent_timer_start(agent, timer, agent->config.profile->drain_timeout_ms);
		return; // its output waits for the editor, not for the agent
	}
	log_warning("%s: %s", agent->subject,
		agent->has_exited ? "a process that it left behind holds its output open; ended"
				  : "it closed its output or its input, but kept running; ended");
	fail_as_exited(agent);
}

/* ---- the stop ---- */

static void stop_next_step(struct agent *agent)
{
	const struct profile *profile = agent->config.profile;
	agent->stop_step++;
	agent->stop_taken = agent->config.listener->count_taken(agent->config.data);
	switch (agent->stop_step) {
	case STOP_EOF:
		link_finish_output(&agent->link);
		agent_timer_start(agent, &agent->stop, profile->stop_eof_ms);
		break;
	case STOP_TERM:
		log_info("%s: still running, sending SIGTERM", agent->subject);
		exec_signal_group(agent->exec, SIGTERM);
		agent_timer_start(agent, &agent->stop, profile->stop_term_ms);
		break;
	case STOP_KILL:
		exec_kill_tree(agent->exec);
		agent_timer_start(agent, &agent->stop, profile->stop_kill_ms);
		break;
	default:
		agent->stop_step = STOP_FORCED;
		fail_as_exited(agent);
		agent_tell_soon(agent);
		break;
	}
}

/*
 * The agent's last output waits for a slow reader: then no step follows. An agent that still runs
 * may write for ever, so it gets that time only STOP_WAITS_MAX times.
 */
static bool waits_for_reader(struct agent *agent)
{
	uint64_t taken = agent->config.listener->count_taken(agent->config.data);
	bool is_read = taken != agent->stop_taken;
	agent->stop_taken = taken;
	bool has_words = agent->has_exited ? !agent->output_ended : link_is_paused(&agent->link);
	return is_read && has_words && !agent->is_failing &&
	       (agent->has_exited || agent->stop_waits++ < STOP_WAITS_MAX);
}

static void on_stop_due(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct agent *agent = CONTAINER_OF(timer, struct agent, stop);
	if (waits_for_reader(agent)) {
		agent_timer_start(agent, timer, agent->config.profile->stop_eof_ms);
	} else {
		stop_next_step(agent);
	}
}

void agent_stop(struct agent *agent)
{
	if (!agent->exec) {
		struct error err;
		agent_fail(agent, failure_set(&err, "SHUTTING_DOWN", "stop",
					  "the broker ended before the agent was started"));
		if (agent->is_withdrawing && agent->stop_step != STOP_NONE) {
			error_set(&err, ERROR_UNAVAILABLE,
				"its sandbox was being withdrawn, but may still run");
			on_withdrawn(agent, &err);
		}
		agent->stop_step = STOP_EOF;
		return;
	}
	if (!agent->is_gone && agent->stop_step < STOP_KILL) {
		stop_next_step(agent);
	}
}

void agent_note_link_error(struct agent *agent, const struct error *err)
{
	if (err && agent->link_error.code == ERROR_NONE) {
		agent->link_error = *err;
	}
}

void agent_check_ended(struct agent *agent)
{
	if (agent->has_exited && agent->output_ended) {
		fail_as_exited(agent);
	} else if (agent->stop_step == STOP_NONE) {
		agent->drain_away_ms = sandbox_away_ms(agent->sandbox);
		agent_timer_start(agent, &agent->drain, agent->config.profile->drain_timeout_ms);
	} else if (agent->has_exited) {
		exec_kill_tree(agent->exec);
	}
}

/* ---- life ---- */

void agent_end_init(struct agent *agent)
{
	ev_init(&agent->due, on_due);
	ev_init(&agent->wall, on_wall);
	ev_init(&agent->stop, on_stop_due);
	ev_init(&agent->drain, on_drain);
	soon_init(&agent->tell, agent->config.loop, on_tell);
}

void agent_end_finish(struct agent *agent)
{
	ev_timer_stop(agent->config.loop, &agent->due);
	ev_timer_stop(agent->config.loop, &agent->wall);
	ev_timer_stop(agent->config.loop, &agent->stop);
	ev_timer_stop(agent->config.loop, &agent->drain);
	soon_stop(&agent->tell);
}

bool agent_was_lost(const struct agent *agent)
{
	return agent->is_lost;
}

bool agent_is_down(const struct agent *agent)
{
	return agent->is_failing;
}

bool agent_has_exited(const struct agent *agent)
{
	return agent->has_exited;
}
