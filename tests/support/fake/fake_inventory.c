/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/soon.h"
#include "tests/support/fake/internal.h"

/*
 * The sandboxes "elsewhere" are the files of a folder: the name of a file is the sandbox's, and its
 * lines are id, state, profile, workspace, created, why, and whether it is in use ("used"). A stop
 * appends a line "stop", which overrides the state; a delete removes the file.
 */
enum { LINE_ID, LINE_STATE, LINE_PROFILE, LINE_WORKSPACE, LINE_CREATED, LINE_WHY, LINE_USED };
enum { LINE_STOPPED = LINE_USED + 1, LINE_COUNT, FILE_MAX = 4096 };

struct fake_inventory {
	struct soon later;
	struct ev_loop *loop;
	char *folder; // owned; NULL: there are no sandboxes
	char *name;   // owned; NULL for a list
	enum inventory_act act;
	bool fails;
	const struct inventory_listener *listener;
	void *data;
};

struct fake_file {
	char text[FILE_MAX];
	const char *lines[LINE_COUNT]; // in it; "" where there is none
};

static void path_of(const struct fake_inventory *self, const char *name, char path[FILE_PATH_MAX])
{
	snprintf(path, FILE_PATH_MAX, "%s/%s", self->folder, name);
}

static bool read_file(const struct fake_inventory *self, const char *name, struct fake_file *file)
{
	char path[FILE_PATH_MAX];
	path_of(self, name, path);
	FILE *stream = fopen(path, "r");
	if (!stream) {
		return false;
	}
	file->text[fread(file->text, 1, sizeof(file->text) - 1, stream)] = '\0';
	fclose(stream);
	char *rest = file->text;
	for (int i = 0; i < LINE_COUNT; i++) {
		char *line = strsep(&rest, "\n");
		file->lines[i] = line ? line : "";
	}
	return true;
}

static void raise_entry(const struct fake_inventory *self, const char *name)
{
	struct fake_file file;
	if (name[0] == '.' || !read_file(self, name, &file)) {
		return;
	}
	struct inventory_entry entry = {
		.name = name,
		.id = file.lines[LINE_ID],
		.state = *file.lines[LINE_STOPPED] ? "stopped" : file.lines[LINE_STATE],
		.profile = file.lines[LINE_PROFILE],
		.workspace = file.lines[LINE_WORKSPACE],
		.created = file.lines[LINE_CREATED],
		.why = file.lines[LINE_WHY],
		.is_in_use = strcmp(file.lines[LINE_USED], "used") == 0,
	};
	self->listener->on_entry(self->data, &entry);
}

static bool list(const struct fake_inventory *self, struct error *err)
{
	struct dirent **names;
	int count = scandir(self->folder, &names, NULL, alphasort);
	if (count < 0) {
		return error_set_errno(err, errno, "fake: %s", self->folder);
	}
	for (int i = 0; i < count; i++) {
		raise_entry(self, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	return true;
}

static bool change(const struct fake_inventory *self, struct error *err)
{
	struct fake_file file;
	char path[FILE_PATH_MAX];
	if (!read_file(self, self->name, &file)) {
		return error_set(err, ERROR_NOT_FOUND, "fake: no sandbox %s", self->name);
	}
	if (strcmp(file.lines[LINE_USED], "used") == 0) {
		return error_set(err, ERROR_DENIED, "fake: %s is in use", self->name);
	}
	path_of(self, self->name, path);
	if (self->act != INVENTORY_STOP) {
		return unlink(path) == 0 || error_set_errno(err, errno, "fake: %s", path);
	}
	FILE *stream = fopen(path, "a");
	if (!stream) {
		return error_set_errno(err, errno, "fake: %s", path);
	}
	fputs("stop\n", stream);
	fclose(stream);
	return true;
}

static void on_later(struct soon *soon)
{
	struct fake_inventory *self = CONTAINER_OF(soon, struct fake_inventory, later);
	struct error err;
	bool ok = true;
	if (self->fails) {
		ok = error_set(&err, ERROR_UNAVAILABLE, "fake: inventory fails");
	} else if (self->folder) {
		ok = self->act == INVENTORY_LIST ? list(self, &err) : change(self, &err);
	} else if (self->name) {
		ok = error_set(&err, ERROR_NOT_FOUND, "fake: no sandbox %s", self->name);
	}
	self->listener->on_done(self->data, ok ? NULL : &err);
	free(self->folder);
	free(self->name);
	free(self);
}

bool fake_inventory(struct provider *provider, const struct sandbox_request *request,
	enum inventory_act act, const char *name, const struct inventory_listener *listener,
	void *data, struct error *err)
{
	struct fake_inventory *self = mem_alloc_zero(sizeof(*self));
	self->loop = fake_loop(provider);
	self->folder = mem_strdup_or_null(settings_get(request->settings, "inventory"));
	self->name = mem_strdup_or_null(name);
	self->act = act;
	LIST_FOR_EACH(setting, &request->settings->list, struct setting, link) {
		self->fails |= strcmp(setting->key, "fail") == 0 &&
		               strcmp(setting->value, "inventory") == 0;
	}
	self->listener = listener;
	self->data = data;
	soon_init(&self->later, self->loop, on_later);
	soon_start(&self->later);
	return true;
}
