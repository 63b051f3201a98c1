/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_PROVIDER_H
#define PROVIDERS_PROVIDER_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limit_group.h"
#include "base/pool.h"
#include "base/process.h"
#include "base/settings.h"
#include "base/shared.h"

/*
 * A provider knows how to get a sandbox and how to work in it. It knows nothing of ACP. This header
 * is for callers; if you write a provider, read providers/impl.h too.
 *
 * Everything is asynchronous. An operation raises no event before it returns. It raises exactly one
 * outcome, on the loop thread; none if its handle was closed first. Paths are runtime paths:
 * absolute, as programs in the sandbox see them.
 */
struct provider;
struct registry;
struct sandbox;
struct sandbox_request;
struct heir;
struct partings;

/* What every provider may use. Borrowed; it outlives the providers. */
struct provider_context {
	struct ev_loop *loop;
	struct spawner *spawner;
	struct pool *pool;
	const char *const *environment; // the broker's own; NULL-terminated
	const char *state_folder; // for data that outlives the broker; may be NULL, and the folder
	                          // may be missing
	const struct registry *registry; // the registry that has the providers; may be NULL
	struct heir *heir;               // ends what this broker leaves elsewhere if it is killed
	                                 // (providers/heir.h); NULL: there is none
	struct partings *partings;       // closed sandboxes whose last message is under way
	                                 // (providers/parting.h); NULL: they do not wait for it
	const char *agent_socket;        // of the broker, which its agents use; NULL: none
	const char *agent_program;       // with agent_socket: the program that connects to it
	const char *const *own_files; // no agent that is kept apart may have a folder above one of
	                              // these files and links; NULL-terminated, may be NULL
};

/* ---- the registry ---- */

struct registry *registry_create(void);
void registry_destroy(struct registry *registry); // destroys the providers

/*
 * Takes over the provider, which replaces one of the same name. Fails with ERROR_CONFIG without a
 * provider ("provider is nil") or a name ("provider has no name"), and with ERROR_LIMIT beyond
 * REGISTRY_MAX.
 */
enum { REGISTRY_MAX = 8 };
bool registry_add(
	struct registry *registry, struct provider *provider, struct error *err) ATTR_NODISCARD;

/*
 * Finds the provider that `backend = NAME` means. Fails with ERROR_CONFIG ("provider not
 * registered").
 */
struct provider *registry_get(
	const struct registry *registry, const char *name, struct error *err) ATTR_NODISCARD;

/* In the order in which they were added; NULL after the last. */
struct provider *registry_at(const struct registry *registry, size_t index);

/* Whether a provider reads a secret from this variable if the profile names no other. */
bool registry_has_secret(const struct registry *registry, struct span name);

/* The provider of a profile without `backend`. */
#define PROVIDER_DEFAULT "local"

/* Static text. */
const char *provider_name(const struct provider *provider);

/* The keys that a profile of this provider may have besides the common ones. */
const struct setting_key *provider_keys(const struct provider *provider, size_t *out_count);

/* The reasons of errors that only this provider has. */
const struct error_reason *provider_reasons(const struct provider *provider, size_t *out_count);

/* The reason of this name, or NULL. */
const struct error_reason *provider_reason_find(const struct provider *provider, const char *name);

/* Whether processes may go on there without their broker: sandbox_request.only_ends_left. */
bool provider_keeps_runs(const struct provider *provider);

/* Whether it starts processes of this machine. */
bool provider_runs_here(const struct provider *provider);

/* What sandbox_capabilities.isolated will say for these checked settings. */
bool provider_is_isolated(const struct provider *provider, const struct settings *settings);

/* Whether each session with these settings gets a sandbox that no other session has. */
bool provider_is_per_session(const struct provider *provider, const struct settings *settings);

void provider_destroy(struct provider *provider);

/*
 * For `acp-broker check`: reports what a profile's keys mean here and now, without touching the
 * sandbox. Raises facts, then done once, never before it returns; it cannot be cancelled. The
 * settings are borrowed until done. Optional for a provider.
 */
struct provider_describe_listener {
	void (*on_fact)(void *data, const char *name, const char *value);
	void (*on_done)(void *data, const struct error *err); // NULL: success
};
bool provider_can_describe(const struct provider *provider);
bool provider_describe(struct provider *provider, const struct settings *settings,
	const struct provider_describe_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

/*
 * Returns what a profile with these checked settings asks for and this provider cannot enforce;
 * sandbox_warnings will say the same. Fails with ERROR_CONFIG if the profile says `required`.
 * NULL-terminated; the caller frees it with words_free. Blocks for some milliseconds.
 */
char **provider_warnings(const struct provider *provider, const struct settings *settings,
	struct error *err) ATTR_NODISCARD;

/* ---- places where an agent can work, for newcomers: acp-broker init ---- */

/* One way to use a provider, and the profile's settings for it. All texts are static. */
struct provider_place {
	const char *name;                  // `--place NAME`; unique among all providers
	const char *text;                  // for people: describes it
	const char *key;                   // the profile's key; NULL: only `backend`
	const char *value;                 // the value of that key
	const char *more_key, *more_value; // another key and its value; or NULL
	/*
	 * The place is offered only if a trial sandbox becomes ready and says that it is confined.
	 * If that sandbox gives no warnings, `strict` is the better value.
	 */
	bool is_confined;
	const char *strict;
	const char *asked; // the key whose value the user chooses; NULL: none
	const char *image; // image of a new machine, where `setup` installs the agent; or NULL
};

/* The places, in the order in which init offers them. */
const struct provider_place *provider_places(const struct provider *provider, size_t *out_count);

/*
 * Checks whether this machine has what the place needs. ERROR_UNAVAILABLE says what is missing.
 * Connects to no other machine; may read a file. *out_choices are the values for `asked` that this
 * machine knows: NULL-terminated, the caller frees them with words_free.
 */
bool provider_look_at_place(struct provider *provider, const struct provider_place *place,
	char ***out_choices, struct error *err) ATTR_NODISCARD;

/* ---- sandboxes that a provider has made elsewhere: acp-broker sandboxes ---- */

/* A sandbox with this user's labels, whichever broker made it. The texts are borrowed. */
struct inventory_entry {
	const char *name;              // commands use it; equals sandbox_reference
	const char *id;                // the platform's id
	const char *state;             // as the platform says it
	const char *profile;           // "": the label is missing
	const char *workspace;         // the local folder, if labels or files here tell it; or ""
	const char *created;           // RFC 3339; or ""
	const char *why;               // what is wrong with the sandbox; or ""
	int cpu, memory_gib, disk_gib; // 0: unknown
	bool is_in_use;                // by a broker that runs on this machine
};

enum inventory_act {
	INVENTORY_LIST,
	INVENTORY_STOP,
	INVENTORY_DELETE,
	INVENTORY_DISCARD, // deletes it, or forgets it if this machine cannot reach it
};

struct inventory_listener {
	void (*on_entry)(void *data, const struct inventory_entry *entry); // before on_done
	void (*on_done)(void *data, const struct error *err);              // NULL: success
};

/*
 * Lists the sandboxes of the profile with these settings (name is NULL), or stops or deletes the
 * one with that name. Fails with ERROR_NOT_FOUND if the profile has no such sandbox, and with
 * ERROR_DENIED while a broker uses it. Raises done once, never before it returns; the settings are
 * borrowed until then. The caller must know whether a sandbox that it deletes was collected.
 */
bool provider_has_inventory(const struct provider *provider);
bool provider_inventory(struct provider *provider, const struct sandbox_request *request,
	enum inventory_act act, const char *name, const struct inventory_listener *listener,
	void *data, struct error *err) ATTR_NODISCARD;

/*
 * Removes sandboxes of this profile that brokers of this machine made before they ended, and in
 * which nobody has worked. `kept` lists the sandboxes (sandbox_reference) that records still need;
 * NULL-terminated. Logs what it does. Raises done once, never before it returns, unless it is
 * cancelled first; then the handle is freed. Profile and settings are borrowed until it returns.
 */
struct provider_sweep;
typedef void provider_swept(void *data, const struct error *err);
bool provider_can_sweep(const struct provider *provider);
struct provider_sweep *provider_sweep(struct provider *provider,
	const struct sandbox_request *request, const char *const *kept, provider_swept *done,
	void *data, struct error *err) ATTR_NODISCARD;
void provider_sweep_cancel(struct provider_sweep *sweep); // NULL is fine

/* ---- the life of a sandbox ---- */

struct sandbox_request {
	const char *profile; // the profile's name
	const struct settings
		*settings; // the profile's keys; borrowed until the sandbox is ready or closed
	/*
	 * The local workspace that needs the sandbox first, absolute; NULL if unknown. A provider
	 * with one sandbox per workspace uses it to tell its sandboxes apart.
	 */
	const char *directory;
	/*
	 * The sandbox_reference of the sandbox to use. If that sandbox is gone, prepare fails with
	 * SANDBOX_NOT_FOUND instead of making another. NULL: any sandbox that fits the request.
	 */
	const char *reference;
	/*
	 * An agent will work in the sandbox. Then, without a reference, a provider with one sandbox
	 * per session makes a new sandbox. If false, it uses the sandbox that the sessions would
	 * share otherwise.
	 */
	bool for_session;
	/*
	 * The sandbox_instance of that sandbox. If the reference now leads to another sandbox,
	 * prepare fails with SANDBOX_NOT_FOUND and does not start it. NULL: unknown.
	 */
	const char *instance;
	/*
	 * Whether the user's tools run commands from this file below a root (the key guard-paths),
	 * or from a file to which a link at this path would lead. Called on any thread, until the
	 * sandbox is closed. NULL: no file is guarded.
	 */
	bool (*is_guarded)(const void *guard, const char *root, const char *path, bool is_link);
	const void *guard;
	/*
	 * Only gets the sandbox ready to end what killed brokers have left running there, for a
	 * provider that keeps runs. If there is nothing, or nobody knows of any, it connects to
	 * nothing and fails with ERROR_NOT_FOUND. What it starts itself ends with the connection.
	 */
	bool only_ends_left;
	/* How long to wait for others who use it; 0: without limit. */
	int prepare_timeout_ms;
};

/*
 * What this sandbox can do, as measured; _meta.broker reports it. Valid once the sandbox is ready.
 */
struct sandbox_capabilities {
	bool isolated;        // another machine, container or copy, with its own files
	bool confined;        // programs in it cannot reach this machine's files and processes
	bool many_roots;      // sandbox_add_root works more than once
	bool maps_paths;      // runtime roots differ from local ones
	bool other_programs;  // a path outside the roots is another file than here
	bool shares_loopback; // its 127.0.0.1 and ::1 are those of this machine
	bool is_near;         // it runs on this machine
	bool can_suspend;     // sandbox_suspend works
	bool outlives;        // processes go on while the connection is lost
	bool has_terminals;   // exec_spec.terminal works, and the home there outlasts the sandbox
	size_t max_processes; // 0: no limit known
};

/*
 * A connection of a program in a sandbox that the sandbox has allowed or refused. All texts are
 * borrowed.
 */
struct sandbox_connection {
	const char *target;      // "example.com:443", "192.0.2.1:22", "[2001:db8::1]:22"
	const char *way;         // how the program asked: "socket", "connect", "socks", "request"
	const char *rule;        // the line of the profile that decided, "allow-host = example.com"
	bool is_allowed;         //
	bool is_by_user;         // the user's answer decided, not the profile
	const char *result;      // "connected", "not-found", "forbidden", "unreachable"; or NULL
	const char *server_name; // the name in its TLS handshake if it differs; or NULL
	size_t left_out; // earlier connections that were not reported because there were too many
};

/*
 * A program in a sandbox waits for a connection that the profile neither allows nor refuses
 * (`network = ask`). All texts are borrowed. The sandbox has not looked the name up.
 */
struct sandbox_wish {
	uint32_t id;      // of this sandbox; never 0, never used twice
	const char *host; // a name of letters, digits, "-", "_" and "."; or an address
	uint16_t port;
};

struct sandbox_listener {
	void (*on_progress)(void *data, const char *text); // may be NULL
	void (*on_ready)(void *data);
	/*
	 * The sandbox can no longer be used; close it. Also raised after ready, if the sandbox is
	 * lost (the link is down, somebody deleted it).
	 */
	void (*on_failed)(void *data, const struct error *err);
	/* Something that the user should know, once the sandbox is ready; may be NULL. */
	void (*on_notice)(void *data, const char *text);
	/*
	 * Once the sandbox is ready: the connection to it is lost, its processes go on, and the
	 * provider connects again. on_link_back or on_failed follows. `place` is the name of the
	 * other side, for people. Both or none.
	 */
	void (*on_link_lost)(void *data, const char *place, const struct error *why);
	void (*on_link_back)(void *data);
	/* For the audit log; may be NULL. */
	void (*on_connection)(void *data, const struct sandbox_connection *connection);
	/*
	 * Set all three or none; without them, the sandbox refuses every wish. Answer on_wish with
	 * sandbox_decide, here or later. After on_wish_gone the wish needs no answer, because the
	 * program has given up. on_program answers sandbox_look_for_program with the command line
	 * of the process that has the connection, or "". The process can forge its command line.
	 */
	void (*on_wish)(void *data, const struct sandbox_wish *wish);
	void (*on_wish_gone)(void *data, uint32_t id);
	void (*on_program)(void *data, uint32_t id, const char *program);
};

/* Gets a sandbox ready: connects to it, creates it, or reattaches. */
struct sandbox *sandbox_prepare(struct provider *provider, const struct sandbox_request *request,
	const struct sandbox_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

const struct sandbox_capabilities *sandbox_capabilities(const struct sandbox *sandbox);

/* Without has_terminals: why not, for people, if the provider has a reason; otherwise NULL. */
const char *sandbox_no_terminals(const struct sandbox *sandbox);

/*
 * The folder where a process starts before any root is known. sandbox_environment is the
 * environment of a process if the caller gives none. Borrowed; valid once ready.
 */
const char *sandbox_home(const struct sandbox *sandbox);
const char *const *sandbox_environment(const struct sandbox *sandbox);

/*
 * The base environment of the agent and of its setup: the sandbox's environment, and the variables
 * that the profile passes only to the agent (login-env). Borrowed; valid once ready.
 */
const char *const *sandbox_agent_environment(const struct sandbox *sandbox);

/*
 * Where the agent starts: the folder in the sandbox that belongs to the first workspace
 * (sandbox_request.directory), or sandbox_home if there is none yet.
 */
const char *sandbox_start(const struct sandbox *sandbox);

/*
 * One line by which any broker finds the same sandbox again; the record keeps it. Not a secret.
 * NULL if profile and folder suffice. Borrowed; valid once ready.
 */
const char *sandbox_reference(const struct sandbox *sandbox);

/*
 * Tells this sandbox from a later one with the same reference; the record keeps it, and its
 * characters are those of a reference. NULL if the reference suffices. Borrowed; valid once ready.
 */
const char *sandbox_instance(const struct sandbox *sandbox);

/*
 * Makes this handle stand for the sandbox of the reference, in which the session that is about to
 * begin has worked before; that sandbox may no longer exist. False if that is impossible: this
 * sandbox has a root or belongs to more than one session, or the reference is another provider's.
 * Does not block for long.
 */
bool sandbox_take_over(struct sandbox *sandbox, const char *reference) ATTR_NODISCARD;

/* Whether both are equal, or both NULL. */
bool sandbox_is_reference(const char *one, const char *other);

/* Whether both belong to one sandbox. A missing instance equals every other. */
bool sandbox_is_instance(const char *one, const char *other);

/*
 * What the profile asks for and this sandbox cannot enforce: one sentence each, NULL-terminated,
 * never NULL. Borrowed; valid once ready. For a key that says `required`, prepare fails instead.
 */
const char *const *sandbox_warnings(const struct sandbox *sandbox);

/*
 * The keys that its programs can use but not read, each as "NAME for https://HOST";
 * NULL-terminated. NULL: none. Borrowed; valid once ready.
 */
const char *const *sandbox_keys(const struct sandbox *sandbox);

/*
 * The profile's "KEY = VALUE" for this limit (struct process_status.limit); NULL: it sets no limit.
 * Borrowed; valid once ready.
 */
const char *sandbox_limit(const struct sandbox *sandbox, enum limit_kind kind);

/*
 * Whether the processes go on without the connection: "link-grace = 1h", or "no, because …". NULL:
 * there is no connection. Borrowed; valid once ready.
 */
const char *sandbox_outlives(const struct sandbox *sandbox);

/*
 * Once ready: whether a turn is open. With `outlives`, the processes then go on longer without the
 * connection.
 */
void sandbox_note_turn(struct sandbox *sandbox, bool is_open);

/* With `outlives`: closes the connection, as if it was lost, and raises on_link_lost at once. */
void sandbox_drop_link(struct sandbox *sandbox);

/* Between on_link_lost and on_link_back. */
bool sandbox_is_away(const struct sandbox *sandbox);

/* How long the connection was lost, all losses together, until now. */
long long sandbox_away_ms(const struct sandbox *sandbox);

/*
 * For a deadline of something that happens in the sandbox: the time stands still while the
 * connection is lost. Call this when the timer expires. True: it goes on, for as long as the
 * connection was lost. `counted_ms` must be sandbox_away_ms from the start of the timer.
 */
bool sandbox_extend_timer(
	const struct sandbox *sandbox, ev_timer *timer, long long *counted_ms) ATTR_NODISCARD;

/*
 * Opens port *here of this machine's loopback, whose connections go to port `inside` of the
 * sandbox's loopback. 0: any free port, then *here is set. It is open until sandbox_unforward, or
 * until the sandbox fails or is closed. Once ready. Fails with FORWARD_UNSUPPORTED, or with
 * FORWARD_TAKEN if another program has the port.
 */
bool sandbox_forward(
	struct sandbox *sandbox, uint16_t *here, uint16_t inside, struct error *err) ATTR_NODISCARD;

/*
 * Whether sandbox_forward can work there; the rest depends on the port. Once ready.
 */
bool sandbox_can_forward(const struct sandbox *sandbox);

/*
 * Like sandbox_forward, from a port to the same port in the sandbox, for one visit (copied). The
 * caller must close the port.
 */
struct forward_visit;
bool sandbox_forward_visit(struct sandbox *sandbox, uint16_t port,
	const struct forward_visit *visit, struct error *err) ATTR_NODISCARD;

/*
 * Both close that port. The first resets its connections, the second lets them go on to their end.
 * Neither does anything if the port is closed already.
 */
void sandbox_unforward(struct sandbox *sandbox, uint16_t here);
void sandbox_end_visits(struct sandbox *sandbox, uint16_t here);

/* The total usage of all processes with exec_spec.is_limited. False if it is not counted. */
bool sandbox_usage(const struct sandbox *sandbox, struct group_usage *out);

/*
 * Called at the beginning and at the end of a turn. If a confined agent works in the workspace
 * itself, it looks for new files from which the user's tools run commands. on_notice then reports
 * these files, and everything that was found before there was a session. May do nothing.
 */
void sandbox_look(struct sandbox *sandbox);

/*
 * Whether a confined agent may not change such a file in the workspace itself. The path has no
 * links. The broker must not write the file for the agent either.
 */
bool sandbox_is_pinned(const struct sandbox *sandbox, const char *path);

/*
 * Answers a wish. `rule` is for the audit log. If `why` is set, the user is told of a refusal, with
 * this reason and with the line of the profile that would allow the connection; NULL: the user
 * knows already. Does nothing if the wish is gone.
 */
struct sandbox_verdict {
	bool is_allowed;
	const char *rule; // static
	const char *why;  // may be NULL
};
void sandbox_decide(struct sandbox *sandbox, uint32_t id, const struct sandbox_verdict *verdict);

/* on_program follows, maybe before this returns, unless the wish is answered or gone before. */
void sandbox_look_for_program(struct sandbox *sandbox, uint32_t id);

/*
 * Something that happened during preparation, for the user; the caller frees it. NULL: nothing new.
 */
char *sandbox_take_remark(struct sandbox *sandbox);

/* A program's own words that explain the last on_failed; empty: none. Borrowed. */
struct span sandbox_said(const struct sandbox *sandbox);

/* A finished operation: err is NULL on success. */
typedef void sandbox_done(void *data, const struct error *err);

/*
 * Undoes a preparation whose sandbox the caller cannot use, whether it is ready or not: removes
 * everything that it made, and stops everything that it started, unless others use it. Raises only
 * done; then close the sandbox. The error says what is left. Do not call it after sandbox_rest or
 * sandbox_destroy.
 */
bool sandbox_can_withdraw(const struct sandbox *sandbox);
void sandbox_withdraw(struct sandbox *sandbox, sandbox_done *done, void *data);

/*
 * Adds a folder for a workspace. The list of roots has it before done is raised. Adding a root
 * again, even at the same time, succeeds and changes nothing. Fails with ERROR_NOT_FOUND if the
 * folder does not exist, and with ERROR_UNAVAILABLE if the sandbox cannot take another. A root
 * borrowed from the list is valid until the next is added, its texts until the sandbox is closed.
 */
struct sandbox_root {
	const char *local;   // absolute, as the caller wrote it
	const char *runtime; // absolute; equal to local if paths are not mapped
	/*
	 * This many bytes at the beginning of `runtime` name a folder that contains only this root
	 * and the folders on the way to it. A repository that includes the root can lie there. 0:
	 * `runtime` itself.
	 */
	size_t top;
};
void sandbox_add_root(
	struct sandbox *sandbox, const char *local_root, sandbox_done *done, void *data);
size_t sandbox_root_count(const struct sandbox *sandbox);
const struct sandbox_root *sandbox_root_at(const struct sandbox *sandbox, size_t index);

/*
 * Lines that a file of the workspace wants to have run in the sandbox, once for each sandbox,
 * before the first session in that workspace. Whoever wrote the file may be hostile: the lines get
 * nothing that is not there already, such as the profile's secrets. Borrowed.
 */
struct sandbox_setup {
	const char *source;       // the file, for people
	const char *directory;    // the root for which it is
	const char *const *names; // of the lines, for people; NULL-terminated
	const char *const *lines; // of sh; as many
};
const struct sandbox_setup *sandbox_setup(
	const struct sandbox *sandbox); // valid once ready; NULL: none

/* How many bytes of a resolved path (sandbox_resolve_path) name its root; 0: it is in no root. */
size_t sandbox_root_length(const struct sandbox *sandbox, const char *path);

/*
 * Folders that were roots of the profile's earlier sandboxes, with their local names. An agent may
 * remember sessions in them, but nothing in them is served. Valid once ready.
 */
size_t sandbox_known_count(const struct sandbox *sandbox);
const struct sandbox_root *sandbox_known_at(const struct sandbox *sandbox, size_t index);

/*
 * Frees the handle and ends what it started; raises nothing more. Where something would outlive the
 * lost connection, the order to end must arrive: the broker's own end waits for that, but at most
 * PARTING_MS (provider_context.partings). The sandbox itself stays. File operations are cancelled
 * and their handles freed. Processes are killed; their handles stay, without events, until
 * exec_destroy. NULL is fine.
 */
void sandbox_close(struct sandbox *sandbox);

/*
 * The sandbox is not needed for now (persistence reuse and archive), and everything in it was
 * collected, as the receipt says. It may stop or be archived unless another broker uses it. It
 * cannot be used afterwards; close it. Does nothing if a waiting sandbox costs nothing
 * (sandbox_can_rest is false). Fails with ERROR_DENIED without a receipt.
 */
bool sandbox_can_rest(const struct sandbox *sandbox);
void sandbox_rest(struct sandbox *sandbox, const char *receipt, sandbox_done *done, void *data);

/*
 * Destroys the sandbox. Fails with ERROR_DENIED without a collect receipt (its text, or NULL),
 * unless `discard` is set.
 */
void sandbox_destroy(
	struct sandbox *sandbox, const char *receipt, bool discard, sandbox_done *done, void *data);

/*
 * Freezes every process with exec_spec.suspends and all that it has started. Raises done when all
 * of them stand still; if that fails, it lets all of them run again first. Files, other processes
 * and later ones work as always, unless the platform suspends the sandbox as a whole. Frozen
 * processes can be killed; they see signals that they catch after a resume. Suspending again is no
 * error.
 *
 * Fails with ERROR_UNAVAILABLE and reason PAUSE_UNSUPPORTED without can_suspend. While a suspend or
 * a resume is under way, another suspend fails with PAUSE_INTERRUPTED. A resume takes back a
 * suspend, and replaces an earlier resume; the replaced call fails with PAUSE_INTERRUPTED.
 */
void sandbox_suspend(struct sandbox *sandbox, sandbox_done *done, void *data);

/* Lets all of them run again; done may be NULL. No error if nothing is frozen. */
void sandbox_resume(struct sandbox *sandbox, sandbox_done *done, void *data);

/*
 * Why the last successful suspend stopped some of the processes by signals, which a process can
 * notice and SIGCONT undoes. NULL if a cgroup or the platform holds all. Valid until the next
 * suspend.
 */
const char *sandbox_suspended_by_signals(const struct sandbox *sandbox);

/* ---- processes ---- */

/* In characters; 0: unknown. */
struct terminal_size {
	unsigned short rows;
	unsigned short columns;
};

struct exec_spec {
	const char *const *argv; // NULL-terminated
	/*
	 * NULL-terminated NAME=value, complete. A sandbox that finds its processes by
	 * ACP_BROKER_RUN adds that. NULL: sandbox_environment.
	 */
	const char *const *env;
	const char *cwd; // NULL: sandbox_home
	/*
	 * This many bytes at the beginning of cwd name a root. The rest is a resolved path: if it
	 * contains a link now, starting fails with SECURITY_VIOLATION. 0: cwd is used as it is.
	 */
	size_t cwd_root;
	bool want_stdin;   // otherwise stdin is /dev/null
	bool merge_stderr; // stderr goes to stdout, in the order of the writes
	bool suspends;     // sandbox_suspend freezes it: a process of the agent, not of the broker
	bool is_limited;   // the profile's limits apply: a process of the agent, not of the broker
	bool foreground;   // uses the caller's own stdin, stdout and stderr; the caller gets no
	                   // descriptors
	/*
	 * Only with has_terminals: the process gets a new terminal of this size, which controls
	 * its session. The caller's stdin leads to its keyboard, stdout comes from its screen, and
	 * there is no stderr. Needs want_stdin and merge_stderr. Borrowed until sandbox_exec
	 * returns; NULL: none.
	 */
	const struct terminal_size *terminal;
};

/* In the order of base/process.h: started or failed, exited, emptied. */
struct exec_listener {
	void (*on_started)(void *data); // may be NULL
	void (*on_failed)(void *data, const struct error *err);
	void (*on_exited)(void *data, struct process_status status);
	/* No process that it started runs any more. May be NULL. */
	void (*on_emptied)(void *data);
	/*
	 * The link was lost. Nobody knows whether and how the process ended, or whether it has
	 * started if that was not raised. No event follows.
	 */
	void (*on_lost)(void *data, const struct error *err);
	/* Like the one in base/process.h; may be NULL. */
	void (*on_limit)(void *data, enum limit_kind limit);
};

struct exec;

/*
 * The only way to start a process in the sandbox. The descriptors are non-blocking and CLOEXEC, and
 * exist when this returns; the caller owns each one that it takes. Bytes written before `started`
 * are kept for the process. Closing stdin is the half-close. Output can be read to its end after
 * `exited`.
 */
struct exec *sandbox_exec(struct sandbox *sandbox, const struct exec_spec *spec,
	const struct exec_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

int exec_take_stdin(struct exec *exec); // -1 without want_stdin
int exec_take_stdout(struct exec *exec);
int exec_take_stderr(struct exec *exec); // -1 with merge_stderr

/* Its process id on this machine; 0 if it runs elsewhere, or is unknown. */
pid_t exec_process(const struct exec *exec);

void exec_signal_group(struct exec *exec, int signal);
void exec_kill_tree(struct exec *exec);

/* Only with exec_spec.terminal. */
void exec_resize(struct exec *exec, const struct terminal_size *size);

/* Kills the process and its descendants; raises nothing more. NULL is fine. */
void exec_destroy(struct exec *exec);

/* ---- files below the roots ---- */

enum { FILE_PATH_MAX = 4096 };

/*
 * Suggests a folder for a line `allow-write = FOLDER` in the profile, after a program said that
 * this path is read-only in the sandbox. The program may lie. So it never suggests a folder where
 * the sandbox already lets programs write, a folder with files that the user's shell or git runs
 * automatically, or a folder of the broker. False: there is nothing to suggest.
 */
bool sandbox_find_write_hint(
	const struct sandbox *sandbox, const char *path, char out_folder[FILE_PATH_MAX]);

struct file_op;

/* A read has ended. On success `content` is the whole file; the callee may take it over. */
typedef void file_read_done(void *data, struct buf *content, const struct error *err);
typedef void file_stat_done(void *data, const struct stat *status, const struct error *err);
typedef void file_resolve_done(void *data, const char *path, const struct error *err);

/*
 * Fails with ERROR_NOT_FOUND; with ERROR_DENIED and reason SECURITY_VIOLATION for a path that
 * leaves the roots by name or by link, and for anything but a regular file; with ERROR_LIMIT beyond
 * max_bytes. Never waits for a FIFO.
 */
struct file_op *sandbox_read_file(struct sandbox *sandbox, const char *path, size_t max_bytes,
	file_read_done *done, void *data);

/*
 * Replaces or creates a file atomically (temporary file, fsync, rename, fsync of the folder), and
 * creates missing parents. An existing file keeps its permissions and, if the sandbox supports
 * them, access lists and extended attributes. Other hard links keep the old content, because the
 * file is replaced. The content is copied. Writes to one path happen in the order of the calls.
 */
struct file_op *sandbox_write_file(struct sandbox *sandbox, const char *path, struct span content,
	sandbox_done *done, void *data);

/*
 * The same for a path from sandbox_resolve_path. Fails with ERROR_DENIED and reason
 * SECURITY_VIOLATION if a name below its root is a link now, wherever it leads. So only the file
 * that was decided on is served, whatever has replaced it since. A write keeps a reference to the
 * content instead of a copy.
 */
struct file_op *sandbox_read_resolved(struct sandbox *sandbox, const char *path, size_t max_bytes,
	file_read_done *done, void *data);
struct file_op *sandbox_write_resolved(struct sandbox *sandbox, const char *path,
	struct shared *content, sandbox_done *done, void *data);

struct file_op *sandbox_stat_file(struct sandbox *sandbox, const char *path, file_stat_done *done,
	void *data); // follows links inside the roots

/*
 * Resolves every link and dot in the path, inside the roots. The result begins with its root's name
 * as given. Missing last parts are kept as they are.
 */
struct file_op *sandbox_resolve_path(
	struct sandbox *sandbox, const char *path, file_resolve_done *done, void *data);

/* No outcome follows; a write may still happen. */
void file_op_cancel(struct file_op *op);

#endif
