/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "sync/transport.h"

struct auto_transport {
	struct transport transport;
	struct transport *candidates[2]; // owned; in the order of preference
	struct transport *chosen;        // one of them; NULL: not decided yet
	size_t at;                       // the candidate that is being prepared
	struct error why_not;            // the first candidate's error
	sandbox_done *prepared;
	void *data;
};

static struct auto_transport *auto_from(const struct transport *transport)
{
	return CONTAINER_OF((struct transport *)transport, struct auto_transport, transport);
}

static bool lacks_tool(const struct error *err)
{
	return error_has_reason(err, "SYNC_TOOL_MISSING");
}

static void on_prepared(void *data, const struct error *err)
{
	struct auto_transport *any = data;
	if (!err) {
		any->chosen = any->candidates[any->at];
		any->prepared(any->data, NULL);
		return;
	}
	if (any->chosen || any->at + 1 == ARRAY_LENGTH(any->candidates) || !lacks_tool(err)) {
		struct error both = *err;
		if (!any->chosen && any->at > 0) {
			error_prefix(&both, "%s; and without git", any->why_not.text);
		}
		any->prepared(any->data, &both);
		return;
	}
	any->why_not = *err;
	any->at++;
	transport_prepare(any->candidates[any->at], on_prepared, any);
}

static void auto_prepare(struct transport *transport, sandbox_done *done, void *data)
{
	struct auto_transport *any = auto_from(transport);
	any->prepared = done;
	any->data = data;
	if (!any->chosen) {
		any->at = 0;
	}
	transport_prepare(any->candidates[any->at], on_prepared, any);
}

static struct transport *in_use(struct transport *transport)
{
	struct auto_transport *any = auto_from(transport);
	return any->chosen ? any->chosen : any->candidates[0];
}

static void auto_collect(
	struct transport *transport, const git_oid *base, transport_collect_done *done, void *data)
{
	transport_collect(in_use(transport), base, done, data);
}

static void auto_deliver(struct transport *transport, const git_oid *from, const git_oid *to,
	transport_deliver_done *done, void *data)
{
	transport_deliver(in_use(transport), from, to, done, data);
}

static void auto_destroy(struct transport *transport)
{
	struct auto_transport *any = auto_from(transport);
	for (size_t i = 0; i < ARRAY_LENGTH(any->candidates); i++) {
		transport_destroy(any->candidates[i]);
	}
	free(any);
}

static void auto_hold(struct transport *transport, bool holds)
{
	transport_hold(in_use(transport), holds);
}

static bool auto_follows(const struct transport *transport)
{
	return transport_follows(in_use((struct transport *)transport));
}

static const char *auto_name(const struct transport *transport)
{
	const struct auto_transport *any = auto_from(transport);
	return any->chosen ? transport_name(any->chosen) : "auto";
}

static const struct transport_impl auto_impl = {
	.name = "auto",
	.prepare = auto_prepare,
	.collect = auto_collect,
	.deliver = auto_deliver,
	.destroy = auto_destroy,
	.hold = auto_hold,
	.follows = auto_follows,
	.name_now = auto_name,
};

struct transport *transport_auto_create(const struct transport_request *request)
{
	struct auto_transport *any = mem_alloc_zero(sizeof(*any));
	any->transport.impl = &auto_impl;
	any->candidates[0] = transport_git_create(request);
	any->candidates[1] = transport_rsync_create(request);
	return &any->transport;
}
