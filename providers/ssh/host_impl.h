/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_HOST_IMPL_H
#define PROVIDERS_SSH_HOST_IMPL_H

#include "base/environment.h"
#include "base/words.h"
#include "providers/ssh/host.h"
#include "providers/ssh/login_env.h"
#include "providers/suspension.h"

/*
 * What host.c, control.c, login.c, link.c, slot.c and exec.c share.
 *
 *     host ── control         the first channel: orders, events
 *          ├─ links ── slots  connections, and their channels for processes
 *          └─ processes       one an exec; may outlive its handle, and its handle it
 *
 * Whoever is called by the loop or by a client enters the host, so that it is there until he
 * leaves, also where a handler closes it. After an event was raised nothing but the
 * host is touched.
 */
enum {
	SSH_TOKEN_SIZE = 33, // of a run: 128 random bits as hexadecimal digits
	SSH_REQUEST_MAX = 4 << 20,
	SSH_LINE_MAX = 8192,                 // of the control
	SSH_PREAMBLE_MAX = 5 * SSH_LINE_MAX, // the run's folder, quoted
	SSH_WORDS_MAX = 64,                  // of an environment that the control tells
	SSH_COMMAND_MAX = 1024,
	SSH_ORDERS_MAX = 256 * 1024,
};

/* ---- texts for shells (scripts.c) ---- */

/*
 * Appends a text as one word of sh, on one line: newlines come from the variable acp_n. The
 * variable has to be set where it is evaluated.
 */
bool ssh_quote_append(struct buf *buf, struct span text, struct error *err) ATTR_NODISCARD;

/* What a channel runs. */
void ssh_control_command(char command[SSH_COMMAND_MAX], const struct ssh_host *host);
void ssh_process_command(char command[SSH_COMMAND_MAX], const struct ssh_host *host);

/* The first line for the control: all scripts. */
bool ssh_control_script(
	struct buf *buf, const struct ssh_host *host, struct error *err) ATTR_NODISCARD;

/* The line for the shell of a process; ERROR_LIMIT where it is too long for one. */
bool ssh_request_append(struct buf *buf, const struct ssh_host *host, unsigned id,
	const struct exec_spec *spec, struct error *err) ATTR_NODISCARD;

/* The text of an environment's variable, or NULL. */
const char *ssh_environment_get(const char *const *env, const char *name);

/* What a login shell prints before our scripts begin is dropped. */
struct ssh_begin {
	size_t matched;
	bool is_over;
};

/* How many of the bytes belong to what comes before the beginning. */
size_t ssh_begin_skip(struct ssh_begin *begin, struct span bytes);

/* ---- connections (link.c) ---- */

struct ssh_process;

/* A connection; the first one is the control's. */
struct ssh_link {
	struct list link; // ssh_host.links
	struct ssh_host *host;
	struct ssh_client *client;
	struct list slots; // of struct ssh_slot
	bool is_ready;
	bool is_full; // refused a channel; until one of its slots ends
	/*
	 * A server may count a channel for a moment after it has told of its end. So many refusals
	 * are doubted after one: the link rests, and is tried again.
	 */
	unsigned doubts;
	bool is_resting;
	struct ssh_admission_turn *turn; // NULL: nobody has to be asked
	bool is_of_use;                  // a channel of it was opened
	bool was_dropped;                // before that, once, and is made anew
};

/* A channel whose shell waits for a process, or has one, or one's stderr. */
struct ssh_slot {
	struct list link; // ssh_link.slots
	struct ssh_link *of;
	struct ssh_channel *channel;
	struct ssh_process *process; // NULL: waits
	bool is_stderr;              // its output is the stderr of the process
	struct ssh_begin begin[2];   // by enum ssh_stream; that of an unused one never comes
	struct buf unsent;           // what the channel has not taken yet
	bool wants_eof;              // after it
	bool is_open;                // it is not refused any more
};

bool ssh_link_open(struct ssh_host *host, struct error *err) ATTR_NODISCARD;
bool ssh_link_connect(
	struct ssh_link *link, const struct ssh_target *target, struct error *err) ATTR_NODISCARD;
/* It is of no use; the first one's failure is that of the host. May free it. */
void ssh_link_fail(struct ssh_link *link, const struct error *err);
void ssh_link_prove(struct ssh_link *link);   // the server runs something on it
void ssh_links_close(struct ssh_host *host);  // with their slots, silently
void ssh_links_settle(struct ssh_host *host); // their admissions
size_t ssh_link_count(const struct ssh_host *host);

/* Gives channels to the processes that wait, as far as there are some. Raises nothing. */
void ssh_links_dispatch(struct ssh_host *host);
/* Opens channels for the next processes. */
void ssh_links_warm(struct ssh_host *host);
/* Those that rested may be asked again. */
void ssh_links_wake(struct ssh_host *host);
/* The scripts are there: every shell that waits is told where. */
void ssh_links_begin(struct ssh_host *host);

/* ---- admissions (admission.c) ---- */

/* Asks, in the next turn of the loop, and connects the link once it is granted. */
struct ssh_admission_turn *ssh_admission_begin(struct ssh_link *link);
/* The link stands, or has failed. NULL and more than once are fine. */
void ssh_admission_settle(struct ssh_admission_turn *turn);
/* The link stands: the name is wiped. NULL is fine. */
void ssh_admission_forget(struct ssh_admission_turn *turn);
void ssh_admission_end(struct ssh_admission_turn *turn); // frees it; the client has gone
/* Whether a link that was of no use yet failed for what a new admission may mend. */
bool ssh_admission_was_in_vain(const struct error *err);
void ssh_admission_explain(const struct ssh_link *link, struct error *err);

/* ---- channels (slot.c) ---- */

/* NULL: the link has no room, and is marked so. */
struct ssh_slot *ssh_slot_open(struct ssh_link *link);

/* The scripts are there: tells its shell where. */
void ssh_slot_begin(struct ssh_slot *slot);

/* Bytes for the process; what cannot be sent at once is kept. False: wait for
 * ssh_process_on_room. */
bool ssh_slot_send(struct ssh_slot *slot, struct span bytes);
/*
 * Whether input of the process may be read. Not before the channel is open: what was read for one
 * that is refused is lost to the next.
 */
bool ssh_slot_has_room(const struct ssh_slot *slot);
void ssh_slot_send_eof(struct ssh_slot *slot);
void ssh_slot_close(struct ssh_slot *slot); // and frees it

/* ---- the control (control.c) ---- */

struct ssh_control {
	struct ssh_channel *channel;
	struct ssh_begin begin;
	struct buf line;
	struct buf said; // before the beginning, for the error
	struct buf unsent;
	ev_timer beat;
	ev_timer deadline; // for being ready
	bool is_open;      // the server runs something there
	bool is_ready;
	char *run_folder;
	char *node;         // the machine's name
	unsigned ended;     // processes that lost connections had left
	uint64_t told_runs; // request.runs->added when the script was written
	char **environment; // of a channel: the allowlist
};

bool ssh_control_open(struct ssh_host *host, struct error *err) ATTR_NODISCARD;
void ssh_control_close(struct ssh_host *host);
void ssh_control_order(struct ssh_host *host, const char *format, ...) ATTR_PRINTF(2, 3);

/* ---- the login shell (login.c) ---- */

struct ssh_login {
	struct exec *exec;
	int fd;
	ev_io io;
	ev_timer deadline;
	struct buf answer;
	bool is_plain;  // the second attempt, without the login shell
	bool is_silent; // its output has ended
	bool has_exited;
	bool is_lost;
};

void ssh_login_start(struct ssh_host *host);
void ssh_login_stop(struct ssh_host *host);

/* ---- processes (exec.c, exec_event.c, exec_pump.c) ---- */

enum ssh_process_state {
	SSH_PROCESS_WAITING,  // for a channel
	SSH_PROCESS_STARTING, // the request is under way
	SSH_PROCESS_RUNNING,
	SSH_PROCESS_EXITED,
	SSH_PROCESS_OVER, // nothing more will be told
};

struct ssh_process {
	struct exec exec;
	struct suspension_member suspends;
	struct list link;          // ssh_host.processes
	struct ssh_host *host;     // NULL once that is closed
	struct ssh_slot *slot;     // NULL: none yet, or it has ended
	struct ssh_slot *err_slot; // of its stderr, where that is apart; NULL: none yet, or ended
	const struct exec_listener *listener;
	void *data;
	unsigned id;
	enum ssh_process_state state;
	bool is_held;     // the handle has not been destroyed
	bool is_silenced; // lost, or timed out: no event any more, killed when it turns up
	bool is_apart;    // its stderr has a channel of its own
	bool is_pairing;  // of the two shells, one may wait for the other there
	bool was_killed;
	bool has_emptied;  // told before the exit was
	long long left_ms; // when a look first missed its shell; 0: it was there
	struct ssh_channel_end end;
	int pending_signal;
	long shell; // the process id of its shell there; 0: not known
	char *command;
	char *path; // searched for it
	char *cwd;
	char *file; // for the message, where it cannot be started
	char *interpreter;
	struct buf request; // wiped: it has the environment
	ev_timer deadline;  // for a channel, for the start, and for what is left at the end
	int in;             // reads what the process is to read; -1: none, or at its end
	int out[2];         // by enum ssh_stream; -1: closed
	ev_io in_io;
	ev_io out_io[2];
};

/* Has the control look for the shells of those that run: whoever is killed says nothing. */
void ssh_processes_look(struct ssh_host *host);

/* How many channels it waits for. */
size_t ssh_process_wants(const struct ssh_process *process);
void ssh_process_assign(struct ssh_process *process, struct ssh_slot *slot);
/* Takes it off its channels, which are closed. */
void ssh_process_drop_slots(struct ssh_process *process);

/* From its slot. */
size_t ssh_process_on_bytes(struct ssh_process *process, enum ssh_stream stream, struct span bytes);
void ssh_process_on_eof(struct ssh_process *process, enum ssh_stream stream);
void ssh_process_on_room(struct ssh_process *process);
/* Refused for want of a channel: waits again. */
void ssh_process_on_refused(struct ssh_process *process);
void ssh_process_on_failed(struct ssh_process *process, const struct error *err);
void ssh_process_on_closed(struct ssh_process *process, const struct ssh_channel_end *end);
/* The channel of its stderr; NULL: the server ran the command. */
void ssh_process_on_stderr_refused(struct ssh_process *process, const struct error *err);
void ssh_process_on_lost(struct ssh_process *process, const struct error *err);

/* From the control: "exited code 3". */
void ssh_process_on_event(struct ssh_host *host, unsigned id, const char *event);

/* Of the control's events (suspend.c). */
void ssh_process_on_frozen(struct ssh_process *process, const char *rest);
void ssh_process_on_obeyed(struct ssh_process *process, const char *rest);
void ssh_process_on_unfrozen(struct ssh_process *process, const char *rest);

/* Descriptors (exec_pump.c). */
bool ssh_process_connect(
	struct ssh_process *process, const struct exec_spec *spec, struct error *err);
void ssh_process_read_stdin(struct ssh_process *process);
void ssh_process_close_fds(struct ssh_process *process);
/* Those of its channel; stderr that is apart has one more. */
void ssh_process_close_main(struct ssh_process *process);

void ssh_process_kill(struct ssh_process *process);
void ssh_process_free(struct ssh_process *process);
void ssh_processes_lose(struct ssh_host *host, const struct error *err);
void ssh_processes_abandon(struct ssh_host *host);

/* ---- the host (host.c) ---- */

struct ssh_host {
	struct ssh_host_request request;
	const struct ssh_host_listener *listener;
	void *data;
	struct ev_loop *loop;
	char token[SSH_TOKEN_SIZE]; // the run's name
	struct list links;          // of struct ssh_link
	struct list processes;      // of struct ssh_process
	struct list dead;           // of struct ssh_process, freed when the host is left
	struct ssh_control control;
	struct ssh_login login;
	struct ssh_host_facts facts;
	char **texts;             // what the facts point to
	char **environment;       // facts.environment
	char **agent_environment; // facts.agent_environment
	struct login_env login_env;
	ev_timer warm;        // a channel for the next process
	struct error no_link; // why a further connection was not made
	unsigned last_id;
	int depth;
	bool is_ready;
	bool is_over; // failed or closed
	bool is_closed;
};

void ssh_host_enter(struct ssh_host *host);
void ssh_host_leave(struct ssh_host *host);
void ssh_host_progress(struct ssh_host *host, const char *text);
void ssh_host_become_ready(struct ssh_host *host);

/* Another name for the run, at random; before anything of it is started. */
void ssh_host_name_run(struct ssh_host *host);

/* Tells everybody; the caller returns. */
void ssh_host_fail(struct ssh_host *host, const struct error *err);

const char *ssh_host_name(const struct ssh_host *host);
const char *ssh_host_sh(const struct ssh_host *host);

#endif
