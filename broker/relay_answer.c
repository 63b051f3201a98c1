/* SPDX-License-Identifier: MIT */
#include "broker/relay_internal.h"

#include <assert.h>
#include <stdio.h>

#include "broker/listing_records.h"
#include "broker/relay_claim.h"
#include "broker/relay_order.h"
#include "broker/restore.h"

/* What the broker answers itself, to either side. */

const struct failure relay_is_ending = {"SHUTTING_DOWN", "stop", "the broker is ending", {NULL, 0}};
const struct failure relay_has_ended = {"SHUTTING_DOWN", "stop", "the broker has ended", {NULL, 0}};

void relay_fail(struct relay *relay, struct span id, const struct failure *failure)
{
	if (restore_takes_failure(relay, id, failure)) {
		return; // a request of the broker's own
	}
	relay_claim_drop(relay, id);
	listing_records_drop(relay, id);
	relay_order_note(relay, id);
	buf_clear(&relay->scratch);
	failure_write(&relay->scratch, id, failure);
	relay_send_editor(relay, buf_span(&relay->scratch));
}

bool relay_admits(struct relay *relay, const struct call *call, const struct backlog *backlog)
{
	const struct profile *profile = relay->config.profile;
	char text[256];
	if (backlog->count < profile->max_requests && backlog->bytes <= profile->max_queue) {
		return true;
	}
	if (call->message.kind != MESSAGE_REQUEST) {
		return false;
	}
	snprintf(text, sizeof(text),
		"more %s than max-requests, or max-queue bytes of them, wait for %s", backlog->what,
		backlog->that);
	relay_fail(relay, call->message.id,
		&(struct failure){"RESOURCE_LIMIT_EXCEEDED", backlog->stage, text, {NULL, 0}});
	return false;
}

void peer_fail(struct peer *peer, struct span id, const struct failure *failure)
{
	buf_clear(&peer->relay->scratch);
	failure_write(&peer->relay->scratch, id, failure);
	peer_send(peer, buf_span(&peer->relay->scratch));
}

/* A file's content may be longer than the relay's scratch. */
static void write_answer(struct buf *out, struct span id, struct span result)
{
	const struct span before = SPAN_LITERAL("{\"jsonrpc\":\"2.0\",\"id\":");
	const struct span between = SPAN_LITERAL(",\"result\":");
	buf_init(out, before.len + id.len + between.len + result.len + 1);
	bool ok = buf_reserve(out, out->max, NULL) && buf_append(out, before, NULL) &&
	          buf_append(out, id, NULL) && buf_append(out, between, NULL) &&
	          buf_append(out, result, NULL) && buf_append(out, SPAN_LITERAL("}"), NULL);
	assert(ok);
	(void)ok;
}

void peer_answer(struct peer *peer, struct span id, struct span result)
{
	struct buf out;
	write_answer(&out, id, result);
	peer_send_taken(peer, &out);
}

void relay_answer(struct relay *relay, struct span id, struct span result)
{
	struct buf out;
	write_answer(&out, id, result);
	relay_order_note(relay, id);
	relay_send_editor(relay, buf_span(&out));
	buf_finish(&out);
}

void relay_answer_cancelled(struct relay *relay, struct span id)
{
	relay_order_note(relay, id);
	buf_clear(&relay->scratch);
	if (buf_append_format(&relay->scratch, NULL,
		    "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"error\":{\"code\":%d,"
		    "\"message\":\"the request was cancelled\"}}",
		    (int)id.len, id.data, REQUEST_CANCELLED)) {
		relay_send_editor(relay, buf_span(&relay->scratch));
	}
}
