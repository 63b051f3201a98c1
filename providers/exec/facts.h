/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_FACTS_H
#define PROVIDERS_EXEC_FACTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * What the start of a runner prints about the place where it starts (providers/remote/start.sh,
 * providers/runner/begin.c). The lines are untrusted. It knows no connection. sandbox.c uses it.
 */
struct exec_facts {
	char **environment; // owned; of a command there
	char *run_name;     // owned; the folder of the run, or a name; NULL: it was not printed
	char *node;         // owned; the machine's name; may be NULL
	char *left;         // owned; why processes of an earlier run are left; NULL: none are
	unsigned ended;     // processes of earlier runs that it has ended
};

void exec_facts_init(struct exec_facts *facts);
void exec_facts_finish(struct exec_facts *facts);

/* Takes a line. `token` is the name of our own run. Ignores lines that tell something else. */
void exec_facts_take(struct exec_facts *facts, const char *line, const char *token);

/* Keeps a variable, unless there is one of its name, or every shell sets it for itself. */
void exec_facts_add_variable(struct exec_facts *facts, const char *entry);

/* The value if it is an absolute path, or `fallback`. */
const char *exec_facts_path(const struct exec_facts *facts, const char *name, const char *fallback);

/*
 * The engine gives HOME=/ to a user whom the image does not know, and who cannot write there. Then
 * /tmp is the home.
 */
void exec_facts_choose_home(struct exec_facts *facts);

/* Writes that processes of a lost connection were ended. False: there were none. */
bool exec_facts_say_ended(
	const struct exec_facts *facts, const char *place, char *out, size_t size);

/* Why no runner can work there; `err` gets a sentence for people. */
struct exec_unfit {
	const char *place;  // for people
	const char *why;    // untrusted
	long long grace_ms; // of the profile
	bool has_ended;     // the command that should start it has ended
	const char *before; // an earlier failure, or ""
};
void exec_facts_explain(
	const struct exec_facts *facts, const struct exec_unfit *unfit, struct error *err);

#endif
