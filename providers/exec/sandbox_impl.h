/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_SANDBOX_IMPL_H
#define PROVIDERS_EXEC_SANDBOX_IMPL_H

#include "providers/exec/carrier.h"
#include "providers/exec/copy_in.h"
#include "providers/exec/facts.h"
#include "providers/exec/image.h"
#include "providers/exec/instance.h"
#include "providers/exec/last_word.h"
#include "providers/exec/recipe.h"
#include "providers/exec/runner_file.h"
#include "providers/exec/sandbox.h"
#include "providers/exec/shown.h"
#include "providers/remote/remote.h"
#include "providers/ssh/roots.h"
#include "providers/suspension.h"

/* For the two files that make up a sandbox: sandbox.c is its life, sandbox_use.c what is done in
 * it. */
enum { TOKEN_SIZE = 33 };

/* Which instance the request asks for; owned, may be NULL. */
struct exec_wish {
	char *directory, *reference, *born;
};

struct exec_sandbox {
	struct sandbox sandbox;
	struct exec_shared *shared;
	const struct provider_context *context;
	struct exec_profile profile;
	const struct sandbox_listener *listener;
	void *data;
	char *token;    // owned; names its folders if they may outlive this; NULL: the profile does
	bool is_wanted; // the request names a sandbox that must exist: folders or an instance
	bool is_for_session;

	struct exec_wish wish;
	struct exec_instance *instance;   // NULL: the profile has no start, or before its recipe
	struct exec_shown *shown;         // NULL: the instance shows no workspace of this machine
	struct exec_recipe *recipe;       // while we read it; or NULL
	struct exec_found found;          // sandbox.setup has its texts
	struct exec_image *building;      // the image for its instance; or NULL
	struct exec_runner_file *writing; // the file that start mounts, while we write it; or NULL
	struct exec_copy_in *copying;     // or NULL
	const char *program;              // static; the runner there, if it needs no shell; or NULL
	struct error copy_failure;        // of a copy-in after which scripts bring the runner
	struct exec_carrier carrier;
	struct remote *remote;      // NULL before the connection and after it has failed
	char *place;                // owned; runs with the same place work in the same folders
	struct ssh_runs_look *look; // or NULL
	struct ssh_noting *noting;  // owned; NULL: no note is kept of this run
	char run[TOKEN_SIZE];       // names the processes that run there for this sandbox
	uint64_t told_runs;
	struct exec_facts facts;
	struct ssh_roots roots;
	struct suspension suspension;
	bool is_up;                        // `roots` is initialized
	struct forward_listeners forwards; // until the runner has them
	bool is_over;
	struct error lost;
	sandbox_done *done; // called at the end
	void *done_data;
};

static inline struct exec_sandbox *exec_sandbox_of(struct sandbox *sandbox)
{
	return CONTAINER_OF(sandbox, struct exec_sandbox, sandbox);
}

static inline const char *exec_sandbox_name(const struct exec_sandbox *self)
{
	const char *name = self->instance ? exec_instance_name(self->instance) : NULL;
	return name ? name : self->profile.name;
}

/* ---- sandbox_use.c: these implement the calls of struct sandbox_impl ---- */

void exec_use_add_root(
	struct sandbox *sandbox, const char *local_root, sandbox_done *done, void *data);
struct exec *exec_use_exec(struct sandbox *sandbox, const struct exec_spec *spec,
	const struct exec_listener *listener, void *data, struct error *err);
struct file_op *exec_use_read_file(struct sandbox *sandbox, const char *path, enum file_links links,
	size_t max_bytes, file_read_done *done, void *data);
struct file_op *exec_use_write_file(struct sandbox *sandbox, const char *path,
	enum file_links links, struct shared *content, sandbox_done *done, void *data);
struct file_op *exec_use_stat_file(
	struct sandbox *sandbox, const char *path, file_stat_done *done, void *data);
struct file_op *exec_use_resolve_path(
	struct sandbox *sandbox, const char *path, file_resolve_done *done, void *data);
void exec_use_look(struct sandbox *sandbox);
bool exec_use_is_pinned(const struct sandbox *sandbox, const char *path);
void exec_use_suspend(struct sandbox *sandbox, sandbox_done *done, void *data);
void exec_use_resume(struct sandbox *sandbox, sandbox_done *done, void *data);
bool exec_use_forward(struct sandbox *sandbox, const struct forward_port *port,
	const int fds[FORWARD_ADDRESSES], const struct forward_visit *visit, struct error *err);
void exec_use_unforward(struct sandbox *sandbox, uint16_t here, bool resets);
const char *exec_use_by_signals(const struct sandbox *sandbox);

#endif
