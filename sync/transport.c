/* SPDX-License-Identifier: MIT */
#include "sync/transport.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/path_quote.h"
#include "base/text.h"

void transport_left_add(struct transport_left *left, const char *path)
{
	left->print += hash_text(HASH_START, path);
	if (left->count++ == 0) {
		char *quoted = path_quote(span_of(path));
		text_format(left->first, sizeof(left->first), "%s", quoted);
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

void transport_note_add(char note[TRANSPORT_NOTE_MAX], const char *text)
{
	size_t len = strlen(note);
	if (*text && !strstr(note, text)) {
		text_append(note, TRANSPORT_NOTE_MAX, "%s%s", len > 0 ? "; " : "", text);
	}
}

void transport_hold(struct transport *transport, bool holds)
{
	if (transport->impl->hold) {
		transport->impl->hold(transport, holds);
	}
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
