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

/*
 * A provider knows how to get a sandbox and how to do things inside it. It
 * knows nothing of ACP. This header is for those who use one; those who write
 * one read providers/impl.h as well.
 *
 * Everything is asynchronous. An operation never raises its listener before it
 * returns; it raises exactly one outcome, on the loop thread - or none, once
 * its handle was closed. Paths are runtime paths: absolute, as they are inside
 * the sandbox.
 */
struct provider;
struct registry;
struct sandbox;
struct sandbox_request;

/* What every provider may use; borrowed, outlives the providers. */
struct provider_context {
	struct ev_loop *loop;
	struct spawner *spawner;
	struct pool *pool;
	const char *const *environment;  // the broker's own, NULL-terminated
	const char *state_folder;        // for what outlives the broker; may be missing or NULL
	const struct registry *registry; // what they are in; or NULL
};

/* ---- the registry ---- */

struct registry *registry_create(void);
void registry_destroy(struct registry *registry); // destroys the providers

/*
 * Takes the provider over; it replaces one of the same name. "provider is nil", "provider has no
 * name" (ERROR_CONFIG); ERROR_LIMIT for more than REGISTRY_MAX.
 */
enum { REGISTRY_MAX = 8 };
bool registry_add(
	struct registry *registry, struct provider *provider, struct error *err) ATTR_NODISCARD;

/* The one of this name, as `backend = NAME` has it. "provider not registered" (ERROR_CONFIG). */
struct provider *registry_get(
	const struct registry *registry, const char *name, struct error *err) ATTR_NODISCARD;

/* In the order in which they were added; NULL after the last. */
struct provider *registry_at(const struct registry *registry, size_t index);

/* Whether one of them takes a secret from the variable of this name, where a profile names none. */
bool registry_has_secret(const struct registry *registry, struct span name);

/* The provider of a profile without `backend`. */
#define PROVIDER_DEFAULT "local"

/* Static text. */
const char *provider_name(const struct provider *provider);

/* The keys a profile of this provider may have besides the common ones. */
const struct setting_key *provider_keys(const struct provider *provider, size_t *out_count);

/* The reasons of errors that it has besides the common ones. */
const struct error_reason *provider_reasons(const struct provider *provider, size_t *out_count);

/* Its reason of this name, or NULL. */
const struct error_reason *provider_reason_find(const struct provider *provider, const char *name);

/* Whether what it starts are processes of this machine. */
bool provider_runs_here(const struct provider *provider);

/* sandbox_capabilities.isolated of a sandbox with these settings, as far as they are checked. */
bool provider_is_isolated(const struct provider *provider, const struct settings *settings);

void provider_destroy(struct provider *provider);

/*
 * Says what a profile's keys mean here and now, without touching the sandbox: for `acp-broker
 * check`. Raises facts, then done once, not before it returns; it cannot be given up before. The
 * settings are borrowed until then. Not every provider can.
 */
struct provider_describe_listener {
	void (*on_fact)(void *data, const char *name, const char *value);
	void (*on_done)(void *data, const struct error *err); // NULL: all was said
};
bool provider_can_describe(const struct provider *provider);
bool provider_describe(struct provider *provider, const struct settings *settings,
	const struct provider_describe_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

/*
 * What a profile of these checked settings asks for and this provider cannot enforce, as
 * sandbox_warnings will have it; ERROR_CONFIG where that is `required`. NULL-terminated, the
 * caller's: words_free. Blocks for some milliseconds.
 */
char **provider_warnings(const struct provider *provider, const struct settings *settings,
	struct error *err) ATTR_NODISCARD;

/* ---- where an agent can work, for somebody who begins: acp-broker init ---- */

/* One way to use a provider, and the settings of a profile that stand for it. All static text. */
struct provider_place {
	const char *name;  // `--place NAME`; no other provider's
	const char *text;  // for people: what it is
	const char *key;   // of the profile; NULL: none but `backend`
	const char *value; // of that key
	/* Only a sandbox that gets ready shows whether there is such a place: it must say that it
	 * is confined. Where it warns of nothing, `strict` is the better value. */
	bool is_confined;
	const char *strict;
	const char *asked; // a key whose value the user chooses; NULL: there is none
	const char *
		image; // of a new machine, which has no agent before the profile's `setup`; or NULL
};

/* In the order in which they are offered. */
const struct provider_place *provider_places(const struct provider *provider, size_t *out_count);

/*
 * Whether this machine has what the place needs: ERROR_UNAVAILABLE says what is missing. Connects
 * to nobody; may read a file. *out_choices are the values for `asked` that this machine knows,
 * NULL-terminated, the caller's: words_free.
 */
bool provider_look_at_place(struct provider *provider, const struct provider_place *place,
	char ***out_choices, struct error *err) ATTR_NODISCARD;

/* ---- what a provider has made elsewhere: acp-broker sandboxes ---- */

/* One that bears this user's labels, whichever broker made it. The texts are borrowed. */
struct inventory_entry {
	const char *name;      // what orders name it by; equals sandbox_reference
	const char *id;        // the platform's
	const char *state;     // in the platform's words
	const char *profile;   // "" where the label is missing
	const char *workspace; // the local directory, as far as labels and files here tell; or ""
	const char *created;   // RFC 3339; or ""
	const char *why;       // what is wrong with it; or ""
	int cpu, memory_gib, disk_gib; // 0: not known
	bool is_in_use;                // a living broker of this machine has it
};

enum inventory_act {
	INVENTORY_LIST,
	INVENTORY_STOP,
	INVENTORY_DELETE,
	INVENTORY_DISCARD, // deletes; where it is not to be reached from here, it is forgotten
};

struct inventory_listener {
	void (*on_entry)(void *data, const struct inventory_entry *entry); // before on_done
	void (*on_done)(void *data, const struct error *err);              // NULL: all was done
};

/*
 * Lists what there is, or stops or deletes the one of that name (NULL for a list), of the
 * profile whose settings these are: ERROR_NOT_FOUND where there is none of it, ERROR_DENIED where
 * a living broker uses it. Raises done once, not before it returns; the settings are borrowed until
 * then. Whether what is deleted was collected is the caller's to know.
 */
bool provider_has_inventory(const struct provider *provider);
bool provider_inventory(struct provider *provider, const struct sandbox_request *request,
	enum inventory_act act, const char *name, const struct inventory_listener *listener,
	void *data, struct error *err) ATTR_NODISCARD;

/*
 * Removes what brokers of this machine that are gone have made for this profile and nobody has
 * worked in; `kept` names (sandbox_reference) what records still need, NULL-terminated. What it
 * does is in the log. Raises done once, not before it returns, unless it is cancelled before; the
 * handle is gone then. Profile and settings are borrowed until it returns.
 */
struct provider_sweep;
typedef void provider_swept(void *data, const struct error *err);
bool provider_can_sweep(const struct provider *provider);
struct provider_sweep *provider_sweep(struct provider *provider,
	const struct sandbox_request *request, const char *const *kept, provider_swept *done,
	void *data, struct error *err) ATTR_NODISCARD;
void provider_sweep_cancel(struct provider_sweep *sweep); // NULL is fine

/* ---- a sandbox's life ---- */

struct sandbox_request {
	const char *profile;             // its name
	const struct settings *settings; // the profile's keys; until it is ready, or closed
	/* Here, absolute: the workspace it is wanted for first, as far as is known; may be NULL. A
	 * provider whose sandboxes belong to one workspace tells them apart by it. */
	const char *directory;
	/* sandbox_reference of the very sandbox that is wanted: where that is gone,
	 * SANDBOX_NOT_FOUND, and none is made. NULL: whichever belongs to this request. */
	const char *reference;
	/* sandbox_instance of it: where the reference leads to another by now, SANDBOX_NOT_FOUND
	 * before that is started. NULL: not known. */
	const char *instance;
	/* Whether the user's tools run commands from a file below a root (the key guard-paths), or
	 * from what would be found through a link of that path. Any thread, until the sandbox is
	 * closed; `guard` NULL: of none. */
	bool (*is_guarded)(const void *guard, const char *root, const char *path, bool is_link);
	const void *guard;
	/* How long what others do to it may be waited for; 0: as long as it takes. */
	int prepare_timeout_ms;
};

/*
 * What this sandbox can do, measured here, told in _meta.broker. Valid once it
 * is ready.
 */
struct sandbox_capabilities {
	bool isolated;        // another machine, container or copy: its files are separate ones
	bool confined;        // what runs in it cannot reach this machine's files and processes
	bool many_roots;      // sandbox_add_root works more than once
	bool maps_paths;      // runtime roots differ from local ones
	bool shares_loopback; // its 127.0.0.1 and ::1 are those of this machine
	bool is_near;         // it runs on this machine
	bool can_suspend;     // sandbox_suspend works
	size_t max_processes; // 0: no limit known
};

/*
 * A connection of a program in a sandbox about which the sandbox has decided. All texts are
 * borrowed.
 */
struct sandbox_connection {
	const char *target;      // "example.com:443", "192.0.2.1:22", "[2001:db8::1]:22"
	const char *way;         // how the program asked for it: "socket", "connect", "socks"
	const char *rule;        // the line of the profile that decided, "allow-host = example.com"
	bool is_allowed;         //
	const char *result;      // "connected", "not-found", "forbidden", "unreachable"; or NULL
	const char *server_name; // in its TLS, where that is another name; or NULL
	size_t left_out;         // connections that were not said before it: there were too many
};

struct sandbox_listener {
	void (*on_progress)(void *data, const char *text); // may be NULL
	void (*on_ready)(void *data);
	/* The sandbox is of no use any more; close it. Also raised after ready, when
	 * it is lost (link down, deleted by others). */
	void (*on_failed)(void *data, const struct error *err);
	/* Something that the user should know, once it is ready; may be NULL. */
	void (*on_notice)(void *data, const char *text);
	/* For the audit log; may be NULL. */
	void (*on_connection)(void *data, const struct sandbox_connection *connection);
};

/* Gets a sandbox ready: connect, create or reattach. */
struct sandbox *sandbox_prepare(struct provider *provider, const struct sandbox_request *request,
	const struct sandbox_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

const struct sandbox_capabilities *sandbox_capabilities(const struct sandbox *sandbox);

/*
 * Where a process starts before any root is known, and the environment it gets
 * when the caller has no other wish. Borrowed; valid once ready.
 */
const char *sandbox_home(const struct sandbox *sandbox);
const char *const *sandbox_environment(const struct sandbox *sandbox);

/*
 * What the agent's environment begins with, and that of what is set up for it: that of the
 * sandbox, and what the profile hands on to the agent alone (login-env). Borrowed; valid once
 * ready.
 */
const char *const *sandbox_agent_environment(const struct sandbox *sandbox);

/*
 * Where the agent starts: the folder that the workspace it is wanted for
 * (sandbox_request.directory) has or gets in the sandbox; where there is none yet, sandbox_home.
 */
const char *sandbox_start(const struct sandbox *sandbox);

/*
 * One line by which the same sandbox is found again, also by another broker: for the record. Not
 * a secret. NULL where the profile and the directory say it all. Borrowed; valid once ready.
 */
const char *sandbox_reference(const struct sandbox *sandbox);

/*
 * What tells this very sandbox from a later one that is found by the same reference: for the
 * record, of the same letters as that. NULL where the reference says it all. Borrowed; valid once
 * ready.
 */
const char *sandbox_instance(const struct sandbox *sandbox);

/* Whether these two are the same, or neither is there. */
bool sandbox_is_reference(const char *one, const char *other);

/* Whether what had these two is one sandbox; what has none is taken for the same. */
bool sandbox_is_instance(const char *one, const char *other);

/*
 * What the profile asks for and this sandbox cannot enforce, a sentence each,
 * NULL-terminated; never NULL. Borrowed; valid once ready. What is `required` is an error instead.
 */
const char *const *sandbox_warnings(const struct sandbox *sandbox);

/*
 * "KEY = VALUE" of the profile, where it limits that (struct process_status.limit); NULL: it does
 * not. Borrowed; valid once ready.
 */
const char *sandbox_limit(const struct sandbox *sandbox, enum limit_kind kind);

/* What all that was started with exec_spec.is_limited uses; false where nobody counts that. */
bool sandbox_usage(const struct sandbox *sandbox, struct group_usage *out);

/*
 * At the end of a turn. Where the agent works in the workspace itself and is confined: looks for
 * what has come there since, from which the user's tools run commands. on_notice tells it, and what
 * there was to tell before there was a session. May do nothing.
 */
void sandbox_look(struct sandbox *sandbox);

/*
 * Whether a confined agent may not change such a file in the workspace itself, by its path without
 * links. Then nobody may write it for the agent either.
 */
bool sandbox_is_pinned(const struct sandbox *sandbox, const char *path);

/* Something that happened on the way here, for the user; owned by the caller. NULL: no news. */
char *sandbox_take_remark(struct sandbox *sandbox);

/* What a program there said that explains the last on_failed; empty: nothing. Borrowed. */
struct span sandbox_said(const struct sandbox *sandbox);

/* A finished operation: err is NULL on success. */
typedef void sandbox_done(void *data, const struct error *err);

/*
 * The caller cannot use it, ready or not: what this preparation has made is removed and what it has
 * started is stopped, unless others use it; nothing else is done. No event but done follows; close
 * it then. The error names what goes on. Not after sandbox_rest or sandbox_destroy.
 */
bool sandbox_can_withdraw(const struct sandbox *sandbox);
void sandbox_withdraw(struct sandbox *sandbox, sandbox_done *done, void *data);

/*
 * A directory for a workspace. It is among the roots before done is raised; one
 * that is there already, or is being added, is no error and not added twice. ERROR_NOT_FOUND where
 * there is no such directory, ERROR_UNAVAILABLE where the sandbox cannot take
 * another. A root borrowed from the list is valid until the next is added, its
 * texts until the sandbox is closed.
 */
struct sandbox_root {
	const char *local;   // absolute, as the caller wrote it
	const char *runtime; // absolute; equal to local where paths are not mapped
	/* So many bytes of `runtime` name a folder that has nothing but this root and the way to
	 * it, so that a repository can lie there of which the root is a part. 0: `runtime` itself.
	 */
	size_t top;
};
void sandbox_add_root(
	struct sandbox *sandbox, const char *local_root, sandbox_done *done, void *data);
size_t sandbox_root_count(const struct sandbox *sandbox);
const struct sandbox_root *sandbox_root_at(const struct sandbox *sandbox, size_t index);

/*
 * Folders that earlier sandboxes of the profile had as roots, and their names here: an agent
 * remembers sessions in them, but nothing in them is served. Valid once ready.
 */
size_t sandbox_known_count(const struct sandbox *sandbox);
const struct sandbox_root *sandbox_known_at(const struct sandbox *sandbox, size_t index);

/*
 * Frees the handle and ends what it started; raises nothing more. The sandbox
 * itself stays. File operations are cancelled and their handles gone; processes
 * are killed, and their handles remain, silent, until exec_destroy. NULL is fine.
 */
void sandbox_close(struct sandbox *sandbox);

/*
 * It is not needed for now (persistence reuse and archive): everything in it was collected, as the
 * receipt says, and it may stop, or be put aside, unless another broker uses it. It is of no use
 * after that; close it. Where a sandbox costs nothing while it waits (sandbox_can_rest says no),
 * this does nothing. ERROR_DENIED without a receipt.
 */
bool sandbox_can_rest(const struct sandbox *sandbox);
void sandbox_rest(struct sandbox *sandbox, const char *receipt, sandbox_done *done, void *data);

/*
 * Ends the sandbox for good. Refused (ERROR_DENIED) without a collect receipt,
 * unless `discard` is set; `receipt` is the text of the receipt or NULL.
 */
void sandbox_destroy(
	struct sandbox *sandbox, const char *receipt, bool discard, sandbox_done *done, void *data);

/*
 * Freezes what was started with exec_spec.suspends, with all that it has started: done is raised
 * once none of it makes a step any more, or with an error, and then all of it goes on. The rest -
 * files, other processes, and what is started from then on - works as ever, where a sandbox is not
 * suspended as a whole. Killing what is frozen works; signals that it catches are seen once it goes
 * on. Again is no error. ERROR_UNAVAILABLE with reason PAUSE_UNSUPPORTED without can_suspend. While
 * one of the two is under way a suspend is refused with PAUSE_INTERRUPTED. A resume takes a suspend
 * back, which is told PAUSE_INTERRUPTED, and takes the place of a resume, which is told the same.
 */
void sandbox_suspend(struct sandbox *sandbox, sandbox_done *done, void *data);

/* Lets all of it go on; done may be NULL. What runs is no error. */
void sandbox_resume(struct sandbox *sandbox, sandbox_done *done, void *data);

/*
 * Of the last suspend that succeeded: why some of it was stopped by signals, which a process can
 * find out and SIGCONT undoes. NULL where a cgroup, or the platform, holds all of it. Until the
 * next suspend.
 */
const char *sandbox_suspended_by_signals(const struct sandbox *sandbox);

/* ---- processes ---- */

struct exec_spec {
	const char *const *argv; // NULL-terminated
	/* NULL-terminated NAME=value, complete - but for ACP_BROKER_RUN, which is added where that
	 * is how a sandbox knows its processes. NULL: sandbox_environment. */
	const char *const *env;
	const char *cwd; // NULL: sandbox_home
	/* Bytes of cwd that are a root's name. What follows them was resolved: a link in it by now
	 * is a SECURITY_VIOLATION. 0: all of it is taken as it is. */
	size_t cwd_root;
	bool want_stdin;   // else /dev/null
	bool merge_stderr; // stderr goes where stdout goes, interleaved as written
	bool suspends;     // sandbox_suspend freezes it: the agent's, not the broker's own
	bool is_limited;   // the profile's limits hold for it: the agent's, not the broker's own
	bool foreground;   // the caller's own stdin, stdout, stderr; no fds are handed over
};

/* Order as in base/process.h: started | failed, exited, emptied. */
struct exec_listener {
	void (*on_started)(void *data); // may be NULL
	void (*on_failed)(void *data, const struct error *err);
	void (*on_exited)(void *data, struct process_status status);
	/* Nothing that the process started runs any more. May be NULL. */
	void (*on_emptied)(void *data);
	/* The link was lost: whether and how it ended, or whether it has started if that was not
	 * told, is not known. No event follows. */
	void (*on_lost)(void *data, const struct error *err);
	/* As that of base/process.h; may be NULL. */
	void (*on_limit)(void *data, enum limit_kind limit);
};

struct exec;

/*
 * The one way to start anything in the sandbox. The descriptors are ordinary,
 * non-blocking and CLOEXEC, and are there when this returns; each is the
 * caller's once it was taken. Bytes written before `started` are kept for the
 * process. Closing stdin is the half-close; output can be read after `exited`
 * until its end.
 */
struct exec *sandbox_exec(struct sandbox *sandbox, const struct exec_spec *spec,
	const struct exec_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

int exec_take_stdin(struct exec *exec); // -1 without want_stdin
int exec_take_stdout(struct exec *exec);
int exec_take_stderr(struct exec *exec); // -1 with merge_stderr

/* Its number on this machine; 0 where it does not run here, or is not known. */
pid_t exec_process(const struct exec *exec);

void exec_signal_group(struct exec *exec, int signal);
void exec_kill_tree(struct exec *exec);

/* Kills the tree, frees, raises nothing more. NULL is fine. */
void exec_destroy(struct exec *exec);

/* ---- files, confined to the roots ---- */

enum { FILE_PATH_MAX = 4096 };

struct file_op;

/* A finished read. On success `content` is the whole file, the callee's to move away. */
typedef void file_read_done(void *data, struct buf *content, const struct error *err);
typedef void file_stat_done(void *data, const struct stat *status, const struct error *err);
typedef void file_resolve_done(void *data, const char *path, const struct error *err);

/*
 * ERROR_NOT_FOUND; ERROR_DENIED with reason SECURITY_VIOLATION for a path out of
 * the roots by name or by link, and for what is no regular file; ERROR_LIMIT over
 * max_bytes. Never waits for a FIFO.
 */
struct file_op *sandbox_read_file(struct sandbox *sandbox, const char *path, size_t max_bytes,
	file_read_done *done, void *data);

/*
 * Replaces or makes a file atomically (temporary file, fsync, rename, fsync of
 * the folder); parents are made; permission bits, and where the sandbox has them
 * access lists and attributes, of an existing file stay. A hard link of it keeps
 * the old content: what replaces a file whole cannot be the same file. Content
 * is copied. Writes of one path are done in the order of the calls.
 */
struct file_op *sandbox_write_file(struct sandbox *sandbox, const char *path, struct span content,
	sandbox_done *done, void *data);

/*
 * The same of a path that sandbox_resolve_path gave, and of that file alone:
 * ERROR_DENIED with reason SECURITY_VIOLATION where a name below its root is a
 * link by now, wherever it leads. So what was decided on is what is served,
 * whatever has been put in its place meanwhile.
 */
struct file_op *sandbox_read_resolved(struct sandbox *sandbox, const char *path, size_t max_bytes,
	file_read_done *done, void *data);
struct file_op *sandbox_write_resolved(struct sandbox *sandbox, const char *path,
	struct span content, sandbox_done *done, void *data);

struct file_op *sandbox_stat_file(struct sandbox *sandbox, const char *path, file_stat_done *done,
	void *data); // follows links inside the roots

/*
 * The path with every link and dot resolved, inside the roots; it begins with
 * the name of its root as that was given. Last parts that do not exist are
 * kept as they are.
 */
struct file_op *sandbox_resolve_path(
	struct sandbox *sandbox, const char *path, file_resolve_done *done, void *data);

/* No outcome is raised any more; a write may still happen. */
void file_op_cancel(struct file_op *op);

#endif
