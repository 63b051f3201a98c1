/* SPDX-License-Identifier: MIT */
#include "broker/methods/forward_methods.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "broker/methods/sandbox_call.h"
#include "broker/session/answer.h"

enum { TEXT_SIZE = 96 };

static const long long ports[2] = {1, UINT16_MAX};
static const long long ports_or_any[2] = {0, UINT16_MAX};

/* A port that is open, or a request to close one. */
struct forward_call {
	struct sandbox_call call;
	uint16_t here; // 0: not open
};

static struct forward_call *from_call(struct sandbox_call *call)
{
	return CONTAINER_OF(call, struct forward_call, call);
}

static void destroy(struct sandbox_call *call)
{
	struct forward_call *self = from_call(call);
	if (self->here != 0) {
		sandbox_unforward(call->sandbox, self->here);
	}
	sandbox_call_finish(call);
	free(self);
}

/* False if the request was refused. */
static bool open_port(struct forward_call *self, uint16_t here, uint16_t inside)
{
	char text[TEXT_SIZE];
	struct error err;
	if (!sandbox_forward(self->call.sandbox, &here, inside, &err)) {
		sandbox_call_fail(&self->call, &err);
		return false;
	}
	self->here = here;
	text_format(text, sizeof(text), "localhost:%u to port %u", here, inside);
	sandbox_call_audit(&self->call, "_broker/forward", text);
	return true;
}

void forward_methods_open(struct relay *relay, const struct call *call)
{
	char result[TEXT_SIZE];
	long long inside, here;
	struct forward_call *self = sandbox_call_begin(relay, call, sizeof(*self), destroy);
	if (!self || !sandbox_call_has_room(&self->call) ||
		!sandbox_call_number(&self->call, "port", ports, 0, &inside) ||
		!sandbox_call_number(&self->call, "localPort", ports_or_any, 0, &here)) {
		return;
	}
	if (inside == 0) {
		sandbox_call_refuse(&self->call, "INVALID_PARAMS",
			"port: expected the number of a port in the sandbox");
	} else if (open_port(self, (uint16_t)here, (uint16_t)inside)) {
		text_format(result, sizeof(result), "{\"localPort\":%u}", self->here);
		relay_answer(relay, span_of(self->call.id), span_of(result));
		sandbox_call_keep(&self->call);
	}
}

static struct forward_call *find(const struct forward_call *asker, long long here)
{
	LIST_FOR_EACH(call, sandbox_calls_of(asker->call.relay), struct sandbox_call, link) {
		if (call->destroy == destroy && from_call(call)->here == here &&
			strcmp(call->session_id, asker->call.session_id) == 0) {
			return from_call(call);
		}
	}
	return NULL;
}

void forward_methods_close(struct relay *relay, const struct call *call)
{
	long long here;
	struct forward_call *asker = sandbox_call_begin(relay, call, sizeof(*asker), destroy);
	if (!asker || !sandbox_call_number(&asker->call, "localPort", ports, 0, &here)) {
		return;
	}
	struct forward_call *found = here != 0 ? find(asker, here) : NULL;
	if (!found) {
		sandbox_call_refuse(&asker->call, "INVALID_PARAMS",
			"localPort: the session has opened no such port by _broker/forward");
		return;
	}
	destroy(&found->call);
	relay_answer(relay, span_of(asker->call.id), SPAN_LITERAL("{}"));
	destroy(&asker->call);
}
