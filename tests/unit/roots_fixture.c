/* SPDX-License-Identifier: MIT */
#include "tests/unit/roots_fixture.h"

int set_up_roots(void **state)
{
	set_up(state);
	struct fixture *fixture = *state;
	fixture->stage.capabilities.isolated = true;
	fixture->stage.capabilities.maps_paths = true;
	profile_of(fixture)->toolhost = TOOLHOST_EDITOR;
	return 0;
}

void open_session(struct fixture *fixture, int index, int id, const char *cwd, const char *session)
{
	editor_says(fixture, "'id':'new','method':'session/new','params':{'cwd':'%s'}", cwd);
	agent_hears(fixture, index, "'id':%d,'method':'session/new','params':{'cwd':'/runtime%s'}",
		id, cwd);
	agent_says(fixture, index, "'id':%d,'result':{'sessionId':'%s'}", id, session);
}

void greet_further(struct fixture *fixture, int index)
{
	agent_hears(fixture, index, "'id':0,%s", initialize_request);
	agent_says(fixture, index, "'id':0,%s", initialize_result);
}

void begin_with_two(struct fixture *fixture)
{
	fixture->stage.roots_max = 1;
	begin_greeted(fixture);
	open_session(fixture, 0, 1, "/one", "s");
	editor_hears(fixture, "'id':'new','result':{'sessionId':'s'}");
	editor_says(fixture, "'id':'new','method':'session/new','params':{'cwd':'/two'}");
	greet_further(fixture, 1);
	agent_hears(fixture, 1, "'id':1,'method':'session/new','params':{'cwd':'/runtime/two'}");
	agent_says(fixture, 1, "'id':1,'result':{'sessionId':'s'}");
	editor_hears(fixture, "'id':'new','result':{'sessionId':'s~2'}");
}
