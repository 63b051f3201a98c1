/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_RECIPE_H
#define PROVIDERS_EXEC_RECIPE_H

#include "providers/provider.h"

/*
 * The file from which a platform builds the image of its instances, and the folder of that file,
 * which it uses for the build. A build runs what they say, without the limits and the network rules
 * of the profile. So nobody else may be able to write them: no other user, and no agent that works
 * in the workspace. Loop thread; the worker pool reads the files.
 */
struct exec_recipe;

enum { EXEC_RECIPE_SIZE = 33 }; // hexadecimal digits and a NUL

/* The texts are copied. */
struct exec_recipe_request {
	const char *file;         // absolute
	const char *workspace;    // NULL: unknown
	bool may_be_in_workspace; // the user trusts the agents there
};

/*
 * Called once, after exec_recipe_look has returned. `content` names the content of the file and
 * what the folder lists: names, kinds, sizes and times of change. `file` and `folder` are the paths
 * without links, borrowed. DOCKERFILE_REFUSED: somebody else could write there.
 */
typedef void exec_recipe_done(void *data, const char *file, const char *folder, const char *content,
	const struct error *err);

struct exec_recipe *exec_recipe_look(const struct provider_context *context,
	const struct exec_recipe_request *request, exec_recipe_done *done, void *data,
	struct error *err) ATTR_NODISCARD;
void exec_recipe_cancel(struct exec_recipe *recipe); // no more calls; NULL is fine

#endif
