/* SPDX-License-Identifier: MIT */
#include "providers/container/mount.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/hash.h"
#include "base/json_utf8.h"
#include "base/path_quote.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/local/cell/plan.h"

enum { MOUNT_MAX = 8 * FILE_PATH_MAX, VARIANT_MAX = 4096 };

static bool is_podman(const char *engine)
{
	return strcmp(path_last_part(engine), "podman") == 0;
}

bool container_mount_check(const char *engine, const char *const *environment, struct error *err)
{
	static const struct {
		bool is_podman;
		const char *name, *local; // beginning of a value that means this machine
	} rows[] = {{true, "CONTAINER_HOST", "unix:"}, {true, "CONTAINER_CONNECTION", NULL},
		{false, "DOCKER_HOST", "unix:"}};
	for (size_t i = 0; environment && i < ARRAY_LENGTH(rows); i++) {
		const char *value = environment_get(environment, rows[i].name);
		const char *local = rows[i].local;
		bool is_local = local && value && strncmp(value, local, strlen(local)) == 0;
		if (rows[i].is_podman == is_podman(engine) && value && *value && !is_local) {
			return error_set(err, ERROR_CONFIG,
				"mount = same-path: the engine must run on this machine, and the "
				"variable %s (%s) leads to another one; unset it, or use mount = "
				"none",
				rows[i].name, value);
		}
	}
	return true;
}

/* A field of comma-separated values (RFC 4180); a "%" becomes "%%", so that it is no letter. */
static void add_field(struct buf *text, const char *name, const char *path)
{
	(void)!buf_append_format(text, NULL, ",\"%s=", name);
	for (; *path; path++) {
		bool is_doubled = *path == '"' || *path == '%';
		(void)!buf_append(text, (struct span){path, 1}, NULL);
		(void)!buf_append(text, (struct span){path, is_doubled}, NULL);
	}
	(void)!buf_append(text, SPAN_LITERAL("\""), NULL);
}

static void add_mount(char ***words, const struct cell_entry *entry)
{
	struct buf text;
	buf_init(&text, MOUNT_MAX);
	(void)!buf_append(&text, SPAN_LITERAL("type=bind"), NULL);
	add_field(&text, "src", entry->path);
	add_field(&text, "dst", entry->path);
	if (entry->rule == CELL_READ) {
		(void)!buf_append(&text, SPAN_LITERAL(",ro=true"), NULL);
	}
	char *word = mem_strndup(buf_span(&text));
	words_append(words, "--mount");
	words_append(words, word);
	free(word);
	buf_finish(&text);
}

/*
 * A volume that the image declares in the workspace would make a folder there, and hide what the
 * workspace has in it.
 */
static void add_no_volumes(char ***words, const char *engine)
{
	if (is_podman(engine)) { // docker has no such option
		words_append(words, "--image-volume");
		words_append(words, "ignore");
	}
}

/*
 * A program of root's in the container could make files of root's in the workspace, and programs
 * that anybody on this machine runs as root. So nobody there can become root. The engine must not
 * give the user's files another SELinux label, so it may not separate the container by labels. The
 * image's own command for health would run before the broker has compared the mounts.
 */
static void add_user(char ***words, const char *engine, const struct exec_show *show)
{
	static const char *const always[] = {"--cap-drop", "all", "--security-opt",
		"no-new-privileges", "--security-opt", "label=disable", "--no-healthcheck", NULL};
	char user[64];
	text_whole(user, sizeof(user), "%u:%u", (unsigned)show->uid, (unsigned)show->gid);
	words_append(words, "--user");
	words_append(words, user);
	if (is_podman(engine) && geteuid() != 0) {
		words_append(words, "--userns");
		words_append(words, "keep-id");
	}
	words_append_all(words, always);
}

/*
 * The engine would mount another path: reading comma-separated values makes a line break of "\r\n",
 * and its JSON has no bytes that are not UTF-8.
 */
static bool can_name(const char *path, struct error *err)
{
	bool is_whole = utf8_valid_length(path, strlen(path)) == strlen(path);
	if (is_whole && !strchr(path, '\r')) {
		return true;
	}
	char *quoted = path_quote(span_of(path));
	error_set(err, ERROR_CONFIG,
		"no engine can mount %s, because its name has %s: rename it, or use mount = none",
		quoted, is_whole ? "a carriage return" : "bytes that are not UTF-8");
	free(quoted);
	return false;
}

bool container_mount_show(
	struct exec_profile *profile, const struct exec_show *show, struct error *err)
{
	enum { BEFORE = 3 }; // the engine, "run", "--detach"
	for (size_t i = 0; i < show->count; i++) {
		if (!can_name(show->entries[i].path, err)) {
			return false;
		}
	}
	char **old = profile->words[EXEC_START];
	char **words = NULL;
	char variant[VARIANT_MAX];
	uint64_t hash = HASH_START;
	for (size_t i = 0; i < BEFORE; i++) {
		words_append(&words, old[i]);
	}
	add_user(&words, old[0], show);
	add_no_volumes(&words, old[0]);
	for (size_t i = 0; i < show->count; i++) {
		add_mount(&words, &show->entries[i]);
	}
	for (char **word = words; *word; word++) {
		hash = hash_text(hash, *word);
	}
	words_append_all(&words, (const char *const *)old + BEFORE);
	words_free(old);
	profile->words[EXEC_START] = words;
	text_format(variant, sizeof(variant), "%s %016" PRIx64, profile->variant, hash);
	mem_set_text(&profile->variant, variant);
	return true;
}
