/* SPDX-License-Identifier: MIT */
#include "providers/provider.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/real_path.h"
#include "base/soon.h"
#include "base/words.h"
#include "providers/impl.h"

const char *provider_name(const struct provider *provider)
{
	return provider->impl->name;
}

const struct error_reason *provider_reasons(const struct provider *provider, size_t *out_count)
{
	*out_count = provider->impl->reason_count;
	return provider->impl->reasons;
}

const struct error_reason *provider_reason_find(const struct provider *provider, const char *name)
{
	for (size_t i = 0; i < provider->impl->reason_count; i++) {
		if (strcmp(provider->impl->reasons[i].name, name) == 0) {
			return &provider->impl->reasons[i];
		}
	}
	return NULL;
}

bool provider_runs_here(const struct provider *provider)
{
	return provider->impl->runs_here;
}

bool provider_keeps_runs(const struct provider *provider)
{
	return provider->impl->keeps_runs;
}

bool provider_is_isolated(const struct provider *provider, const struct settings *settings)
{
	const struct provider_impl *impl = provider->impl;
	return !impl->is_isolated || impl->is_isolated(settings);
}

bool provider_is_per_session(const struct provider *provider, const struct settings *settings)
{
	const struct provider_impl *impl = provider->impl;
	return impl->is_per_session && impl->is_per_session(settings);
}

bool provider_can_describe(const struct provider *provider)
{
	return provider->impl->describe != NULL;
}

bool provider_describe(struct provider *provider, const struct settings *settings,
	const struct provider_describe_listener *listener, void *data, struct error *err)
{
	assert(provider->impl->describe && listener->on_fact && listener->on_done);
	return provider->impl->describe(provider, settings, listener, data, err);
}

bool provider_has_inventory(const struct provider *provider)
{
	return provider->impl->inventory != NULL;
}

bool provider_inventory(struct provider *provider, const struct sandbox_request *request,
	enum inventory_act act, const char *name, const struct inventory_listener *listener,
	void *data, struct error *err)
{
	assert(provider->impl->inventory && listener->on_entry && listener->on_done);
	assert((act == INVENTORY_LIST) == (name == NULL));
	return provider->impl->inventory(provider, request, act, name, listener, data, err);
}

bool provider_can_sweep(const struct provider *provider)
{
	return provider->impl->sweep != NULL;
}

struct provider_sweep *provider_sweep(struct provider *provider,
	const struct sandbox_request *request, const char *const *kept, provider_swept *done,
	void *data, struct error *err)
{
	return provider->impl->sweep(provider, request, kept, done, data, err);
}

void provider_sweep_cancel(struct provider_sweep *sweep)
{
	if (sweep) {
		sweep->provider->impl->sweep_cancel(sweep);
	}
}

const struct setting_key *provider_keys(const struct provider *provider, size_t *out_count)
{
	*out_count = provider->impl->key_count;
	return provider->impl->keys;
}

const struct provider_place *provider_places(const struct provider *provider, size_t *out_count)
{
	*out_count = provider->impl->place_count;
	return provider->impl->places;
}

bool provider_look_at_place(struct provider *provider, const struct provider_place *place,
	char ***out_choices, struct error *err)
{
	char **choices = words_copy((const char *const[]){NULL});
	bool ok = !provider->impl->look_at_place ||
	          provider->impl->look_at_place(provider, place, &choices, err);
	if (!ok) {
		words_free(choices);
		return false;
	}
	*out_choices = choices;
	return true;
}

void provider_destroy(struct provider *provider)
{
	if (provider) {
		provider->impl->destroy(provider);
	}
}

/* ---- outcomes raised in a later turn ---- */

struct sandbox_later {
	struct list link; // sandbox.later
	struct sandbox *sandbox;
	struct soon soon;
	sandbox_done *done;
	void *data;
	struct error err; // ERROR_NONE: success
};

static void later_free(struct sandbox_later *later)
{
	soon_stop(&later->soon);
	list_remove(&later->link);
	free(later);
}

static void on_later(struct soon *soon)
{
	struct sandbox_later *later = CONTAINER_OF(soon, struct sandbox_later, soon);
	sandbox_done *done = later->done;
	void *data = later->data;
	struct error err = later->err;
	later_free(later);
	done(data, err.code == ERROR_NONE ? NULL : &err);
}

void sandbox_raise_later(
	struct sandbox *sandbox, sandbox_done *done, void *data, const struct error *err)
{
	struct sandbox_later *later = mem_alloc_zero(sizeof(*later));
	later->sandbox = sandbox;
	later->done = done;
	later->data = data;
	if (err) {
		later->err = *err;
	}
	soon_init(&later->soon, sandbox->loop, on_later);
	soon_start(&later->soon);
	list_append(&sandbox->later, &later->link);
}

/* ---- sandboxes ---- */

void sandbox_init(struct sandbox *sandbox, const struct sandbox_impl *impl, struct ev_loop *loop)
{
	*sandbox = (struct sandbox){.impl = impl, .loop = loop};
	list_init(&sandbox->later);
	list_init(&sandbox->adding);
}

const struct sandbox_capabilities *sandbox_capabilities(const struct sandbox *sandbox)
{
	assert(sandbox->was_ready);
	return &sandbox->capabilities;
}

const char *sandbox_no_terminals(const struct sandbox *sandbox)
{
	assert(sandbox->was_ready);
	return sandbox->no_terminals;
}

const char *sandbox_home(const struct sandbox *sandbox)
{
	assert(sandbox->was_ready);
	return sandbox->home;
}

const char *const *sandbox_environment(const struct sandbox *sandbox)
{
	assert(sandbox->was_ready);
	return sandbox->environment;
}

const char *const *sandbox_agent_environment(const struct sandbox *sandbox)
{
	assert(sandbox->was_ready);
	return sandbox->agent_environment ? sandbox->agent_environment : sandbox->environment;
}

const char *sandbox_reference(const struct sandbox *sandbox)
{
	assert(sandbox->was_ready);
	return sandbox->reference;
}

const char *sandbox_instance(const struct sandbox *sandbox)
{
	assert(sandbox->was_ready);
	return sandbox->instance;
}

bool sandbox_take_over(struct sandbox *sandbox, const char *reference)
{
	return sandbox->impl->take_over && sandbox->impl->take_over(sandbox, reference);
}

bool sandbox_is_reference(const char *one, const char *other)
{
	return one && other ? strcmp(one, other) == 0 : one == other;
}

bool sandbox_is_instance(const char *one, const char *other)
{
	return !one || !other || strcmp(one, other) == 0;
}

/* ---- roots ---- */

/*
 * A root that is being added. Further callers who ask for the same root meanwhile get the same
 * outcome.
 */
struct root_adding {
	struct list link; // sandbox.adding
	struct sandbox *sandbox;
	char *local;         // owned
	struct list waiting; // of struct root_waiter
};

struct root_waiter {
	struct list link; // root_adding.waiting
	sandbox_done *done;
	void *data;
};

static void adding_free(struct root_adding *adding)
{
	LIST_FOR_EACH(waiter, &adding->waiting, struct root_waiter, link) {
		list_remove(&waiter->link);
		free(waiter);
	}
	list_remove(&adding->link);
	free(adding->local);
	free(adding);
}

static void on_root_added(void *data, const struct error *err)
{
	struct root_adding *adding = data;
	struct root_waiter *first = LIST_FIRST(&adding->waiting, struct root_waiter, link);
	struct root_waiter told = *first;
	list_remove(&first->link);
	free(first);
	LIST_FOR_EACH(waiter, &adding->waiting, struct root_waiter, link) {
		sandbox_raise_later(adding->sandbox, waiter->done, waiter->data, err);
	}
	adding_free(adding);
	told.done(told.data, err);
}

static struct root_adding *adding_find(struct sandbox *sandbox, const char *local_root)
{
	LIST_FOR_EACH(adding, &sandbox->adding, struct root_adding, link) {
		if (strcmp(adding->local, local_root) == 0) {
			return adding;
		}
	}
	return NULL;
}

void sandbox_add_root(
	struct sandbox *sandbox, const char *local_root, sandbox_done *done, void *data)
{
	assert(sandbox->was_ready);
	if (local_root[0] != '/') {
		struct error err;
		error_set(&err, ERROR_DENIED, "workspace %s: it is not absolute", local_root);
		sandbox_raise_later(sandbox, done, data, &err);
		return;
	}
	struct root_adding *adding = adding_find(sandbox, local_root);
	struct root_waiter *waiter = mem_alloc_zero(sizeof(*waiter));
	waiter->done = done;
	waiter->data = data;
	if (adding) {
		list_append(&adding->waiting, &waiter->link);
		return;
	}
	adding = mem_alloc_zero(sizeof(*adding));
	adding->sandbox = sandbox;
	adding->local = mem_strdup(local_root);
	list_init(&adding->waiting);
	list_append(&adding->waiting, &waiter->link);
	list_append(&sandbox->adding, &adding->link);
	sandbox->impl->add_root(sandbox, adding->local, on_root_added, adding);
}

size_t sandbox_root_count(const struct sandbox *sandbox)
{
	return sandbox->root_count;
}

const struct sandbox_root *sandbox_root_at(const struct sandbox *sandbox, size_t index)
{
	assert(index < sandbox->root_count);
	return &sandbox->roots[index];
}

const struct sandbox_setup *sandbox_setup(const struct sandbox *sandbox)
{
	assert(sandbox->was_ready);
	return sandbox->setup.lines && sandbox->setup.lines[0] ? &sandbox->setup : NULL;
}

size_t sandbox_root_length(const struct sandbox *sandbox, const char *path)
{
	size_t longest = 0;
	for (size_t i = 0; i < sandbox->root_count; i++) {
		const char *root = sandbox->roots[i].runtime;
		size_t len = strlen(root);
		longest = path_is_at_or_below(path, root) && len > longest ? len : longest;
	}
	return longest;
}

size_t sandbox_known_count(const struct sandbox *sandbox)
{
	return sandbox->known_count;
}

const struct sandbox_root *sandbox_known_at(const struct sandbox *sandbox, size_t index)
{
	assert(index < sandbox->known_count);
	return &sandbox->known[index];
}

const char *sandbox_start(const struct sandbox *sandbox)
{
	return sandbox->start ? sandbox->start : sandbox_home(sandbox);
}

void sandbox_close(struct sandbox *sandbox)
{
	if (!sandbox) {
		return;
	}
	LIST_FOR_EACH(later, &sandbox->later, struct sandbox_later, link) {
		later_free(later);
	}
	LIST_FOR_EACH(adding, &sandbox->adding, struct root_adding, link) {
		adding_free(adding);
	}
	words_free(sandbox->warnings);
	free(sandbox->remark);
	free(sandbox->said);
	sandbox->impl->close(sandbox);
}

/*
 * Checks that everything in the sandbox was collected before it ends or rests. Otherwise raises
 * done and returns false.
 */
static bool check_receipt(struct sandbox *sandbox, const char *doing, const char *receipt,
	sandbox_done *done, void *data)
{
	struct error err;
	if (receipt) {
		return true;
	}
	error_set_reason(&err, ERROR_DENIED, "SYNC_INCOMPLETE",
		"%s the sandbox: its files have not been collected", doing);
	sandbox_raise_later(sandbox, done, data, &err);
	return false;
}

bool sandbox_can_rest(const struct sandbox *sandbox)
{
	return sandbox->impl->rest != NULL;
}

void sandbox_rest(struct sandbox *sandbox, const char *receipt, sandbox_done *done, void *data)
{
	if (!check_receipt(sandbox, "stopping", receipt, done, data)) {
		return;
	}
	if (sandbox->impl->rest) {
		sandbox->impl->rest(sandbox, done, data);
	} else {
		sandbox_raise_later(sandbox, done, data, NULL);
	}
}

bool sandbox_can_withdraw(const struct sandbox *sandbox)
{
	return sandbox->impl->withdraw != NULL;
}

void sandbox_withdraw(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	assert(sandbox_can_withdraw(sandbox));
	sandbox->impl->withdraw(sandbox, done, data);
}

void sandbox_destroy(
	struct sandbox *sandbox, const char *receipt, bool discard, sandbox_done *done, void *data)
{
	if (discard || check_receipt(sandbox, "destroying", receipt, done, data)) {
		sandbox->impl->destroy(sandbox, done, data);
	}
}

/* ---- processes ---- */

struct exec *sandbox_exec(struct sandbox *sandbox, const struct exec_spec *spec,
	const struct exec_listener *listener, void *data, struct error *err)
{
	assert(sandbox->was_ready && spec->argv[0]);
	struct exec_spec full = *spec;
	full.env = spec->env ? spec->env : sandbox->environment;
	full.cwd = spec->cwd ? spec->cwd : sandbox->home;
	if (full.cwd[0] != '/') {
		error_set(err, ERROR_DENIED, "starting \"%s\": its directory %s is not absolute",
			full.argv[0], full.cwd);
		return NULL;
	}
	return sandbox->impl->exec(sandbox, &full, listener, data, err);
}

const char *sandbox_limit(const struct sandbox *sandbox, enum limit_kind kind)
{
	return sandbox->limits ? sandbox->limits[kind] : NULL;
}

bool sandbox_usage(const struct sandbox *sandbox, struct group_usage *out)
{
	return sandbox->impl->usage && sandbox->impl->usage(sandbox, out);
}

static bool refuse_forward(const struct sandbox *sandbox, uint16_t inside, struct error *err)
{
	const char *reason = "FORWARD_UNSUPPORTED";
	if (sandbox->capabilities.shares_loopback) {
		return error_set_reason(err, ERROR_UNAVAILABLE, reason,
			"forwarding port %u: the sandbox has this machine's own loopback, so "
			"connect to port %u here",
			inside, inside);
	}
	return error_set_reason(err, ERROR_UNAVAILABLE, reason, "forwarding port %u: %s", inside,
		sandbox->capabilities.is_near
			? "the cell of a confined agent leads only the ports of its profile: add "
			  "forward there"
			: "the broker's own program, through which the connections would go, does "
			  "not run in the sandbox");
}

static bool forward(struct sandbox *sandbox, struct forward_port *port,
	const struct forward_visit *visit, struct error *err)
{
	int fds[FORWARD_ADDRESSES];
	if (!sandbox_can_forward(sandbox)) {
		return refuse_forward(sandbox, port->inside, err);
	}
	if (!forward_port_listen(&port->here, fds, err)) {
		return false;
	}
	if (!sandbox->impl->forward(sandbox, port, fds, visit, err)) {
		fd_close(&fds[0]);
		fd_close(&fds[1]);
		return false;
	}
	return true;
}

bool sandbox_can_forward(const struct sandbox *sandbox)
{
	assert(sandbox->was_ready);
	return sandbox->impl->forward != NULL;
}

bool sandbox_forward(struct sandbox *sandbox, uint16_t *here, uint16_t inside, struct error *err)
{
	struct forward_port port = {.here = *here, .inside = inside};
	if (!forward(sandbox, &port, NULL, err)) {
		return false;
	}
	*here = port.here;
	return true;
}

bool sandbox_forward_visit(struct sandbox *sandbox, uint16_t port,
	const struct forward_visit *visit, struct error *err)
{
	struct forward_port same = {.here = port, .inside = port};
	return forward(sandbox, &same, visit, err);
}

void sandbox_unforward(struct sandbox *sandbox, uint16_t here)
{
	sandbox->impl->unforward(sandbox, here, true);
}

void sandbox_end_visits(struct sandbox *sandbox, uint16_t here)
{
	sandbox->impl->unforward(sandbox, here, false);
}

void sandbox_look(struct sandbox *sandbox)
{
	if (sandbox->impl->look && sandbox->was_ready) {
		sandbox->impl->look(sandbox);
	}
}

bool sandbox_is_pinned(const struct sandbox *sandbox, const char *path)
{
	return sandbox->impl->is_pinned && sandbox->impl->is_pinned(sandbox, path);
}

bool sandbox_find_write_hint(
	const struct sandbox *sandbox, const char *path, char out_folder[FILE_PATH_MAX])
{
	return sandbox->impl->find_write_hint &&
	       sandbox->impl->find_write_hint(sandbox, path, out_folder);
}

void sandbox_decide(struct sandbox *sandbox, uint32_t id, const struct sandbox_verdict *verdict)
{
	sandbox->impl->decide(sandbox, id, verdict);
}

void sandbox_look_for_program(struct sandbox *sandbox, uint32_t id)
{
	sandbox->impl->look_for_program(sandbox, id);
}

static int take_fd(struct exec *exec, int which)
{
	int fd = exec->fds[which];
	exec->fds[which] = -1;
	return fd;
}

pid_t exec_process(const struct exec *exec)
{
	return exec->pid;
}

int exec_take_stdin(struct exec *exec)
{
	return take_fd(exec, 0);
}

int exec_take_stdout(struct exec *exec)
{
	return take_fd(exec, 1);
}

int exec_take_stderr(struct exec *exec)
{
	return take_fd(exec, 2);
}

void exec_signal_group(struct exec *exec, int signal)
{
	exec->impl->signal_group(exec, signal);
}

void exec_kill_tree(struct exec *exec)
{
	exec->impl->kill_tree(exec);
}

void exec_resize(struct exec *exec, const struct terminal_size *size)
{
	exec->impl->resize(exec, size);
}

void exec_destroy(struct exec *exec)
{
	if (!exec) {
		return;
	}
	for (int i = 0; i < 3; i++) {
		fd_close(&exec->fds[i]);
	}
	exec->impl->destroy(exec);
}

/* ---- files ---- */

struct file_op *sandbox_read_file(struct sandbox *sandbox, const char *path, size_t max_bytes,
	file_read_done *done, void *data)
{
	assert(sandbox->was_ready);
	return sandbox->impl->read_file(sandbox, path, FILE_LINKS_FOLLOWED, max_bytes, done, data);
}

struct file_op *sandbox_read_resolved(struct sandbox *sandbox, const char *path, size_t max_bytes,
	file_read_done *done, void *data)
{
	return sandbox->impl->read_file(sandbox, path, FILE_LINKS_REFUSED, max_bytes, done, data);
}

struct file_op *sandbox_write_file(struct sandbox *sandbox, const char *path, struct span content,
	sandbox_done *done, void *data)
{
	assert(sandbox->was_ready);
	struct shared *shared = shared_copy(content);
	struct file_op *op =
		sandbox->impl->write_file(sandbox, path, FILE_LINKS_FOLLOWED, shared, done, data);
	shared_release(shared);
	return op;
}

struct file_op *sandbox_write_resolved(struct sandbox *sandbox, const char *path,
	struct shared *content, sandbox_done *done, void *data)
{
	return sandbox->impl->write_file(sandbox, path, FILE_LINKS_REFUSED, content, done, data);
}

struct file_op *sandbox_stat_file(
	struct sandbox *sandbox, const char *path, file_stat_done *done, void *data)
{
	assert(sandbox->was_ready);
	return sandbox->impl->stat_file(sandbox, path, done, data);
}

struct file_op *sandbox_resolve_path(
	struct sandbox *sandbox, const char *path, file_resolve_done *done, void *data)
{
	assert(sandbox->was_ready);
	return sandbox->impl->resolve_path(sandbox, path, done, data);
}

void file_op_cancel(struct file_op *op)
{
	if (op) {
		op->sandbox->impl->file_op_cancel(op);
	}
}
