/* SPDX-License-Identifier: MIT */
#include "providers/daytona/cli_profile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/fd.h"
#include "base/json_doc.h"
#include "base/real_path.h"

enum { FILE_MAX = 256 * 1024, READ_SIZE = 4096 };

/* A relative path would lead into the workspace, where an agent can write. */
static char *find_path(const char *const *environment)
{
	static const struct {
		const char *variable, *below;
	} places[] = {{"DAYTONA_CONFIG_DIR", "config.json"},
		{"XDG_CONFIG_HOME", "daytona/config.json"},
		{"HOME", ".config/daytona/config.json"}};
	for (size_t i = 0; environment && i < ARRAY_LENGTH(places); i++) {
		const char *folder = environment_get(environment, places[i].variable);
		if (folder && folder[0] == '/') {
			return path_join(folder, places[i].below);
		}
	}
	return NULL;
}

/* ---- the file ---- */

/* The file says which server gets a key, so nobody else may be able to write it. */
static bool check_file(int fd, const char *path, struct error *err)
{
	struct stat status;
	if (fstat(fd, &status) < 0) {
		return error_set_errno(err, errno, "reading %s", path);
	}
	if (!S_ISREG(status.st_mode)) {
		return error_set(err, ERROR_CONFIG, "%s: expected a file", path);
	}
	if (status.st_uid != geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH))) {
		return error_set(err, ERROR_CONFIG,
			"%s: expected a file that belongs to this user and that nobody else may "
			"write (chmod go-w), because it names the server that gets an API key",
			path);
	}
	return true;
}

static bool read_file(const char *path, struct buf *text, bool *out_exists, struct error *err)
{
	int fd ATTR_CLEANUP(fd_cleanup) = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	*out_exists = fd >= 0;
	if (fd < 0) {
		return errno == ENOENT || errno == ENOTDIR ||
		       error_set_errno(err, errno, "reading %s", path);
	}
	if (!check_file(fd, path, err)) {
		return false;
	}
	ssize_t count = 1;
	while (count > 0) {
		char *at = buf_reserve(text, READ_SIZE, err);
		if (!at) {
			return error_prefix(err, "reading %s", path);
		}
		count = read(fd, at, READ_SIZE);
		buf_commit(text, count > 0 ? (size_t)count : 0);
	}
	return count == 0 || error_set_errno(err, errno, "reading %s", path);
}

/* ---- content ---- */

static char *text_of(const struct json_doc *doc, json_node object, const char *name)
{
	char *text = json_string(doc, json_path(doc, object, name));
	if (text && !*text) {
		free(text);
		text = NULL;
	}
	return text;
}

static void take(struct daytona_cli_profile *profile, const struct json_doc *doc, json_node one)
{
	profile->name = text_of(doc, one, "name");
	profile->name = profile->name ? profile->name : mem_strdup("");
	profile->url = text_of(doc, one, "api.url");
	profile->key = text_of(doc, one, "api.key");
}

static bool read_profiles(struct daytona_cli_profile *profile, struct span text, struct error *err)
{
	struct json_doc *doc = json_doc_parse(text, err);
	if (!doc) {
		err->code = ERROR_CONFIG;
		return error_prefix(err, "%s", profile->path);
	}
	char *active = text_of(doc, 0, "activeProfile");
	json_node profiles = json_get(doc, 0, "profiles");
	json_node one =
		json_is(doc, profiles, JSON_ARRAY) ? json_first(doc, profiles) : JSON_NODE_NONE;
	while (active && one != JSON_NODE_NONE && !profile->name) {
		if (json_string_is(doc, json_get(doc, one, "id"), active)) {
			take(profile, doc, one);
		}
		one = json_next(doc, one);
	}
	free(active);
	json_doc_destroy(doc);
	return true;
}

/* ---- for the caller ---- */

bool daytona_cli_profile_read(
	struct daytona_cli_profile *profile, const char *const *environment, struct error *err)
{
	struct buf text;
	bool exists = false;
	*profile = (struct daytona_cli_profile){.path = find_path(environment)};
	if (!profile->path) {
		return true;
	}
	buf_init(&text, FILE_MAX + READ_SIZE);
	bool ok = read_file(profile->path, &text, &exists, err) &&
	          (!exists || read_profiles(profile, buf_span(&text), err));
	buf_wipe(&text);
	if (!ok) {
		err->code = ERROR_CONFIG;
		daytona_cli_profile_finish(profile);
	}
	return ok;
}

void daytona_cli_profile_finish(struct daytona_cli_profile *profile)
{
	free(profile->path);
	free(profile->name);
	free(profile->url);
	mem_wipe_free(profile->key);
	*profile = (struct daytona_cli_profile){0};
}
