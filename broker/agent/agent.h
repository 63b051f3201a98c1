/* SPDX-License-Identifier: MIT */
#ifndef BROKER_AGENT_AGENT_H
#define BROKER_AGENT_AGENT_H

/*
 * This folder gets one agent to run in a sandbox and to end there: what is copied and set up before
 * it starts, its environment, its login, the MCP servers that it can start, its process and its
 * link. It does not know what its messages mean beyond their envelope, nor who reads them.
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
 * One agent process in one sandbox, and the link to it. It begins to start
 * when it is created; what is sent before it runs waits in its link. Loop
 * thread only.
 */
struct agent;

enum { AGENT_STDERR_TAIL = 8 * 1024 }; // bytes of its last words

struct agent_listener {
	/* As link_listener.on_frame. */
	bool (*on_frame)(void *data, const struct frame *frame);
	void (*on_drained)(void *data);
	/* So many bytes has whoever reads its output taken since the start, of anything. */
	uint64_t (*count_taken)(void *data);
	/* Its sandbox can be used and its process was asked for. Once, if ever. */
	void (*on_ready)(void *data);
	/* Its process has exited; what it has written may still come. Once, before on_down. */
	void (*on_exited)(void *data);
	/*
	 * It answers nothing any more: it ended, could not be started, or missed a
	 * deadline. Once. The failure is borrowed.
	 */
	void (*on_down)(void *data, const struct error *failure);
	/* Nothing that it started runs any more; after on_down. Once. */
	void (*on_gone)(void *data);
	/* It has reached a limit of the profile, and goes on. Once for a process; may be NULL. */
	void (*on_limit)(void *data, const char *text);
	/* Something about its sandbox that the user should know; may be NULL. */
	void (*on_notice)(void *data, const char *text);
};

struct agent_config {
	struct ev_loop *loop;
	struct pool *pool; // may be NULL where the profile copies no files
	struct provider *provider;
	const struct profile *profile;
	const char *directory; // sandbox_request.directory; may be NULL
	const struct json_places *places;
	struct secrets *secrets; // that its log shall not have; learns those there; may be NULL
	const struct agent_listener *listener;
	void *data;
};

/* Never fails at once: what goes wrong is told by on_down. */
struct agent *agent_create(const struct agent_config *config);

/*
 * Whether another process can be started in the sandbox once this one is gone (on_gone): the
 * sandbox was ready and, as far as is known, still is.
 */
bool agent_can_restart(const struct agent *agent);

/*
 * After on_gone: starts the agent anew in the same sandbox, with a link as new; the listener is
 * raised as for an agent that was created.
 */
void agent_restart(struct agent *agent);

/* Ends what is left at once; raises nothing more. NULL is fine. */
void agent_destroy(struct agent *agent);

struct link *agent_link(struct agent *agent);
struct sandbox *agent_sandbox(const struct agent *agent); // NULL until on_ready
pid_t agent_process(const struct agent *agent);           // as exec_process; 0 before it runs

/* An answer is due within start-timeout (from the start of the process, if it has not started). */
void agent_expect_answer(struct agent *agent, const char *step);
void agent_has_answered(struct agent *agent);

/*
 * Stops it: what is queued is sent, its stdin is closed; after
 * stop-eof-timeout SIGTERM to its group, after stop-term-timeout SIGKILL to its
 * tree. on_down and on_gone follow. A second call takes the next step at once.
 * Before its process is there, what was made for it is taken back (sandbox_withdraw).
 */
void agent_stop(struct agent *agent);

/* Ends it for a reason: on_down tells this failure, and it is stopped. */
void agent_fail(struct agent *agent, const struct error *failure);

bool agent_was_lost(const struct agent *agent); // its sandbox, or the link to it
bool agent_is_down(const struct agent *agent);
bool agent_has_exited(const struct agent *agent); // its process; on_down may still be to come

/* Why a sandbox that was made or started for it, and not used, goes on; NULL: none. Borrowed. */
const struct error *agent_left(const struct agent *agent);

struct span agent_last_words(struct agent *agent); // on stderr; borrowed

/* A line of its output that is no message: counted, the first is quoted where it never answers. */
void agent_note_noise(struct agent *agent, struct span line);

#endif
