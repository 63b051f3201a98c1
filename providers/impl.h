/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_IMPL_H
#define PROVIDERS_IMPL_H

#include "base/list.h"
#include "providers/network.h"
#include "providers/provider.h"

/*
 * For those who write a provider. Embed struct provider, struct sandbox and
 * struct exec by value as the first member of your own; the wrappers in
 * provider.c assert, give the defaults and call these. What each call means is
 * said in provider.h.
 */
struct provider_impl {
	const char *name; // `backend = NAME` in a profile, and what records have; static text
	bool runs_here;   // provider_runs_here
	const struct setting_key *keys;
	size_t key_count;
	/* Those of its errors that acp/failure.c does not have; the names are no other's. */
	const struct error_reason *reasons;
	size_t reason_count;
	/* What sandbox_prepare does not have to warn of, or refuse, of a profile's network keys;
	 * network_of has it where that depends on the profile. */
	struct network_abilities network;

	/* mandatory */
	void (*destroy)(struct provider *provider);
	struct sandbox *(*prepare)(struct provider *provider, const struct sandbox_request *request,
		const struct sandbox_listener *listener, void *data, struct error *err);

	const struct provider_place *places; // none where a newcomer is not offered it
	size_t place_count;

	/* optional */
	/* NULL: the machine has what they need. The choices begin as an empty list. */
	bool (*look_at_place)(struct provider *provider, const struct provider_place *place,
		char ***choices, struct error *err);
	bool (*is_isolated)(const struct settings *settings); // NULL: whatever they are
	struct network_abilities (*network_of)(const struct settings *settings);
	/* Adds what prepare would warn of besides; fails as that would. Blocks. */
	bool (*check)(const struct settings *settings, char ***warnings, struct error *err);
	bool (*describe)(struct provider *provider, const struct settings *settings,
		const struct provider_describe_listener *listener, void *data, struct error *err);
	bool (*inventory)(struct provider *provider, const struct sandbox_request *request,
		enum inventory_act act, const char *name, const struct inventory_listener *listener,
		void *data, struct error *err);
	struct provider_sweep *(*sweep)(struct provider *provider,
		const struct sandbox_request *request, const char *const *kept,
		provider_swept *done, void *data, struct error *err);
	void (*sweep_cancel)(struct provider_sweep *sweep); // with sweep
};

struct provider {
	const struct provider_impl *impl;
};

struct provider_sweep {
	const struct provider *provider;
};

/* Whether a file operation may go through links, or its path has to be free of them. */
enum file_links { FILE_LINKS_FOLLOWED, FILE_LINKS_REFUSED };

struct sandbox_impl {
	/* mandatory */
	void (*add_root)(
		struct sandbox *sandbox, const char *local_root, sandbox_done *done, void *data);
	struct exec *(*exec)(struct sandbox *sandbox, const struct exec_spec *spec,
		const struct exec_listener *listener, void *data, struct error *err);
	struct file_op *(*read_file)(struct sandbox *sandbox, const char *path,
		enum file_links links, size_t max_bytes, file_read_done *done, void *data);
	struct file_op *(*write_file)(struct sandbox *sandbox, const char *path,
		enum file_links links, struct span content, sandbox_done *done, void *data);
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

	/* optional; both where the sandbox says can_suspend (providers/suspension.h helps) */
	void (*suspend)(struct sandbox *sandbox, sandbox_done *done, void *data);
	void (*resume)(struct sandbox *sandbox, sandbox_done *done, void *data);
	const char *(*by_signals)(const struct sandbox *sandbox); // optional; NULL: never
	bool (*usage)(const struct sandbox *sandbox, struct group_usage *out); // optional
	void (*look)(struct sandbox *sandbox);                                 // optional
	bool (*is_pinned)(const struct sandbox *sandbox, const char *path);    // optional
};

struct sandbox {
	const struct sandbox_impl *impl;
	struct ev_loop *loop;
	struct list later;                        // of struct sandbox_later
	struct list adding;                       // of struct root_adding
	bool was_ready;                           // set before on_ready
	struct sandbox_capabilities capabilities; // filled in before on_ready
	const char *home;                         // owned by the implementation
	const char *const *environment;           // owned by the implementation
	const char *const *agent_environment;     // the same; NULL: environment
	const char *start;                        // the same; where the agent starts; NULL: home
	struct sandbox_root *known;               // the same; sandbox_known_at
	size_t known_count;
	const char *reference;      // owned by the implementation; may be NULL
	const char *instance;       // the same
	const char *const *limits;  // owned by the implementation; by enum limit_kind; or NULL
	char **warnings;            // sandbox_warn's; NULL: none
	char *remark;               // sandbox_remark's; NULL: none
	char *said;                 // sandbox_quote's; NULL: none
	struct sandbox_root *roots; // owned by the implementation
	size_t root_count;
};

void sandbox_init(struct sandbox *sandbox, const struct sandbox_impl *impl, struct ev_loop *loop);

/* A sentence more of sandbox_warnings; before on_ready. */
void sandbox_warn(struct sandbox *sandbox, const char *sentence);

/* What the user should know of how it came to be; the text is copied. */
void sandbox_remark(struct sandbox *sandbox, const char *sentence);

/* What a program there said that explains an on_failed; before that. The text is copied. */
void sandbox_quote(struct sandbox *sandbox, struct span words);

/*
 * Raises done in the next turn of the loop, unless the sandbox is closed
 * before: for what is known at once but may not be raised at once. A NULL err
 * is success; it is copied.
 */
void sandbox_raise_later(
	struct sandbox *sandbox, sandbox_done *done, void *data, const struct error *err);

struct exec_impl {
	void (*signal_group)(struct exec *exec, int signal);
	void (*kill_tree)(struct exec *exec);
	void (*destroy)(struct exec *exec);
};

struct exec {
	const struct exec_impl *impl;
	int fds[3]; // stdin, stdout, stderr, on the caller's side; -1: none or taken
	pid_t pid;  // of this machine, while it runs here; else 0
};

/* For a listener that need not care; it may destroy the exec. */
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
