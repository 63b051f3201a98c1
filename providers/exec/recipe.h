/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_RECIPE_H
#define PROVIDERS_EXEC_RECIPE_H

#include "providers/exec/writers.h"
#include "providers/forward_ports.h"
#include "providers/provider.h"

/*
 * The file from which a platform builds the image of its instances, and the folder of that file,
 * which it uses for the build. A build runs what they say, without the limits and the network rules
 * of the profile. So nobody else may be able to write them: no other user, and no agent that works
 * in the workspace. Loop thread; the worker pool reads the files.
 */
struct exec_recipe;

enum { EXEC_RECIPE_SIZE = 33 }; // hexadecimal digits and a NUL

/* What a file of the workspace says about the instances. Zeroed is empty. All texts are owned. */
struct exec_found {
	char *source;        // that file; all paths are absolute and without links
	char *image;         // NULL: the image is built
	char *file, *folder; // the Dockerfile, and the folder for the build, in the workspace
	char **build;        // words for EXEC_BUILD (base/words.h), like the next ones; or NULL
	char **start;        // words for EXEC_START; or NULL
	char **lines;        // of sh, for sandbox_setup; or NULL
	char **line_names;   // as many; or NULL
	uint16_t ports[FORWARDS_MAX]; // to open here
	size_t port_count;
	char **ignored;       // what the file says and we do not do; or NULL
	const char *writable; // why somebody else can write that file (writers.h); or NULL
};
void exec_found_finish(struct exec_found *found);

/* For a reader of such a file; borrowed. */
struct exec_place {
	const char *workspace; // without links
	const struct writers *writers;
	bool is_shown;    // exec_profile.shows_workspace
	bool opens_ports; // exec_profile.opens_ports
};

/* Reads such a file, on the pool. */
typedef bool exec_recipe_find(
	const struct exec_place *place, struct exec_found *out, struct error *err);

/* The texts are copied. */
struct exec_recipe_request {
	const char *file;         // absolute; NULL with `find`
	exec_recipe_find *find;   // finds the file in the workspace; or NULL
	const char *workspace;    // NULL: unknown
	bool may_be_in_workspace; // the user trusts the agents there
	bool is_shown;            // struct exec_place
	bool opens_ports;         // the same
};

/*
 * `content` names the content of the file, the words for the build, and what the folder lists:
 * names, kinds, sizes and times of change. `file` and `folder` are the paths without links. Of the
 * workspace itself, as a folder for the build, the list is left out, because each edit would change
 * it.
 */
struct exec_recipe_result {
	const char *file, *folder, *content; // NULL: nothing is built
	const struct exec_found *found;      // NULL without `find`
};

/*
 * Called once, after exec_recipe_look has returned. The result is borrowed, or NULL with an error.
 * DOCKERFILE_REFUSED: somebody else could write there.
 */
typedef void exec_recipe_done(
	void *data, const struct exec_recipe_result *result, const struct error *err);

struct exec_recipe *exec_recipe_look(const struct provider_context *context,
	const struct exec_recipe_request *request, exec_recipe_done *done, void *data,
	struct error *err) ATTR_NODISCARD;
void exec_recipe_cancel(struct exec_recipe *recipe); // no more calls; NULL is fine

#endif
