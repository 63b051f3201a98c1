/* SPDX-License-Identifier: MIT */
#include "providers/parting.h"

#include <stddef.h>

void partings_init(struct partings *partings, struct ev_loop *loop)
{
	partings->loop = loop;
	list_init(&partings->list);
}

void partings_wait(struct partings *partings)
{
	while (!list_is_empty(&partings->list)) {
		ev_run(partings->loop, EVRUN_ONCE);
	}
}

void partings_hurry(struct partings *partings)
{
	LIST_FOR_EACH(parting, &partings->list, struct parting, link) {
		parting_is_over(parting);
	}
}

static void on_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct parting *parting = CONTAINER_OF(timer, struct parting, due);
	list_remove(&parting->link);
	parting->end(parting);
}

void parting_begin(
	struct partings *partings, struct parting *parting, void (*end)(struct parting *parting))
{
	parting->of = partings;
	parting->end = end;
	list_append(&partings->list, &parting->link);
	ev_timer_init(&parting->due, on_due, PARTING_MS / 1000., 0.);
	ev_timer_start(partings->loop, &parting->due);
}

void parting_is_over(void *data)
{
	struct parting *parting = data;
	ev_timer_stop(parting->of->loop, &parting->due);
	ev_timer_set(&parting->due, 0., 0.);
	ev_timer_start(parting->of->loop, &parting->due);
}
