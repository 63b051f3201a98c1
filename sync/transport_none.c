/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/buf.h"
#include "base/soon.h"
#include "sync/transport.h"

/*
 * There is no other side: a collect returns the last delivered tree, and a delivery is done at
 * once.
 */
struct none_transport {
	struct transport transport;
	struct transport_request request;
	struct soon later;
	git_oid base;
	sandbox_done *prepared;
	transport_collect_done *collected;
	transport_deliver_done *delivered;
	void *data;
};

static void on_later(struct soon *soon)
{
	struct none_transport *none = CONTAINER_OF(soon, struct none_transport, later);
	sandbox_done *prepared = none->prepared;
	transport_collect_done *collected = none->collected;
	transport_deliver_done *delivered = none->delivered;
	none->prepared = NULL;
	none->collected = NULL;
	none->delivered = NULL;
	if (prepared) {
		prepared(none->data, NULL);
	} else if (collected) {
		struct transport_collected same = {.tree = none->base};
		collected(none->data, &same, NULL);
	} else {
		struct transport_delivered nothing = {0};
		delivered(none->data, &nothing, NULL);
	}
}

static struct none_transport *begin(struct transport *transport, void *data)
{
	struct none_transport *none = CONTAINER_OF(transport, struct none_transport, transport);
	none->data = data;
	soon_start(&none->later);
	return none;
}

static void none_prepare(struct transport *transport, sandbox_done *done, void *data)
{
	begin(transport, data)->prepared = done;
}

static void none_collect(
	struct transport *transport, const git_oid *base, transport_collect_done *done, void *data)
{
	struct none_transport *none = begin(transport, data);
	none->base = *base;
	none->collected = done;
}

static void none_deliver(struct transport *transport, const git_oid *from, const git_oid *to,
	transport_deliver_done *done, void *data)
{
	begin(transport, data)->delivered = done;
}

static void none_destroy(struct transport *transport)
{
	struct none_transport *none = CONTAINER_OF(transport, struct none_transport, transport);
	soon_stop(&none->later);
	free(none);
}

static const struct transport_impl impl = {
	.name = "none",
	.prepare = none_prepare,
	.collect = none_collect,
	.deliver = none_deliver,
	.destroy = none_destroy,
};

struct transport *transport_none_create(const struct transport_request *request)
{
	struct none_transport *none = mem_alloc_zero(sizeof(*none));
	none->transport.impl = &impl;
	none->request = *request;
	soon_init(&none->later, none->request.loop, on_later);
	return &none->transport;
}
