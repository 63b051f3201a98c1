/* SPDX-License-Identifier: MIT */
#include "base/soon.h"

#include "base/attr.h"

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct soon *soon = CONTAINER_OF(timer, struct soon, timer);
	soon->call(soon);
}

void soon_init(struct soon *soon, struct ev_loop *loop, void (*call)(struct soon *soon))
{
	soon->loop = loop;
	soon->call = call;
	ev_timer_init(&soon->timer, on_timer, 0., 0.);
}

void soon_start(struct soon *soon)
{
	if (!ev_is_active(&soon->timer)) {
		ev_timer_set(&soon->timer, 0., 0.);
		ev_timer_start(soon->loop, &soon->timer);
	}
}

void soon_stop(struct soon *soon)
{
	if (soon->loop) {
		ev_timer_stop(soon->loop, &soon->timer);
	}
}

bool soon_is_due(const struct soon *soon)
{
	return ev_is_active(&soon->timer);
}
