/* SPDX-License-Identifier: MIT */
#include "tests/unit/daytona_plane_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/soon.h"

struct plane plane;

struct daytona_call {
	struct soon soon;
	struct plane_box *box;
	bool has_failed;
	struct error err;
	daytona_sandbox_done *done;
	daytona_done *plain_done;
	daytona_access_done *access_done;
	const struct daytona_list_listener *listener;
	void *data;
};

struct plane_box *plane_add(const char *name, const char *state)
{
	assert_true(plane.count < PLANE_MAX);
	struct plane_box *box = &plane.boxes[plane.count++];
	*box = (struct plane_box){
		.exists = state != NULL, .state = state, .desired = "", .reason = ""};
	box->settings = (struct daytona_sandbox){.sandbox_class = "container",
		.user = "",
		.target = "",
		.snapshot = "",
		.image = "",
		.network_allow_list = "",
		.domain_allow_list = ""};
	snprintf(box->name, sizeof(box->name), "%s", name);
	return box;
}

static struct plane_box *find(const char *name)
{
	for (size_t i = 0; i < plane.count; i++) {
		if (strcmp(plane.boxes[i].name, name) == 0) {
			return &plane.boxes[i];
		}
	}
	fail_msg("nobody knows of %s", name);
	return NULL;
}

static void describe(const struct plane_box *box, struct daytona_sandbox *seen)
{
	static struct daytona_pair own[] = {{DAYTONA_LABEL_OWNER, NULL}, {NULL, NULL}};
	static const struct daytona_pair foreign[] = {{DAYTONA_LABEL_OWNER, "you"}, {NULL, NULL}};
	own[0].value = plane.owner ? plane.owner : "me";
	*seen = box->settings;
	seen->id = seen->name = box->name;
	seen->state = box->state;
	seen->desired_state = box->desired;
	seen->error_reason = box->reason;
	seen->created_at = "";
	seen->labels = box->is_foreign ? foreign : own;
	seen->has_odd_labels = box->has_odd_labels;
	seen->is_recoverable = box->is_recoverable;
	seen->blocks_network = !box->is_network_open;
}

static void on_timer(struct soon *soon)
{
	struct daytona_call call = *CONTAINER_OF(soon, struct daytona_call, soon);
	struct daytona_sandbox seen;
	free(CONTAINER_OF(soon, struct daytona_call, soon));
	if (call.listener) {
		if (plane.listed) {
			describe(find(plane.listed), &seen);
			call.listener->on_sandbox(call.data, &seen);
		}
		call.listener->on_done(call.data, NULL);
	} else if (call.access_done) {
		call.access_done(call.data, NULL, &call.err);
	} else if (call.plain_done) {
		call.plain_done(call.data, call.has_failed ? &call.err : NULL);
	} else if (call.has_failed) {
		call.done(call.data, NULL, &call.err);
	} else {
		describe(call.box, &seen);
		call.done(call.data, &seen, NULL);
	}
}

static struct daytona_call *call_create(struct plane_box *box, void *data)
{
	struct daytona_call *call = mem_alloc_zero(sizeof(*call));
	call->box = box;
	call->data = data;
	soon_init(&call->soon, plane.loop, on_timer);
	if (!plane.hangs) {
		soon_start(&call->soon);
	}
	return call;
}

static void fail_with(struct daytona_call *call, enum error_code code, const char *reason)
{
	call->has_failed = true;
	error_set_reason(&call->err, code, reason, "the service says %s", reason);
}

struct daytona_api *daytona_api_create(const struct daytona_api_config *config, struct error *err)
{
	return (struct daytona_api *)(void *)&plane;
}

void daytona_api_destroy(struct daytona_api *api)
{
}

const char *daytona_api_key(const struct daytona_api *api)
{
	return "";
}

bool daytona_key_is_jwt(const char *key)
{
	return false;
}

long long daytona_api_asked_ms(const struct daytona_api *api)
{
	return 0;
}

bool daytona_api_may_be_done(const struct daytona_api *api)
{
	return plane.may_be_done;
}

int daytona_api_status(const struct daytona_api *api)
{
	return plane.status;
}

void daytona_call_cancel(struct daytona_call *call)
{
	if (call) {
		soon_stop(&call->soon);
		free(call);
	}
}

struct daytona_call *daytona_get(
	struct daytona_api *api, const char *id_or_name, daytona_sandbox_done *done, void *data)
{
	struct plane_box *box = find(id_or_name);
	struct daytona_call *call = call_create(box, data);
	call->done = done;
	if (box->gets++ > 0 && box->later) {
		box->state = box->later;
		box->later = NULL;
	}
	if (box->created_after > 0 && box->creates > 0 && --box->created_after == 0) {
		box->exists = true;
		box->state = "started";
	}
	if (!box->exists) {
		fail_with(call, ERROR_NOT_FOUND, "SANDBOX_NOT_FOUND");
	}
	return call;
}

struct daytona_call *daytona_create(struct daytona_api *api, const struct daytona_create *create,
	daytona_sandbox_done *done, void *data)
{
	struct plane_box *box = find(create->name);
	struct daytona_call *call = call_create(box, data);
	call->done = done;
	box->creates++;
	bool is_passing = box->create_fails > 0 && box->creates > box->create_fails;
	bool has_failed = box->create_reason && !is_passing;
	box->exists = (!has_failed || box->create_state) && box->created_after == 0;
	box->state = box->create_state ? box->create_state : "creating";
	box->later = box->create_state ? NULL : box->after_create ? box->after_create : "started";
	box->gets = 1;
	if (has_failed) {
		fail_with(call, box->create_code, box->create_reason);
	}
	return call;
}

struct daytona_call *daytona_act(struct daytona_api *api, enum daytona_act act, const char *id,
	daytona_sandbox_done *done, void *data)
{
	struct plane_box *box = find(id);
	struct daytona_call *call = call_create(box, data);
	int *const counts[] = {[DAYTONA_START] = &box->starts,
		[DAYTONA_STOP] = &box->stops,
		[DAYTONA_ARCHIVE] = &box->archives,
		[DAYTONA_DELETE] = &box->deletes,
		[DAYTONA_RECOVER] = &box->recovers};
	const char *const states[] = {[DAYTONA_START] = box->started ? box->started : "started",
		[DAYTONA_STOP] = "stopped",
		[DAYTONA_ARCHIVE] = "archiving",
		[DAYTONA_DELETE] = "destroying",
		[DAYTONA_RECOVER] = "started"};
	call->done = done;
	++*counts[act];
	plane.status = 0;
	if (box->delete_status && act == DAYTONA_DELETE) {
		plane.status = box->delete_status;
		fail_with(call, ERROR_DENIED, "DAYTONA_UNAUTHORIZED");
	} else if (box->act_reason) {
		fail_with(call, ERROR_DENIED, box->act_reason);
	} else {
		box->state = states[act];
	}
	return call;
}

struct daytona_call *daytona_list(struct daytona_api *api, const struct daytona_pair *labels,
	const struct daytona_list_listener *listener, void *data)
{
	struct daytona_call *call = call_create(NULL, data);
	call->listener = listener;
	plane.lists++;
	return call;
}

struct daytona_call *daytona_set_network(struct daytona_api *api, const char *id,
	const struct daytona_network *network, daytona_done *done, void *data)
{
	struct plane_box *box = find(id);
	struct daytona_call *call = call_create(box, data);
	call->plain_done = done;
	box->networks++;
	if (box->network_reason) {
		fail_with(call, ERROR_DENIED, box->network_reason);
	} else if (!box->keeps_network) {
		/*
		 * The request's word on blocking replaces the CIDRs; domains stay until the request
		 * names some.
		 */
		const char *cidrs = network->network_allow_list ? network->network_allow_list : "";
		box->is_network_open = !network->blocks_network || *cidrs;
		box->settings.network_allow_list = cidrs;
		if (network->domain_allow_list) {
			box->settings.domain_allow_list = network->domain_allow_list;
		}
	}
	return call;
}

static struct daytona_call *set(struct plane_box *box, daytona_done *done, void *data)
{
	struct daytona_call *call = call_create(box, data);
	call->plain_done = done;
	if (box->set_reason) {
		fail_with(call, ERROR_UNAVAILABLE, box->set_reason);
	}
	return call;
}

struct daytona_call *daytona_set_public(
	struct daytona_api *api, const char *id, bool is_public, daytona_done *done, void *data)
{
	struct plane_box *box = find(id);
	box->publics++;
	box->settings.is_public = is_public;
	return set(box, done, data);
}

struct daytona_call *daytona_set_interval(struct daytona_api *api, const char *id,
	enum daytona_interval interval, int minutes, daytona_done *done, void *data)
{
	struct plane_box *box = find(id);
	int *const fields[] = {[DAYTONA_AUTO_STOP] = &box->settings.auto_stop_min,
		[DAYTONA_AUTO_ARCHIVE] = &box->settings.auto_archive_min,
		[DAYTONA_AUTO_DELETE] = &box->settings.auto_delete_min};
	box->intervals[interval]++;
	if (!box->set_reason && interval != DAYTONA_TTL) {
		*fields[interval] = minutes;
	}
	return set(box, done, data);
}

struct daytona_call *daytona_touch(
	struct daytona_api *api, const char *id, daytona_done *done, void *data)
{
	return set(find(id), done, data);
}

struct daytona_call *daytona_ask_access(
	struct daytona_api *api, const char *id, int minutes, daytona_access_done *done, void *data)
{
	struct plane_box *box = find(id);
	struct daytona_call *call = call_create(box, data);
	call->access_done = done;
	box->accesses++;
	fail_with(call, ERROR_UNAVAILABLE, "DAYTONA_UNAVAILABLE");
	return call;
}

/* ---- the outcome of an order ---- */

void told_done(void *data, const struct error *err)
{
	struct told *told = data;
	assert_false(told->is_over);
	told->is_over = true;
	told->is_ok = err == NULL;
	if (err) {
		told->err = *err;
	}
}

void told_warning(void *data, const char *text)
{
	struct told *told = data;
	if (told->warnings++ == 0) {
		snprintf(told->warning, sizeof(told->warning), "%s", text);
	}
}

void told_wait(const struct told *told)
{
	while (!told->is_over) {
		ev_run(plane.loop, EVRUN_ONCE);
	}
}
