/* SPDX-License-Identifier: MIT */
#include "broker/relay/opens.h"

#include "base/words.h"

static void finish(void *part, void *request)
{
	struct opens *opens = part;
	words_free(opens->roots);
	words_free(opens->notices);
}

static const struct part_type type = {.size = sizeof(struct opens), .finish = finish};

struct opens *opens_of(struct request *request)
{
	return parts_get(&request->parts, &type);
}

const struct opens *opens_find(const struct request *request)
{
	return parts_find(&request->parts, &type);
}

struct session *opens_session(struct relay *relay, const struct request *request)
{
	const struct opens *opens = opens_find(request);
	return opens && opens->has_opened && request->session_id
	               ? session_find(&relay->sessions, request->session_id)
	               : NULL;
}
