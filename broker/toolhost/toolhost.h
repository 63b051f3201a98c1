/* SPDX-License-Identifier: MIT */
#ifndef BROKER_TOOLHOST_TOOLHOST_H
#define BROKER_TOOLHOST_TOOLHOST_H

/*
 * This folder serves agents' requests for files and terminals in a sandbox. It knows ACP's fs and
 * terminal methods and the operations of a provider. It knows no policy, no editor and no sessions
 * of the broker. broker/relay hands it the calls that policy has allowed; broker/agent uses its
 * terminals to look into a sandbox.
 */

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#include "acp/failure.h"
#include "acp/message.h"
#include "acp/path_map.h"
#include "acp/splice.h"
#include "base/attr.h"
#include "base/login_url.h"
#include "base/span.h"
#include "providers/provider.h"

/*
 * The ToolHost serves an agent's requests for files and terminals in its sandbox (ACP, "File
 * System" and "Terminals"). It uses only the provider's exec and file operations, so that every
 * provider behaves alike. Policy has decided before a call comes here. Paths are runtime paths.
 * Calls run concurrently; each is answered exactly once, from the loop, never from inside
 * toolhost_call. One ToolHost serves one agent. Loop thread only.
 */
struct toolhost;

/* Limits of a profile. For times, 0 means "never". */
struct toolhost_limits {
	size_t max_file;         // bytes of a file read or written (max-file)
	size_t output_limit;     // bytes of a terminal's output to keep (output-limit)
	int max_terminals;       // unreleased ones per agent (max-terminals)
	int terminal_timeout_ms; // run time of a command (terminal-timeout)
	int file_timeout_ms;     // one file operation (file-timeout)
};

struct toolhost_listener {
	/*
	 * The answer to a call: id is raw, result is JSON. The callee may take the result's memory.
	 * A long result has room for a message's beginning in front of it (buf_prepend).
	 */
	void (*on_result)(void *data, struct span id, struct buf *result);
	void (*on_failure)(void *data, struct span id, const struct error *failure);
	/*
	 * Sends one of the broker's own messages to the editor: the present state of a terminal.
	 * False if the editor cannot take it now; then the ToolHost later offers the state of that
	 * moment.
	 */
	bool (*on_update)(void *data, struct span message);
	/*
	 * Whether the agent has too many unread bytes: then files and output wait until
	 * toolhost_resume. NULL: never.
	 */
	bool (*is_full)(void *data);
	/*
	 * Terminals have begun or ended. It may call only toolhost_visit_running. Also called from
	 * inside toolhost_call. May be NULL.
	 */
	void (*on_terminals)(void *data);
	/*
	 * With watches_logins: a terminal's output has the address of a login page. It must not
	 * call the ToolHost. May be NULL.
	 */
	void (*on_login)(void *data, const char *session_id, const struct login_url *login);
};

struct toolhost_config {
	struct ev_loop *loop;
	struct sandbox *sandbox; // borrowed, outlives the ToolHost
	struct toolhost_limits limits;
	bool watches_logins;         // looks into the output of terminals (base/login_url.h)
	bool editor_shows_terminals; // it has clientCapabilities._meta.terminal_output
	const char *agent_name;      // agentInfo.name, for quirks; copied; "": unknown
	const struct path_map *map;  // of its roots; borrowed; NULL: same paths on both sides
	/*
	 * The number of the last terminal that the editor knows, from all ToolHosts; borrowed.
	 * NULL: there is only this ToolHost.
	 */
	unsigned int *last_terminal;
	const struct toolhost_listener *listener;
	void *data;
};

struct toolhost *toolhost_create(const struct toolhost_config *config);

/* Ends every process and every operation; unanswered calls are never answered. NULL is fine. */
void toolhost_destroy(struct toolhost *toolhost);

/* Call it when the agent has read its answers: files and output that waited for that go on. */
void toolhost_resume(struct toolhost *toolhost);

/*
 * Whether a call waits for its answer and not for the agent itself. Then the agent's silence is not
 * its own fault.
 */
bool toolhost_is_busy(const struct toolhost *toolhost);

/*
 * Visits the terminals in which something runs or is about to; visit must not change them.
 * `is_ending`: it was released, or its command has ended, but some of its processes may still run.
 */
void toolhost_visit_running(const struct toolhost *toolhost,
	void (*visit)(void *data, const char *session_id, const char *terminal_id, bool is_ending),
	void *data);

/* Whether a method is one of the ToolHost's. */
bool toolhost_has_method(const char *method);

/*
 * Serves one request. `session_id` is decoded. `roots` (NULL-terminated runtime paths, the first is
 * the session's cwd) confine its files and the cwd of its commands. `resolved` is a file's path
 * without links, as policy decided about it: exactly that file is served, or none. NULL: the path
 * as the agent gave it. Copies everything that is needed later.
 */
void toolhost_call(struct toolhost *toolhost, const struct message *message, const char *session_id,
	const char *const *roots, const char *resolved);

/*
 * Sends the editor the latest state of the session's terminals at once. Used before the answer to a
 * prompt, after which editors expect nothing more.
 */
void toolhost_flush_session(struct toolhost *toolhost, const char *session_id);

/* The agent has ended: shows the last state of its terminals and stops following them. */
void toolhost_show_last(struct toolhost *toolhost);

/* The session was closed or cancelled: answers its waiting calls and ends its terminals. */
void toolhost_end_session(struct toolhost *toolhost, const char *session_id);

/*
 * The agent shows one of our terminals (content of type "terminal" in a session/update or a
 * session/request_permission), which the editor does not know. Adds the edits that show it instead:
 * _meta.terminal_info if the editor shows terminals by _meta, else text content. From then on
 * on_update follows its output, at most 10 times a second, and always sends the last state. If the
 * tool call has shown terminals before, their last state is sent first, from inside this call. The
 * later messages repeat the content as the edits so far have left it, so make all other edits
 * first. True also if there is nothing to edit.
 */
bool toolhost_edit_update(struct toolhost *toolhost, const struct message *update,
	struct splice *splice, struct error *err) ATTR_NODISCARD;

#endif
