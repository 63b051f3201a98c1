/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/agent/agent.h"
#include "tests/support/agent/raw.h"

/* One line for each session: its id, a tab, its cwd as JSON. */

struct session *agent_make_session(struct agent *agent, char *id, struct span cwd)
{
	struct session *session = mem_alloc_zero(sizeof(*session));
	session->id = id;
	session->quoted_id = raw_quote(span_of(id));
	session->cwd = cwd.len > 0 ? mem_strndup(cwd) : mem_strdup("null");
	session->mode = mem_strdup("\"ask\"");
	list_append(&agent->sessions, &session->link);
	return session;
}

void memory_read(struct agent *agent)
{
	FILE *file = agent->options.sessions != NULL ? fopen(agent->options.sessions, "r") : NULL;
	char *line = NULL;
	size_t size = 0;
	while (file != NULL && getline(&line, &size, file) > 0) {
		char *tab = strchr(line, '\t');
		line[strcspn(line, "\n")] = '\0';
		if (tab != NULL) {
			struct span id = {line, (size_t)(tab - line)};
			agent_make_session(agent, mem_strndup(id), span_of(tab + 1))->closed = true;
		}
	}
	free(line);
	if (file != NULL) {
		fclose(file);
	}
}

void memory_add(struct agent *agent, const struct session *session)
{
	FILE *file = agent->options.sessions != NULL ? fopen(agent->options.sessions, "a") : NULL;
	if (file != NULL) {
		fprintf(file, "%s\t%s\n", session->id, session->cwd);
		fclose(file);
	}
}
