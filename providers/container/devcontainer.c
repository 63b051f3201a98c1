/* SPDX-License-Identifier: MIT */
#include "providers/container/devcontainer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json_doc.h"
#include "base/jsonc_plain.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/container/commands.h"
#include "providers/container/devcontainer_dockerfile.h"
#include "providers/container/devcontainer_members.h"

enum { SOURCE_MAX = 1 << 20 };

static const char *const places[] = {".devcontainer/devcontainer.json", ".devcontainer.json"};

/* ---- the file ---- */

static bool fail(const char *path, int errnum, struct error *err)
{
	return error_set_errno(err, errnum, "devcontainer = auto: reading %s", path);
}

static bool refuse(const char *path, const char *why, struct error *err)
{
	return error_set_reason(err, ERROR_CONFIG, "DOCKERFILE_REFUSED",
		"devcontainer = auto: %s %s: the file and what it names must be in the workspace "
		"itself",
		path, why);
}

static bool read_all(int fd, const char *path, struct buf *text, struct error *err)
{
	struct stat status;
	char piece[16 * 1024];
	ssize_t count;
	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
		return error_set(err, ERROR_CONFIG, "devcontainer = auto: %s is not a file", path);
	}
	while ((count = read(fd, piece, sizeof(piece))) > 0) {
		if (!buf_append(text, (struct span){piece, (size_t)count}, err)) {
			return error_set(err, ERROR_LIMIT,
				"devcontainer = auto: %s has more than %d bytes", path, SOURCE_MAX);
		}
	}
	return count == 0 || fail(path, errno, err);
}

/* Opens the first of the places that exists. A link could lead out of the workspace. */
static int open_source(const char *workspace, struct exec_found *out, struct error *err)
{
	for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
		char *path = path_join(workspace, places[i]);
		char *real = real_path_find(path);
		bool is_plain = real && strcmp(real, path) == 0;
		int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
		int errnum = errno;
		free(real);
		if (fd < 0 && (errnum == ENOENT || errnum == ENOTDIR)) {
			free(path);
			continue;
		}
		out->source = path;
		if (!is_plain) {
			fd_close(&fd);
			(void)refuse(path, "is a link, or reached by one", err);
		} else if (fd < 0) {
			(void)fail(path, errnum, err);
		}
		return fd;
	}
	error_set(err, ERROR_CONFIG,
		"devcontainer = auto: %s has neither %s nor %s: add one, or name an image in the "
		"profile (image = …)",
		workspace, places[0], places[1]);
	return -1;
}

/* ---- what it says ---- */

/* Names that we use, and names that only an editor uses. */
static const char *const used[] = {"image", "build", "dockerFile", "context", "containerUser",
	"remoteUser", "containerEnv", "remoteEnv", "mounts", "onCreateCommand",
	"updateContentCommand", "postCreateCommand", "forwardPorts", "name", "$schema",
	"customizations", NULL};
static const char *const used_in_build[] = {"dockerfile", "context", "args", "target", NULL};

/* The place of a path that is relative to the file, without links; NULL if it leads out. */
static char *place_of(
	const char *workspace, const char *source, const char *path, struct error *err)
{
	char *folder = mem_strdup(source);
	*strrchr(folder, '/') = '\0';
	char *whole = path_join(folder, path);
	char *real = real_path_find(whole);
	struct stat status;
	if (real && !path_is_at_or_below(real, workspace)) {
		(void)refuse(whole, "leads out of the workspace", err);
		free(real);
		real = NULL;
	} else if (!real || stat(real, &status) != 0) {
		(void)fail(whole, ENOENT, err);
		free(real);
		real = NULL;
	}
	free(whole);
	free(folder);
	return real;
}

static bool check_place(const char *image, const char *source, struct error *err)
{
	return devcontainer_is_image(image) ||
	       refuse(source,
		       "names a file of this machine as an image, or an image that the "
		       "broker has built, or an id",
		       err);
}

/* Sets *text to a string, which the caller frees, or to NULL if there is no such member. */
static bool take_text(
	const struct devcontainer *self, const char *path, char **text, struct error *err)
{
	json_node node = json_path(self->doc, 0, path);
	*text = json_string(self->doc, node);
	return *text || node == JSON_NODE_NONE ||
	       devcontainer_expected(self, path, "a string without a NUL", err);
}

/* The same for a member that has an older name, which counts only without the newer one. */
static bool take_either(const struct devcontainer *self, const char *path, const char *older,
	char **text, struct error *err)
{
	return take_text(self, path, text, err) && (*text || take_text(self, older, text, err));
}

static bool check_build(const struct devcontainer *self, struct error *err)
{
	json_node node = json_get(self->doc, 0, "build");
	return node == JSON_NODE_NONE || json_is(self->doc, node, JSON_OBJECT) ||
	       devcontainer_expected(self, "build", "an object", err);
}

static bool check_file(const char *path, struct error *err)
{
	struct buf text;
	ATTR_CLEANUP(fd_cleanup)
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		return fail(path, errno, err);
	}
	buf_init(&text, SOURCE_MAX);
	bool is_ok = read_all(fd, path, &text, err) &&
	             devcontainer_check_dockerfile(buf_span(&text), path, err);
	buf_finish(&text);
	return is_ok;
}

static bool take_build(const struct devcontainer *self, const char *file, struct error *err)
{
	char *context = NULL;
	const char *workspace = self->place->workspace;
	struct exec_found *out = self->out;
	if (!take_either(self, "build.context", "context", &context, err)) {
		return false;
	}
	out->file = place_of(workspace, out->source, file, err);
	out->folder =
		out->file ? place_of(workspace, out->source, context ? context : ".", err) : NULL;
	free(context);
	return out->folder && check_file(out->file, err) && devcontainer_take_build(self, err);
}

static bool take_image(const char *image, struct exec_found *out, struct error *err)
{
	bool is_ok = (container_check_image(image, err) ||
			     error_prefix(err, "devcontainer = auto: %s", out->source)) &&
	             check_place(image, out->source, err);
	out->image = is_ok ? mem_strdup(image) : NULL;
	return is_ok;
}

static bool take(const struct devcontainer *self, struct error *err)
{
	char *image = NULL, *file = NULL;
	bool is_ok = check_build(self, err) && take_text(self, "image", &image, err) &&
	             take_either(self, "build.dockerfile", "dockerFile", &file, err);
	devcontainer_ignore_unknown(self, 0, "", used);
	devcontainer_ignore_unknown(self, json_get(self->doc, 0, "build"), "build.", used_in_build);
	if (!is_ok) {
		/* The error is set. */
	} else if (file) {
		is_ok = take_build(self, file, err);
	} else if (image) {
		is_ok = take_image(image, self->out, err);
	} else {
		is_ok = error_set(err, ERROR_CONFIG,
			"devcontainer = auto: %s names neither an image nor a Dockerfile (image, "
			"build.dockerfile), and the broker supports no other source of an image, "
			"for example no dockerComposeFile: name an image in the profile (image = "
			"…)",
			self->out->source);
	}
	free(image);
	free(file);
	return is_ok && devcontainer_take_start(self, err) && devcontainer_take_lines(self, err) &&
	       devcontainer_take_ports(self, err);
}

static bool read_source(
	struct span text, const struct exec_place *place, struct exec_found *out, struct error *err)
{
	bool is_blank = false;
	char *plain = mem_alloc_zero(text.len + 1);
	struct json_doc *doc = NULL;
	bool is_ok = jsonc_plain(text, plain, &is_blank, err);
	if (is_ok && !is_blank) {
		doc = json_doc_parse_unchecked((struct span){plain, text.len}, err);
		is_ok = doc != NULL;
	}
	if (!is_ok) {
		(void)error_prefix(err, "devcontainer = auto: %s", out->source);
	} else if (!doc || !json_is(doc, 0, JSON_OBJECT)) {
		is_ok = error_set(err, ERROR_CONFIG,
			"devcontainer = auto: %s: expected a JSON object", out->source);
	} else {
		is_ok = take(&(struct devcontainer){doc, place, out}, err);
	}
	json_doc_destroy(doc);
	free(plain);
	return is_ok;
}

bool devcontainer_find(const struct exec_place *place, struct exec_found *out, struct error *err)
{
	struct buf text;
	ATTR_CLEANUP(fd_cleanup) int fd = open_source(place->workspace, out, err);
	if (fd < 0) {
		return false;
	}
	out->writable = writers_of_file(place->writers, fd);
	buf_init(&text, SOURCE_MAX);
	bool is_ok = read_all(fd, out->source, &text, err) &&
	             read_source(buf_span(&text), place, out, err);
	buf_finish(&text);
	return is_ok;
}
