/* SPDX-License-Identifier: MIT */
#ifndef BROKER_TOOLHOST_TOOLHOST_H
#define BROKER_TOOLHOST_TOOLHOST_H

/*
 * This folder serves what agents ask of a sandbox: files and terminals. It knows ACP's fs and
 * terminal methods and the operations of a provider. It knows no policy, no editor and no session
 * of the broker's. broker/relay hands it the calls that policy has let through; broker/agent uses
 * its terminals to look into a sandbox.
 */

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#include "acp/failure.h"
#include "acp/message.h"
#include "acp/path_map.h"
#include "acp/splice.h"
#include "base/attr.h"
#include "base/span.h"
#include "providers/provider.h"

/*
 * The ToolHost serves an agent's requests for files and terminals in its sandbox
 * (ACP, "File System" and "Terminals"), on the provider's exec and file
 * operations and nothing else, so that every provider behaves alike. Policy has
 * decided before a call comes here; paths are runtime paths. Calls run
 * concurrently; each is answered exactly once, from the loop, never from inside
 * toolhost_call. One ToolHost serves one agent. Loop thread only.
 */
struct toolhost;

/* Limits of a profile; 0 is "never" for times. */
struct toolhost_limits {
	size_t max_file;         // bytes of a file read or written (max-file)
	size_t output_limit;     // bytes of a terminal's output that are kept (output-limit)
	int max_terminals;       // not yet released, an agent (max-terminals)
	int terminal_timeout_ms; // a command's life (terminal-timeout)
	int file_timeout_ms;     // one file operation (file-timeout)
};

struct toolhost_listener {
	/* The answer to a call: id is raw, result is JSON. Borrowed. */
	void (*on_result)(void *data, struct span id, struct span result);
	void (*on_failure)(void *data, struct span id, const struct error *failure);
	/*
	 * A message of the broker's own to the editor: how a terminal looks by now.
	 * False where the editor takes nothing at the moment: it is offered again, as
	 * it looks then.
	 */
	bool (*on_update)(void *data, struct span message);
	/*
	 * Whether the agent has more to read than it is to be given: files and output wait until
	 * toolhost_resume then. NULL: never.
	 */
	bool (*is_full)(void *data);
	/*
	 * Terminals have come or gone (toolhost_visit_running), which is all that may be asked
	 * here; also from inside toolhost_call. May be NULL.
	 */
	void (*on_terminals)(void *data);
};

struct toolhost_config {
	struct ev_loop *loop;
	struct sandbox *sandbox; // borrowed, outlives the ToolHost
	struct toolhost_limits limits;
	bool editor_shows_terminals; // it advertised clientCapabilities._meta.terminal_output
	const char *agent_name;      // agentInfo.name, for quirks; copied; "" where unknown
	const struct path_map *map;  // of its roots; borrowed; NULL: the same on both sides
	/*
	 * The number of the last terminal of all that the editor may know; borrowed. NULL: this
	 * ToolHost's are the only ones.
	 */
	unsigned int *last_terminal;
	const struct toolhost_listener *listener;
	void *data;
};

struct toolhost *toolhost_create(const struct toolhost_config *config);

/* Ends every process and every operation; what was not answered never is. NULL is fine. */
void toolhost_destroy(struct toolhost *toolhost);

/* The agent has read what it was answered: what has waited for that goes on. */
void toolhost_resume(struct toolhost *toolhost);

/*
 * Whether a call waits for its answer, and not for the agent itself: then the agent's silence is
 * not its own.
 */
bool toolhost_is_busy(const struct toolhost *toolhost);

/*
 * The terminals in which anything runs, or is about to; visit may not change them. `is_ending`:
 * it was released, or its command has ended, and it is not known yet that nothing of it is left.
 */
void toolhost_visit_running(const struct toolhost *toolhost,
	void (*visit)(void *data, const char *session_id, const char *terminal_id, bool is_ending),
	void *data);

/* Whether a method is one of the ToolHost's. */
bool toolhost_has_method(const char *method);

/*
 * Serves one request. `session_id` is decoded; `roots` (NULL-terminated runtime
 * paths, the first is the session's cwd) confine its files and the cwd of its
 * commands. `resolved` is the path of a file as policy decided on it, without
 * links: then that very file is served, or none; NULL: the path as it is asked
 * for. Everything is copied where it is needed later.
 */
void toolhost_call(struct toolhost *toolhost, const struct message *message, const char *session_id,
	const char *const *roots, const char *resolved);

/*
 * Shows at once what the editor has not been told yet of the session's
 * terminals: before the answer to a prompt, after which no editor expects more.
 */
void toolhost_flush_session(struct toolhost *toolhost, const char *session_id);

/* The agent has ended: shows the last state of its terminals, and follows them no more. */
void toolhost_show_last(struct toolhost *toolhost);

/* The session was closed or cancelled: its waiting calls are answered, its terminals end. */
void toolhost_end_session(struct toolhost *toolhost, const char *session_id);

/*
 * The agent shows one of our terminals (content of type "terminal" in a
 * session/update or a session/request_permission), which the editor does not
 * know. Adds the edits that show it instead: _meta.terminal_info where the
 * editor shows terminals by _meta, text content otherwise; from then on
 * on_update follows its output, at most 10 times a second, the last state
 * always; the last state of a tool call goes out at once, from inside this, where
 * the agent says more of that call. What is sent again then is as the edits made
 * so far leave it: all others come before. True where there was nothing to edit.
 */
bool toolhost_edit_update(struct toolhost *toolhost, const struct message *update,
	struct splice *splice, struct error *err) ATTR_NODISCARD;

#endif
