/* SPDX-License-Identifier: MIT */
#ifndef BROKER_AGENT_AGENT_H
#define BROKER_AGENT_AGENT_H

/*
 * This folder starts, runs and ends one agent in a sandbox. It knows the files and commands that
 * prepare the sandbox, the agent's environment, its login, the MCP servers that it can start, its
 * process and its link. Of the agent's messages it knows only the envelope, and not who reads them.
 * broker/relay creates the agents.
 */

#include <ev.h>
#include <stdbool.h>

#include "acp/failure.h"
#include "acp/link.h"
#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "broker/agent/tail.h"
#include "broker/config/config.h"
#include "providers/provider.h"

/*
 * One agent process in one sandbox, and the link to it. The start begins with its creation;
 * messages sent before the process runs wait in the link. Loop thread only.
 */
struct agent;

enum { AGENT_STDERR_TAIL = 8 * 1024 }; // bytes of its last stderr output that are kept

struct agent_listener {
	/* Like link_listener.on_frame. */
	bool (*on_frame)(void *data, const struct frame *frame);
	void (*on_drained)(void *data);
	/*
	 * Returns how many bytes the reader of the agent's output has taken since the start, from
	 * any source.
	 */
	uint64_t (*count_taken)(void *data);
	/* The sandbox can be used and the process was requested. At most once. */
	void (*on_ready)(void *data);
	/* The process has exited; its last output may still arrive. Once, before on_down. */
	void (*on_exited)(void *data);
	/*
	 * The agent no longer responds: it ended, could not be started, or missed a deadline. Once.
	 * The failure is borrowed.
	 */
	void (*on_down)(void *data, const struct error *failure);
	/* Nothing that it started runs any more. Once, after on_down. */
	void (*on_gone)(void *data);
	/*
	 * The agent has reached a limit of the profile and continues. Once per process; may be
	 * NULL.
	 */
	void (*on_limit)(void *data, const char *text);
	/* Something about its sandbox that the user should know. May be NULL. */
	void (*on_notice)(void *data, const char *text);
	/*
	 * The callbacks of struct sandbox_listener; set both or none. A lost link that does not
	 * come back ends in on_down.
	 */
	void (*on_link_lost)(void *data, const char *place, const struct error *why);
	void (*on_link_back)(void *data);
	/* What the sandbox decided about a connection; may be NULL. */
	void (*on_connection)(void *data, const struct sandbox_connection *connection);
	/*
	 * The callbacks of struct sandbox_listener, from agent_sandbox on; set all three or none.
	 */
	void (*on_wish)(void *data, const struct sandbox_wish *wish);
	void (*on_wish_gone)(void *data, uint32_t id);
	void (*on_program)(void *data, uint32_t id, const char *program);
};

struct agent_config {
	struct ev_loop *loop;
	struct pool *pool; // may be NULL if the profile copies no files
	struct provider *provider;
	const struct profile *profile;
	const char *directory; // sandbox_request.directory, only during agent_create; may be NULL
	const struct json_places *places;
	struct secrets *secrets; // masked in its log; the agent's own are added; may be NULL
	const struct agent_listener *listener;
	void *data;
};

/* Never fails at once; on_down reports what goes wrong. */
struct agent *agent_create(const struct agent_config *config);

/*
 * Whether a new process can be started in the sandbox after on_gone: the sandbox was ready and, as
 * far as known, still is.
 */
bool agent_can_restart(const struct agent *agent);

/*
 * After on_gone: starts the agent again in the same sandbox, with a new link. The callbacks follow
 * as for a new agent.
 */
void agent_restart(struct agent *agent);

/* Ends everything at once; no callback follows. NULL is fine. */
void agent_destroy(struct agent *agent);

struct link *agent_link(struct agent *agent);
struct sandbox *agent_sandbox(const struct agent *agent); // NULL until on_ready
pid_t agent_process(const struct agent *agent);           // as exec_process; 0 before it runs

/*
 * Expects an answer within start-timeout. If the process has not started yet, the time counts from
 * its start.
 */
void agent_expect_answer(struct agent *agent, const char *step);
void agent_has_answered(struct agent *agent);

/*
 * Stops the agent: sends what is queued, then closes its stdin; after stop-eof-timeout sends
 * SIGTERM to its process group, after stop-term-timeout SIGKILL to its process tree. on_down and
 * on_gone follow. A second call takes the next step at once. If the process does not exist yet, the
 * sandbox's preparation is undone (sandbox_withdraw).
 */
void agent_stop(struct agent *agent);

/* Ends the agent: on_down reports this failure, and the agent is stopped. */
void agent_fail(struct agent *agent, const struct error *failure);

bool agent_was_lost(const struct agent *agent); // its sandbox was lost, or the link to it
bool agent_is_down(const struct agent *agent);
bool agent_has_exited(const struct agent *agent); // its process has; on_down may still follow

/*
 * The reason why an unused sandbox that was created or started for the agent still exists; NULL:
 * there is none. Borrowed.
 */
const struct error *agent_left(const struct agent *agent);

struct span agent_last_words(struct agent *agent); // from stderr; borrowed

/*
 * Notes an output line that is not a message: it is counted, and the first is quoted if the agent
 * never answers.
 */
void agent_note_noise(struct agent *agent, struct span line);

#endif
