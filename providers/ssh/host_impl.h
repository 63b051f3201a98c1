/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_HOST_IMPL_H
#define PROVIDERS_SSH_HOST_IMPL_H

#include "base/environment.h"
#include "base/network_watch.h"
#include "base/sleep_watch.h"
#include "base/words.h"
#include "providers/remote/remote.h"
#include "providers/script_line.h"
#include "providers/ssh/carrier.h"
#include "providers/ssh/host.h"
#include "providers/ssh/login_env.h"
#include "providers/suspension.h"

/*
 * Shared by host.c, control.c, login.c, link.c, slot.c and exec.c.
 *
 *     host ── control         the first channel: orders, events
 *          ├─ links ── slots  connections, and their channels for processes
 *          └─ processes       one for each exec; it and its handle may outlive each other
 *
 * Every callback of the loop or of a client enters the host, so that the host exists until the
 * callback leaves it, even if a handler closes it. After raising an event, a callback uses only the
 * host.
 */
enum {
	SSH_REQUEST_MAX = 4 << 20,
	SSH_LINE_MAX = 8192,                 // of the control's output
	SSH_PREAMBLE_MAX = 5 * SSH_LINE_MAX, // the run's folder, quoted
	SSH_WORDS_MAX = 64,                  // of an environment that the control reports
	SSH_KEPT_MAX = 16,                   // sentences about runs that were not ended
	SSH_COMMAND_MAX = 1024,
	SSH_ORDERS_MAX = 256 * 1024,
	SSH_BEFORE_MAX = 128 * 1024,
};

/* ---- texts for shells (scripts.c) ---- */

/* The command of every channel. */
void ssh_control_command(char command[SSH_COMMAND_MAX], const struct ssh_host *host);
void ssh_process_command(char command[SSH_COMMAND_MAX], const struct ssh_host *host);

/* Names of variables that a channel's command has, and that programs get; or "" (variables.sh). */
const char *ssh_host_more_variables(const struct ssh_host *host);

/* The first line for the control: all scripts. */
bool ssh_control_script(
	struct buf *buf, const struct ssh_host *host, struct error *err) ATTR_NODISCARD;

/* The line for a process's shell; ERROR_LIMIT if it is too long. */
bool ssh_request_append(struct buf *buf, const struct ssh_host *host, unsigned id,
	const struct exec_spec *spec, struct error *err) ATTR_NODISCARD;

/* The value of a variable in the environment, or NULL. */
const char *ssh_environment_get(const char *const *env, const char *name);

/* ---- connections (link.c) ---- */

struct ssh_process;

/* A connection; the first one has the control. */
struct ssh_link {
	struct list link; // in ssh_host.links
	struct ssh_host *host;
	struct ssh_client *client;
	struct ssh_target target; // of a further connection: the host's, without its forwards
	struct list slots;        // struct ssh_slot
	bool is_ready;
	bool is_full; // refused a channel; until one of its slots ends
	/*
	 * How many refusals we do not believe: the link then rests, and we try it again. A server
	 * may count a channel for a moment after it has reported the channel's end.
	 */
	unsigned doubts;
	bool is_resting;
	struct ssh_admission_turn *turn; // NULL: there is nobody to ask
	bool is_of_use;                  // it has opened a channel
	bool was_dropped; // the server dropped it before that; we make it again, once
};

/* A channel whose shell waits for a process, has one, or carries the stderr of one. */
struct ssh_slot {
	struct list link; // in ssh_link.slots
	struct ssh_link *of;
	struct ssh_channel *channel;
	struct ssh_process *process;  // NULL: it waits for one
	bool is_stderr;               // its output is the process's stderr
	struct script_begin begin[2]; // by enum ssh_stream; an unused stream never begins
	struct buf unsent;            // bytes that the channel has not taken yet
	bool wants_eof;               // the half-close follows them
	bool is_open;                 // the server has opened it
};

bool ssh_link_open(struct ssh_host *host, struct error *err) ATTR_NODISCARD;
bool ssh_link_connect(
	struct ssh_link *link, const struct ssh_target *target, struct error *err) ATTR_NODISCARD;
/* The link failed; if it is the first, the host fails with it. May free the link. */
void ssh_link_fail(struct ssh_link *link, const struct error *err);
void ssh_link_prove(struct ssh_link *link);   // the server runs something on it
void ssh_links_close(struct ssh_host *host);  // with their slots, without events
void ssh_links_settle(struct ssh_host *host); // settles their admissions
size_t ssh_link_count(const struct ssh_host *host);

/* Gives free channels to the waiting processes. Raises nothing. */
void ssh_links_dispatch(struct ssh_host *host);
/* Opens channels for the next processes. */
void ssh_links_warm(struct ssh_host *host);
/* Links that rested may be asked again. */
void ssh_links_wake(struct ssh_host *host);
/* The scripts are in place: tells every waiting shell where. */
void ssh_links_begin(struct ssh_host *host);

/* ---- admissions (admission.c) ---- */

/* Asks in the next turn of the loop, and connects the link when it is granted. */
struct ssh_admission_turn *ssh_admission_begin(struct ssh_link *link);
/* The link stands, or has failed. NULL is fine, and so is a second call. */
void ssh_admission_settle(struct ssh_admission_turn *turn);
/* The link stands: wipes the name. NULL is fine. */
void ssh_admission_forget(struct ssh_admission_turn *turn);
void ssh_admission_end(struct ssh_admission_turn *turn); // frees it, after its client
/* Whether an unused link failed for a reason that a new admission may repair. */
bool ssh_admission_was_in_vain(const struct error *err);
void ssh_admission_explain(const struct ssh_link *link, struct error *err);

/* ---- channels (slot.c) ---- */

/* Opens a channel. NULL: the link has no room, and this has marked it as full. */
struct ssh_slot *ssh_slot_open(struct ssh_link *link);

/* The scripts are in place: tells its shell where. */
void ssh_slot_begin(struct ssh_slot *slot);

/*
 * Writes bytes for the process and keeps what cannot be sent yet. False: wait for
 * ssh_process_on_room.
 */
bool ssh_slot_send(struct ssh_slot *slot, struct span bytes);
/*
 * Whether the process's input may be read. Not before the channel is open: if the server refused
 * the channel, the next channel would not get input that was already read.
 */
bool ssh_slot_has_room(const struct ssh_slot *slot);
void ssh_slot_send_eof(struct ssh_slot *slot);
void ssh_slot_close(struct ssh_slot *slot); // and frees it

/* ---- the control (control.c) ---- */

struct ssh_control {
	struct ssh_channel *channel;
	struct script_begin begin;
	struct buf line;
	struct buf said; // output before the beginning, for the error
	struct buf unsent;
	ev_timer beat;
	ev_timer deadline; // for getting ready
	bool is_open;      // the server runs the control
	bool is_ready;
	bool has_runner;    // the runner is ready, and replaces the control
	char *run_folder;   // the name alone if a runner has no folder
	char *node;         // the machine's name
	unsigned ended;     // processes of lost connections that were ended
	char **kept;        // sentences about runs of killed brokers that were not ended
	uint64_t told_runs; // request.runs->added when the script was written
	char **environment; // the allowlist of a channel's environment
};

bool ssh_control_open(struct ssh_host *host, struct error *err) ATTR_NODISCARD;
void ssh_control_close(struct ssh_host *host);

/*
 * Takes a line with a fact about the machine, or about earlier runs, before anything runs there.
 * False: the line is no such fact.
 */
bool ssh_control_take_fact(struct ssh_host *host, const char *line);
void ssh_control_drop_facts(struct ssh_host *host);
/* Forgets the earlier runs: all their processes have ended. */
void ssh_control_forget_runs(struct ssh_host *host);
void ssh_control_order(struct ssh_host *host, const char *format, ...) ATTR_PRINTF(2, 3);

/* ---- the runner (runner.c) ---- */

/* On a connection that has just been made, opens the runner, or else the control. */
bool ssh_runner_open(struct ssh_host *host, struct error *err) ATTR_NODISCARD;
void ssh_runner_close(struct ssh_host *host);

/* ---- a connection that is made again (reattach.c) ---- */

/* With `outlives`: the processes go on without the connection, and we connect again and again. */
struct ssh_reattach {
	ev_timer again;
	ev_timer probe;
	struct network_watch network; // from the runner's start on
	struct sleep_watch sleep;     // the same
	bool is_turn_open;
	bool has_turn;      // the same, but as it was at the loss while there is one
	long long lost_ms;  // when the connection was lost; 0: it is there
	bool has_changed;   // the network has changed again since the probe began
	unsigned attempts;  // since the loss, or since the last change of the network
	unsigned restarts;  // attempts that we gave up because of such a change
	bool was_refused;   // the last attempt's token was, and another login may have caused that
	uint64_t tried_us;  // remote_now_us of the last attempt
	uint64_t probed_us; // and of the last probe
};

void ssh_reattach_init(struct ssh_host *host);
/* The runner is ready: begins to watch this machine's network. */
void ssh_reattach_begin(struct ssh_host *host);
void ssh_reattach_stop(struct ssh_host *host);

/* How long what runs there goes on without us: link-grace, or turn-grace. */
long long ssh_reattach_grace_ms(const struct ssh_host *host);
/* The longest time for which it may go on: the host may not know yet that a turn has ended. */
long long ssh_longest_grace_ms(const struct ssh_host *host);
/* The name of the key that gives this time. */
const char *ssh_grace_key(const struct ssh_host *host, long long grace_ms);

/* Takes the loss of the first connection. False: the processes there are lost with it. */
bool ssh_reattach_take_loss(struct ssh_link *link, const struct error *err);
/* Gives the remote a connection that is ready again. False: no remote waits for one. */
bool ssh_reattach_take_link(struct ssh_link *link);
/* Events of the remote (runner.c). */
void ssh_reattach_on_detached(struct ssh_host *host, const struct error *err);
void ssh_reattach_on_attached(struct ssh_host *host);

/* ---- the login shell (login.c) ---- */

extern const char ssh_login_script[]; // scripts.c

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
	SSH_PROCESS_STARTING, // the request was sent
	SSH_PROCESS_RUNNING,
	SSH_PROCESS_EXITED,
	SSH_PROCESS_OVER, // nothing more is raised
};

struct ssh_process {
	struct exec exec;
	struct suspension_member suspends;
	struct list link;          // in ssh_host.processes
	struct ssh_host *host;     // NULL once the host is closed
	struct ssh_slot *slot;     // NULL: none yet, or it has ended
	struct ssh_slot *err_slot; // for stderr on its own channel; NULL: none yet, or it has ended
	const struct exec_listener *listener;
	void *data;
	unsigned id;
	enum ssh_process_state state;
	bool is_held;     // the handle has not been destroyed
	bool is_silenced; // lost, or timed out: raises nothing more; is killed if it appears
	bool is_agents;   // not a script of the broker's
	bool is_apart;    // its stderr has its own channel
	bool is_pairing;  // one of its two shells may be waiting for the other
	bool was_killed;
	bool has_emptied;  // emptied was reported before the exit
	long long left_ms; // when its shell was first missing; 0: it was there
	struct ssh_channel_end end;
	int pending_signal;
	long shell; // process id of its shell there; 0: unknown
	char *command;
	char *path; // where it is searched for
	char *cwd;
	char *file; // its file, for the message if it cannot start
	char *interpreter;
	struct buf request; // wiped: contains the environment
	ev_timer deadline;  // for a channel, the start, and the rest of its output
	int in;             // the process's input is read from it; -1: none, or at its end
	int out[2];         // by enum ssh_stream; -1: closed
	ev_io in_io;
	ev_io out_io[2];
};

/* Lets the control look for the shells of running processes: a killed shell reports nothing. */
void ssh_processes_look(struct ssh_host *host);

/* The number of channels that it waits for. */
size_t ssh_process_wants(const struct ssh_process *process);
void ssh_process_assign(struct ssh_process *process, struct ssh_slot *slot);
/* Separates it from its channels, and closes them. */
void ssh_process_drop_slots(struct ssh_process *process);

/* Events of its slot. */
size_t ssh_process_on_bytes(struct ssh_process *process, enum ssh_stream stream, struct span bytes);
void ssh_process_on_eof(struct ssh_process *process, enum ssh_stream stream);
void ssh_process_on_room(struct ssh_process *process);
/* The server had no room for its channel: the process waits again. */
void ssh_process_on_refused(struct ssh_process *process);
void ssh_process_on_failed(struct ssh_process *process, const struct error *err);
void ssh_process_on_closed(struct ssh_process *process, const struct ssh_channel_end *end);
/* The channel of its stderr; NULL: the server ran the command. */
void ssh_process_on_stderr_refused(struct ssh_process *process, const struct error *err);
void ssh_process_on_stderr_closed(struct ssh_process *process, const struct ssh_channel_end *end);
void ssh_process_on_lost(struct ssh_process *process, const struct error *err);

/* An event of the control: "exited code 3". */
void ssh_process_on_event(struct ssh_host *host, unsigned id, const char *event);

/* Events of the control about suspending (suspend.c). */
void ssh_process_on_frozen(struct ssh_process *process, const char *rest);
void ssh_process_on_obeyed(struct ssh_process *process, const char *rest);
void ssh_process_on_unfrozen(struct ssh_process *process, const char *rest);

/* Its descriptors (exec_pump.c). */
bool ssh_process_connect(
	struct ssh_process *process, const struct exec_spec *spec, struct error *err);
void ssh_process_read_stdin(struct ssh_process *process);
void ssh_process_close_fds(struct ssh_process *process);
/* Closes the pipes of its main channel; stderr's stays open if that has its own channel. */
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
	char token[SSH_TOKEN_SIZE]; // names the run
	struct list links;          // struct ssh_link
	struct list processes;      // struct ssh_process
	struct list dead;           // struct ssh_process; freed when the host is left
	struct ssh_control control;
	struct ssh_carrier carrier; // of the first connection
	struct remote *remote;      // the runner; NULL: the control does its work
	char *no_runner;            // why there is no runner, although one is wanted; or NULL
	struct ssh_login login;
	struct ssh_host_facts facts;
	char **texts;             // the texts of facts
	char **environment;       // facts.environment
	char **agent_environment; // facts.agent_environment
	struct login_env login_env;
	ev_timer warm; // until we open a channel for the next process
	struct ssh_reattach reattach;
	struct ssh_noting *noting; // owned; NULL: no note is kept of this run
	bool awaits_note;          // everything else is ready
	struct error no_link;      // why we could not make another connection
	unsigned last_id;
	int depth;
	bool is_ready;
	bool is_over; // it failed, or was closed
	bool is_closed;
};

void ssh_host_enter(struct ssh_host *host);
void ssh_host_leave(struct ssh_host *host);
void ssh_host_progress(struct ssh_host *host, const char *text);
void ssh_host_become_ready(struct ssh_host *host);

/* Once its folder there is known, writes the note of this run. The host is not ready before. */
void ssh_host_note_run(struct ssh_host *host);

/* Gives the run a new random name, before any of its processes starts. */
void ssh_host_name_run(struct ssh_host *host);

/* Whether a process can be started there. */
bool ssh_host_is_up(const struct ssh_host *host);

/* Tells everybody that the host is lost; then the caller returns. */
void ssh_host_fail(struct ssh_host *host, const struct error *err);

const char *ssh_host_name(const struct ssh_host *host);
const char *ssh_host_sh(const struct ssh_host *host);

#endif
