/* SPDX-License-Identifier: MIT */
#include "sync/transport.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/path_quote.h"
#include "base/utf8.h"

/* FNV-1a of each path. */
void transport_left_add(struct transport_left *left, const char *path)
{
	uint64_t print = UINT64_C(14695981039346656037);
	for (const char *at = path; *at; at++) {
		print = (print ^ (unsigned char)*at) * UINT64_C(1099511628211);
	}
	left->print += print;
	if (left->count++ == 0) {
		char *quoted = path_quote(span_of(path));
		snprintf(left->first, sizeof(left->first), "%s", quoted);
		left->first[utf8_whole_length(span_of(left->first))] = '\0';
		free(quoted);
	}
}

void transport_prepare(struct transport *transport, sandbox_done *done, void *data)
{
	assert(done);
	transport->impl->prepare(transport, done, data);
}

void transport_collect(
	struct transport *transport, const git_oid *base, transport_collect_done *done, void *data)
{
	assert(base && done);
	transport->impl->collect(transport, base, done, data);
}

void transport_deliver(struct transport *transport, const git_oid *from, const git_oid *to,
	transport_deliver_done *done, void *data)
{
	assert(from && to && done);
	transport->impl->deliver(transport, from, to, done, data);
}

bool transport_takes_snapshots(const struct transport *transport)
{
	return transport->impl->takes_snapshots && transport->impl->takes_snapshots(transport);
}

bool transport_follows(const struct transport *transport)
{
	return transport->impl->follows && transport->impl->follows(transport);
}

const char *transport_name(const struct transport *transport)
{
	return transport->impl->name_now ? transport->impl->name_now(transport)
	                                 : transport->impl->name;
}

void transport_destroy(struct transport *transport)
{
	if (transport) {
		transport->impl->destroy(transport);
	}
}
