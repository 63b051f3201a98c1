/* SPDX-License-Identifier: MIT */
#include "base/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/buf.h"
#include "base/fd.h"

struct confine *confine_create(void)
{
	struct confine *confine = mem_alloc_zero(sizeof(*confine));
	confine->references = 1;
	return confine;
}

static void add_root(struct confine *confine, const char *name, const char *real, dev_t disk)
{
	confine->roots[confine->count++] = (struct confine_root){
		.name = mem_strdup(name), .real = mem_strdup(real), .disk = disk};
}

bool confine_has(const struct confine *confine, const char *name, const char *real)
{
	for (size_t i = 0; i < confine->count; i++) {
		if (strcmp(confine->roots[i].name, name) == 0 &&
			strcmp(confine->roots[i].real, real) == 0) {
			return true;
		}
	}
	return false;
}

struct confine *confine_extend(const struct confine *confine, const char *name, const char *real)
{
	struct confine *extended = confine_create();
	extended->owner = confine->owner;
	extended->roots = mem_alloc((confine->count + 1) * sizeof(*extended->roots));
	for (size_t i = 0; i < confine->count; i++) {
		const struct confine_root *root = &confine->roots[i];
		add_root(extended, root->name, root->real, root->disk);
	}
	add_root(extended, name, real, 0);
	return extended;
}

struct confine *confine_without(const struct confine *confine, const char *name)
{
	struct confine *rest = confine_create();
	rest->owner = confine->owner;
	rest->roots = mem_alloc((confine->count + 1) * sizeof(*rest->roots));
	for (size_t i = 0; i < confine->count; i++) {
		if (strcmp(confine->roots[i].name, name) != 0) {
			add_root(rest, confine->roots[i].name, confine->roots[i].real,
				confine->roots[i].disk);
		}
	}
	return rest;
}

void confine_set_disk(struct confine *confine, dev_t disk)
{
	confine->roots[confine->count - 1].disk = disk;
}

struct confine *confine_reference(struct confine *confine)
{
	confine->references++;
	return confine;
}

void confine_release(struct confine *confine)
{
	if (!confine || --confine->references > 0) {
		return;
	}
	for (size_t i = 0; i < confine->count; i++) {
		free(confine->roots[i].name);
		free(confine->roots[i].real);
	}
	free(confine->roots);
	free(confine);
}

const struct confine_root *confine_find_root(
	const struct confine *confine, const char *path, size_t *out_len)
{
	const struct confine_root *best = NULL;
	for (size_t i = 0; i < confine->count; i++) {
		const struct confine_root *root = &confine->roots[i];
		size_t len = strcmp(root->name, "/") == 0 ? 0 : strlen(root->name);
		bool begins = strncmp(root->name, path, len) == 0 &&
		              (path[len] == '/' || path[len] == '\0');
		if (begins && (!best || len > *out_len)) {
			best = root;
			*out_len = len;
		}
	}
	return best;
}

bool confine_refuse(struct error *err, const char *path, const char *rule)
{
	return error_set_reason(
		err, ERROR_DENIED, "SECURITY_VIOLATION", "%s: refused, %s", path, rule);
}

void confined_finish(struct confined *confined)
{
	fd_close(&confined->parent);
}

int confined_open(const struct confined *confined, int flags, struct error *err)
{
	int fd = beneath_open(confined->parent, *confined->name ? confined->name : ".",
		flags | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	int errnum = errno;
	if (fd >= 0) {
		return fd;
	}
	if (errnum == ELOOP || errnum == EXDEV || errnum == EAGAIN || errnum == ENOENT) {
		error_set(err, ERROR_UNAVAILABLE, "%s: it was replaced meanwhile", confined->path);
	} else {
		error_set_errno(err, errnum, "%s", confined->path);
	}
	return -1;
}
