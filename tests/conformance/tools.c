/* SPDX-License-Identifier: MIT */
#include "tests/support/toolhost/fixture.h"

#include "tests/conformance/world.h"

void tools_begin(struct world *world)
{
	fixture_begin(world->loop, world->sandbox);
}

void tools_end(struct world *world)
{
	fixture_end();
	world_run_for(world, 10); // workers hand back their files
}
