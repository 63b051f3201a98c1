/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/buf.h"
#include "providers/daytona/sandbox_impl.h"

/*
 * Everything in a sandbox is done by the inner sandbox. Processes get their own handle, so that
 * their users hear the service's reason when the link is lost.
 */

/* ---- roots ---- */

struct daytona_adding {
	struct list link; // place.adding
	struct daytona_place *place;
	char *waiting; // owned; the local root, until the note is written; or NULL
	sandbox_done *done;
	void *data;
};

void daytona_mirror_roots(struct daytona_place *place)
{
	place->sandbox.roots = place->inner->roots;
	place->sandbox.root_count = place->inner->root_count;
}

static void adding_free(struct daytona_adding *adding)
{
	list_remove(&adding->link);
	free(adding->waiting);
	free(adding);
}

static void on_root_added(void *data, const struct error *err)
{
	struct daytona_adding *adding = data;
	sandbox_done *done = adding->done;
	void *done_data = adding->data;
	daytona_mirror_roots(adding->place);
	adding_free(adding);
	done(done_data, err);
}

static void on_kept(void *data, const struct error *err)
{
	struct daytona_place *place = data;
	place->is_keeping = false;
	place->is_fleeting = err != NULL;
	LIST_FOR_EACH(adding, &place->adding, struct daytona_adding, link) {
		char *local_root = adding->waiting;
		adding->waiting = NULL;
		if (local_root && err) {
			sandbox_raise_later(&place->sandbox, adding->done, adding->data, err);
			adding_free(adding);
		} else if (local_root) {
			sandbox_add_root(place->inner, local_root, on_root_added, adding);
		}
		free(local_root);
	}
	daytona_end_go_on(place);
}

/*
 * Work in a workspace that is not synced exists only there. From then on, brokers that clean up
 * after a killed one leave the sandbox as it is.
 */
static void keep_first(
	struct daytona_place *place, struct daytona_adding *adding, const char *local_root)
{
	adding->waiting = mem_strdup(local_root);
	if (!place->is_keeping) {
		place->is_keeping = true;
		daytona_claim_keep(place->claim, on_kept);
	}
}

void daytona_add_root(
	struct sandbox *sandbox, const char *local_root, sandbox_done *done, void *data)
{
	struct daytona_place *place = daytona_place_of(sandbox);
	struct daytona_adding *adding = mem_alloc_zero(sizeof(*adding));
	adding->place = place;
	adding->done = done;
	adding->data = data;
	list_append(&place->adding, &adding->link);
	if (place->is_fleeting) {
		keep_first(place, adding, local_root);
	} else {
		sandbox_add_root(place->inner, local_root, on_root_added, adding);
	}
}

/* ---- files ---- */

struct file_op *daytona_read_file(struct sandbox *sandbox, const char *path, enum file_links links,
	size_t max_bytes, file_read_done *done, void *data)
{
	struct sandbox *inner = daytona_place_of(sandbox)->inner;
	return inner->impl->read_file(inner, path, links, max_bytes, done, data);
}

struct file_op *daytona_write_file(struct sandbox *sandbox, const char *path, enum file_links links,
	struct shared *content, sandbox_done *done, void *data)
{
	struct sandbox *inner = daytona_place_of(sandbox)->inner;
	return inner->impl->write_file(inner, path, links, content, done, data);
}

struct file_op *daytona_stat_file(
	struct sandbox *sandbox, const char *path, file_stat_done *done, void *data)
{
	return sandbox_stat_file(daytona_place_of(sandbox)->inner, path, done, data);
}

/*
 * Freezes its processes and leaves the platform's sandbox running, because stopping it would end
 * them.
 */
void daytona_suspend(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	sandbox_suspend(daytona_place_of(sandbox)->inner, done, data);
}

void daytona_resume(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	sandbox_resume(daytona_place_of(sandbox)->inner, done, data);
}

const char *daytona_by_signals(const struct sandbox *sandbox)
{
	const struct daytona_place *place = CONTAINER_OF(sandbox, struct daytona_place, sandbox);
	return place->inner ? sandbox_suspended_by_signals(place->inner) : NULL;
}

bool daytona_forward(struct sandbox *sandbox, const struct forward_port *port,
	const int fds[FORWARD_ADDRESSES], const struct forward_visit *visit, struct error *err)
{
	struct sandbox *inner = daytona_place_of(sandbox)->inner;
	return inner->impl->forward(inner, port, fds, visit, err);
}

void daytona_unforward(struct sandbox *sandbox, uint16_t here, bool resets)
{
	struct sandbox *inner = daytona_place_of(sandbox)->inner;
	inner->impl->unforward(inner, here, resets);
}

struct file_op *daytona_resolve_path(
	struct sandbox *sandbox, const char *path, file_resolve_done *done, void *data)
{
	return sandbox_resolve_path(daytona_place_of(sandbox)->inner, path, done, data);
}

/* ---- processes ---- */

struct daytona_exec {
	struct exec exec;
	struct list link;            // place.execs
	struct daytona_place *place; // NULL once the place is closed
	struct exec *inner;          // owned
	const struct exec_listener *listener;
	void *data;
	bool is_lost; // lost, but not reported yet
	struct error why;
};

static void on_started(void *data)
{
	struct daytona_exec *self = data;
	exec_raise_started(self->listener, self->data);
}

static void on_failed(void *data, const struct error *err)
{
	struct daytona_exec *self = data;
	self->listener->on_failed(self->data, err);
}

static void on_exited(void *data, struct process_status status)
{
	struct daytona_exec *self = data;
	self->listener->on_exited(self->data, status);
}

static void on_emptied(void *data)
{
	struct daytona_exec *self = data;
	exec_raise_emptied(self->listener, self->data);
}

static void on_lost(void *data, const struct error *err)
{
	struct daytona_exec *self = data;
	self->is_lost = true;
	self->why = *err;
	daytona_exec_lost(self->place);
}

static const struct exec_listener inner_listener = {
	.on_started = on_started,
	.on_failed = on_failed,
	.on_exited = on_exited,
	.on_emptied = on_emptied,
	.on_lost = on_lost,
};

bool daytona_exec_tell_lost(struct daytona_place *place)
{
	LIST_FOR_EACH(self, &place->execs, struct daytona_exec, link) {
		if (self->is_lost) {
			struct error err = place->is_lost ? place->lost : self->why;
			self->is_lost = false;
			self->listener->on_lost(self->data, &err);
			return true;
		}
	}
	return false;
}

static void signal_group(struct exec *exec, int signal)
{
	exec_signal_group(CONTAINER_OF(exec, struct daytona_exec, exec)->inner, signal);
}

static void kill_tree(struct exec *exec)
{
	exec_kill_tree(CONTAINER_OF(exec, struct daytona_exec, exec)->inner);
}

static void destroy(struct exec *exec)
{
	struct daytona_exec *self = CONTAINER_OF(exec, struct daytona_exec, exec);
	list_remove(&self->link);
	exec_destroy(self->inner);
	free(self);
}

static const struct exec_impl exec_impl = {
	.signal_group = signal_group, .kill_tree = kill_tree, .destroy = destroy};

struct exec *daytona_start_exec(struct sandbox *sandbox, const struct exec_spec *spec,
	const struct exec_listener *listener, void *data, struct error *err)
{
	struct daytona_place *place = daytona_place_of(sandbox);
	struct daytona_exec *self = mem_alloc_zero(sizeof(*self));
	self->exec.impl = &exec_impl;
	self->place = place;
	self->listener = listener;
	self->data = data;
	self->inner = sandbox_exec(place->inner, spec, &inner_listener, self, err);
	if (!self->inner) {
		free(self);
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(self->exec.fds); i++) {
		self->exec.fds[i] = self->inner->fds[i];
		self->inner->fds[i] = -1;
	}
	list_append(&place->execs, &self->link);
	return &self->exec;
}

void daytona_use_finish(struct daytona_place *place)
{
	LIST_FOR_EACH(self, &place->execs, struct daytona_exec, link) {
		list_remove(&self->link);
		self->place = NULL;
	}
	LIST_FOR_EACH(adding, &place->adding, struct daytona_adding, link) {
		adding_free(adding);
	}
}
