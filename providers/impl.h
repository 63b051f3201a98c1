/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_IMPL_H
#define PROVIDERS_IMPL_H

#include "base/confine.h"
#include "base/list.h"
#include "providers/forward_ports.h"
#include "providers/network.h"
#include "providers/provider.h"

/*
 * For those who write a provider. Embed struct provider, struct sandbox and struct exec by value as
 * the first members of your own structs. The wrappers in provider.c assert, set defaults, and call
 * these functions. provider.h says what each call means.
 */
struct provider_impl {
	const char *name; // `backend = NAME` in a profile, and the name in records; static text
	bool runs_here;   // provider_runs_here
	bool keeps_runs;  // provider_keeps_runs
	const struct setting_key *keys;
	size_t key_count;
	/*
	 * The error codes that only this provider has; they are not in acp/failure.c and are
	 * unique.
	 */
	const struct error_reason *reasons;
	size_t reason_count;
	/*
	 * Which network keys of a profile it enforces; for the others, sandbox_prepare warns or
	 * fails. If that depends on the profile, network_of says it instead.
	 */
	struct network_abilities network;

	/* mandatory */
	void (*destroy)(struct provider *provider);
	struct sandbox *(*prepare)(struct provider *provider, const struct sandbox_request *request,
		const struct sandbox_listener *listener, void *data, struct error *err);

	const struct provider_place *places; // none if init does not offer this provider
	size_t place_count;

	/* optional */
	/*
	 * Implements provider_look_at_place. NULL: this machine has everything that the places
	 * need. *out_choices starts as an empty list.
	 */
	bool (*look_at_place)(struct provider *provider, const struct provider_place *place,
		char ***choices, struct error *err);
	bool (*is_isolated)(const struct settings *settings);    // NULL: they always are
	bool (*is_per_session)(const struct settings *settings); // NULL: never
	struct network_abilities (*network_of)(const struct settings *settings);
	/* Adds the warnings that prepare would give, and fails if prepare would fail. Blocks. */
	bool (*check)(const struct settings *settings, char ***warnings, struct error *err);
	bool (*describe)(struct provider *provider, const struct settings *settings,
		const struct provider_describe_listener *listener, void *data, struct error *err);
	bool (*inventory)(struct provider *provider, const struct sandbox_request *request,
		enum inventory_act act, const char *name, const struct inventory_listener *listener,
		void *data, struct error *err);
	struct provider_sweep *(*sweep)(struct provider *provider,
		const struct sandbox_request *request, const char *const *kept,
		provider_swept *done, void *data, struct error *err);
	void (*sweep_cancel)(struct provider_sweep *sweep); // if there is a sweep
};

struct provider {
	const struct provider_impl *impl;
};

struct provider_sweep {
	const struct provider *provider;
};

struct sandbox_impl {
	/* mandatory */
	void (*add_root)(
		struct sandbox *sandbox, const char *local_root, sandbox_done *done, void *data);
	struct exec *(*exec)(struct sandbox *sandbox, const struct exec_spec *spec,
		const struct exec_listener *listener, void *data, struct error *err);
	struct file_op *(*read_file)(struct sandbox *sandbox, const char *path,
		enum file_links links, size_t max_bytes, file_read_done *done, void *data);
	struct file_op *(*write_file)(struct sandbox *sandbox, const char *path,
		enum file_links links, struct shared *content, sandbox_done *done, void *data);
	struct file_op *(*stat_file)(
		struct sandbox *sandbox, const char *path, file_stat_done *done, void *data);
	struct file_op *(*resolve_path)(
		struct sandbox *sandbox, const char *path, file_resolve_done *done, void *data);
	void (*file_op_cancel)(struct file_op *op);
	void (*close)(struct sandbox *sandbox);
	void (*destroy)(struct sandbox *sandbox, sandbox_done *done, void *data);

	/* optional */
	void (*rest)(struct sandbox *sandbox, sandbox_done *done, void *data);
	void (*withdraw)(struct sandbox *sandbox, sandbox_done *done, void *data);

	/* optional; both, if the sandbox has can_suspend (providers/suspension.h helps) */
	void (*suspend)(struct sandbox *sandbox, sandbox_done *done, void *data);
	void (*resume)(struct sandbox *sandbox, sandbox_done *done, void *data);
	const char *(*by_signals)(const struct sandbox *sandbox); // optional; NULL: never
	bool (*usage)(const struct sandbox *sandbox, struct group_usage *out); // optional
	/*
	 * optional, both; takes over the descriptors of forward_port_listen on success. `visit` may
	 * be NULL and is copied. `resets`: also the connections that are open.
	 */
	bool (*forward)(struct sandbox *sandbox, const struct forward_port *port,
		const int fds[FORWARD_ADDRESSES], const struct forward_visit *visit,
		struct error *err);
	void (*unforward)(struct sandbox *sandbox, uint16_t here, bool resets);
	void (*look)(struct sandbox *sandbox);                    // optional
	void (*drop_link)(struct sandbox *sandbox);               // if the sandbox has `outlives`
	void (*note_turn)(struct sandbox *sandbox, bool is_open); // optional
	bool (*take_over)(struct sandbox *sandbox, const char *reference);  // optional
	bool (*is_pinned)(const struct sandbox *sandbox, const char *path); // optional

	/* optional */
	bool (*find_write_hint)(
		const struct sandbox *sandbox, const char *path, char out_folder[FILE_PATH_MAX]);

	/* mandatory, both, if the sandbox raises on_wish */
	void (*decide)(struct sandbox *sandbox, uint32_t id, const struct sandbox_verdict *verdict);
	void (*look_for_program)(struct sandbox *sandbox, uint32_t id);
};

struct sandbox {
	const struct sandbox_impl *impl;
	struct ev_loop *loop;
	struct list later;                        // struct sandbox_later
	struct list adding;                       // struct root_adding
	bool was_ready;                           // set before on_ready
	struct sandbox_capabilities capabilities; // set before on_ready
	const char *home;                         // owned by the implementation
	const char *const *environment;           // owned by the implementation
	const char *const *agent_environment;     // owned by the implementation; NULL: environment
	const char *start; // owned by the implementation; where the agent starts; NULL: home
	struct sandbox_root *known; // owned by the implementation; sandbox_known_at
	size_t known_count;
	const char *no_terminals; // static, or owned by the implementation; may be NULL
	const char *outlives;     // owned by the implementation; sandbox_outlives; may be NULL
	long long lost_ms;        // clock_now_ms when the connection was lost; 0: it is there
	long long away_ms;        // how long earlier losses lasted, all together
	bool has_turn;            // sandbox_note_turn
	const char *reference;    // owned by the implementation; may be NULL
	const char *instance;     // owned by the implementation; may be NULL
	const char *const *keys;  // owned by the implementation; sandbox_keys; NULL: none
	const char *const
		*limits; // owned by the implementation; index is enum limit_kind; may be NULL
	char **warnings; // from sandbox_warn; NULL: none
	char *remark;    // from sandbox_remark; NULL: none
	char *said;      // from sandbox_quote; NULL: none
	struct sandbox_setup setup; // owned by the implementation; zeroed: none
	struct sandbox_root *roots; // owned by the implementation
	size_t root_count;
};

void sandbox_init(struct sandbox *sandbox, const struct sandbox_impl *impl, struct ev_loop *loop);

/* Adds a sentence to sandbox_warnings; before on_ready. */
void sandbox_warn(struct sandbox *sandbox, const char *sentence);

/* Sets the text of sandbox_take_remark; copies it. */
void sandbox_remark(struct sandbox *sandbox, const char *sentence);

/* A program's own words that explain an on_failed that follows. The text is copied. */
void sandbox_quote(struct sandbox *sandbox, struct span words);

/*
 * Raises done in the next turn of the loop, unless the sandbox is closed first. For a result that
 * is known at once. A NULL err is success; the error is copied.
 */
void sandbox_raise_later(
	struct sandbox *sandbox, sandbox_done *done, void *data, const struct error *err);

/* Call this before you raise on_link_lost or on_link_back. */
void sandbox_note_link(struct sandbox *sandbox, bool is_there);

struct exec_impl {
	void (*signal_group)(struct exec *exec, int signal);
	void (*kill_tree)(struct exec *exec);
	void (*resize)(struct exec *exec, const struct terminal_size *size); // has_terminals
	void (*destroy)(struct exec *exec);
};

struct exec {
	const struct exec_impl *impl;
	int fds[3]; // the caller's ends of stdin, stdout, stderr; -1: none, or taken
	pid_t pid;  // on this machine, while it runs here; otherwise 0
};

/* Raises on_started if the listener has it. The listener may destroy the exec. */
static inline void exec_raise_started(const struct exec_listener *listener, void *data)
{
	if (listener->on_started) {
		listener->on_started(data);
	}
}

static inline void exec_raise_emptied(const struct exec_listener *listener, void *data)
{
	if (listener->on_emptied) {
		listener->on_emptied(data);
	}
}

struct file_op {
	struct sandbox *sandbox;
};

#endif
