/* SPDX-License-Identifier: MIT */
#include "providers/container/devcontainer_members.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/container/commands.h"
#include "providers/container/devcontainer_text.h"

enum {
	IGNORED_MAX = 32,
	SHOWN_MAX = 48,
	NAME_BYTES = 128,
	VALUE_BYTES = 4096,
	VARIABLES_MAX = 64, // of each kind
	MOUNTS_MAX = 16,
	TARGET_MAX = 256,
	USER_MAX = 32,
	STAGE_MAX = 128,
};

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
static const char digits[] = "0123456789";

static bool is_among(const char *set, char letter)
{
	return letter != '\0' && strchr(set, letter) != NULL;
}

/* Whether the text has only letters, digits and `more`, and no digit first unless allowed. */
static bool is_made_of(struct span text, const char *first, const char *more, size_t max)
{
	for (size_t i = 0; i < text.len; i++) {
		char letter = text.data[i];
		bool is_fine = is_among(letters, letter) || is_among(first, letter) ||
		               (i > 0 && (is_among(digits, letter) || is_among(more, letter)));
		if (!is_fine) {
			return false;
		}
	}
	return text.len > 0 && text.len <= max;
}

/* ---- what is not done ---- */

bool devcontainer_expected(const struct devcontainer *self, const char *member,
	const char *expected, struct error *err)
{
	return error_set(err, ERROR_CONFIG, "devcontainer = auto: %s: %s: expected %s",
		self->out->source, member, expected);
}

void devcontainer_name(char *out, size_t size, const char *prefix, struct span name)
{
	bool is_plain = is_made_of(name, "_0123456789", "_-", SHOWN_MAX);
	text_format(out, size, "%s%.*s", prefix, is_plain ? (int)name.len : 1,
		is_plain ? name.data : "?");
}

void devcontainer_ignore(const struct devcontainer *self, const char *prefix, struct span name)
{
	char text[2 * SHOWN_MAX];
	char ***ignored = &self->out->ignored;
	devcontainer_name(text, sizeof(text), prefix, name);
	if (words_count(*ignored) < IGNORED_MAX &&
		!words_contain((const char *const *)*ignored, text)) {
		words_append(ignored, text);
	}
}

void devcontainer_ignore_unknown(const struct devcontainer *self, json_node object,
	const char *prefix, const char *const *known)
{
	const struct json_doc *doc = self->doc;
	for (json_node member = json_first(doc, object); member != JSON_NODE_NONE;
		member = json_next(doc, member)) {
		struct span key = json_key(doc, member);
		bool is_known = false;
		for (size_t i = 0; known[i]; i++) {
			is_known = is_known || span_is(key, known[i]);
		}
		if (!is_known) {
			devcontainer_ignore(self, prefix, key);
		}
	}
}

/* ---- variables and arguments ---- */

/*
 * A name and no "=" would make the engine take the value from this machine's environment, and so
 * would a "*" in the name (podman-run(1)). BUILDKIT_… are orders for the engine's builder. The home
 * is where the broker puts the files of `copy`; it must not become the workspace.
 */
static bool is_variable(struct span name)
{
	static const char *const reserved[] = {"ACP_BROKER_", "BUILDKIT_"};
	for (size_t i = 0; i < ARRAY_LENGTH(reserved); i++) {
		size_t len = strlen(reserved[i]);
		if (name.len >= len && memcmp(name.data, reserved[i], len) == 0) {
			return false;
		}
	}
	return !span_is(name, "HOME") && is_made_of(name, "_", "_", NAME_BYTES);
}

static bool is_printable(const char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f) {
			return false;
		}
	}
	return true;
}

/* Appends the option and NAME=VALUE, or names the variable as ignored. */
static void add_variable(const struct devcontainer *self, const char *prefix, struct span name,
	const char *text, const char *option, char ***words)
{
	struct buf word;
	char *value = is_variable(name) ? devcontainer_expand(self->place, text, false) : NULL;
	if (!value || strlen(value) > VALUE_BYTES || !is_printable(value)) {
		devcontainer_ignore(self, prefix, name);
		free(value);
		return;
	}
	buf_init(&word, NAME_BYTES + VALUE_BYTES + 2);
	(void)!buf_append_format(&word, NULL, "%.*s=%s", (int)name.len, name.data, value);
	char *whole = mem_strndup(buf_span(&word));
	words_append(words, option);
	words_append(words, whole);
	free(whole);
	buf_finish(&word);
	free(value);
}

/* `member` is the path of an object of strings; a null unsets a variable, which we do not. */
static bool take_variables(const struct devcontainer *self, const char *member, const char *option,
	char ***words, struct error *err)
{
	const struct json_doc *doc = self->doc;
	json_node object = json_path(doc, 0, member);
	char prefix[SHOWN_MAX];
	text_format(prefix, sizeof(prefix), "%s.", member);
	if (object == JSON_NODE_NONE) {
		return true;
	}
	if (!json_is(doc, object, JSON_OBJECT) || json_count(doc, object) > VARIABLES_MAX) {
		return devcontainer_expected(
			self, member, "an object with at most 64 members", err);
	}
	for (json_node node = json_first(doc, object); node != JSON_NODE_NONE;
		node = json_next(doc, node)) {
		char *text = json_string(doc, node);
		if (text) {
			add_variable(self, prefix, json_key(doc, node), text, option, words);
		} else if (json_is(doc, node, JSON_NULL)) {
			devcontainer_ignore(self, prefix, json_key(doc, node));
		} else {
			return devcontainer_expected(
				self, member, "strings without a NUL as values", err);
		}
		free(text);
	}
	return true;
}

/* ---- the user ---- */

/* Where the workspace is shown, everybody in the container is the workspace's user. */
static bool take_user(const struct devcontainer *self, struct error *err)
{
	static const char *const members[] = {"remoteUser", "containerUser"};
	bool is_taken = false;
	for (size_t i = 0; i < ARRAY_LENGTH(members); i++) {
		json_node node = json_get(self->doc, 0, members[i]);
		char *text = json_string(self->doc, node);
		char *user = text ? devcontainer_expand(self->place, text, false) : NULL;
		bool is_name = user && is_made_of(span_of(user), "_0123456789", "_.-", USER_MAX);
		bool is_wrong = node != JSON_NODE_NONE && (!text || (user && !is_name));
		if (is_name && !is_taken && !self->place->is_shown) {
			words_append(&self->out->start, "--user");
			words_append(&self->out->start, user);
			is_taken = true;
		} else if (node != JSON_NODE_NONE && !is_wrong) {
			devcontainer_ignore(self, "", span_of(members[i]));
		}
		free(user);
		free(text);
		if (is_wrong) {
			return devcontainer_expected(self, members[i],
				"a user's name of letters, digits and _ . -", err);
		}
	}
	return true;
}

/* ---- volumes ---- */

/* A place that a volume may cover: nothing of ours, of the kernel's, or of this machine. */
static bool is_target(const struct devcontainer *self, const char *target)
{
	static const char *const kept[] = {CONTAINER_RUNNER_FOLDER, "/proc", "/sys", "/dev"};
	size_t len = strlen(target);
	if (len < 2 || target[0] != '/' || target[len - 1] == '/' || strstr(target, "//") ||
		strstr(target, "/./") || path_goes_up(target) ||
		strcmp(target + len - 2, "/.") == 0 ||
		!is_made_of(
			(struct span){target + 1, len - 1}, "_0123456789.", "_.-/@+", TARGET_MAX)) {
		return false;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(kept); i++) {
		if (paths_overlap(target, kept[i])) {
			return false;
		}
	}
	return !self->place->is_shown || !paths_overlap(target, self->place->workspace);
}

struct mount {
	char *type, *target; // owned; or NULL
	bool is_known;       // it has no other fields, except the name of the volume
};

static void set_field(struct mount *mount, struct span name, char *value)
{
	static const char *const names[] = {"target", "dst", "destination"};
	bool is_target_name = false;
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		is_target_name = is_target_name || span_is(name, names[i]);
	}
	char **place = span_is(name, "type") ? &mount->type
	               : is_target_name      ? &mount->target
	                                     : NULL;
	mount->is_known = mount->is_known && value &&
	                  (place ? !*place : span_is(name, "source") || span_is(name, "src"));
	if (mount->is_known && place) {
		*place = value;
	} else {
		free(value);
	}
}

/* A mount as docker-run(1) has it: fields between commas. We know no field with a quote. */
static void read_mount_text(struct mount *mount, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, ",");
		const char *equals = memchr(text, '=', len);
		size_t name = equals ? (size_t)(equals - text) : len;
		size_t rest = equals ? name + 1 : len;
		set_field(mount, (struct span){text, name},
			equals ? mem_strndup((struct span){text + rest, len - rest}) : NULL);
		text += len + (text[len] == ',');
	}
}

static void read_mount(const struct devcontainer *self, struct mount *mount, json_node node)
{
	const struct json_doc *doc = self->doc;
	char *text = json_string(doc, node);
	mount->is_known = text || json_is(doc, node, JSON_OBJECT);
	if (text) {
		read_mount_text(mount, text);
	} else if (mount->is_known) {
		for (json_node field = json_first(doc, node); field != JSON_NODE_NONE;
			field = json_next(doc, field)) {
			set_field(mount, json_key(doc, field), json_string(doc, field));
		}
	}
	free(text);
}

/*
 * Only volumes without a name: another container's volume of the same name would be another
 * project's. An option such as volume-opt could make a volume of a folder of this machine.
 */
static bool take_volumes(const struct devcontainer *self, struct error *err)
{
	const struct json_doc *doc = self->doc;
	json_node list = json_get(doc, 0, "mounts");
	unsigned number = 0;
	if (list == JSON_NODE_NONE) {
		return true;
	}
	if (!json_is(doc, list, JSON_ARRAY) || json_count(doc, list) > MOUNTS_MAX) {
		return devcontainer_expected(self, "mounts", "an array of at most 16 mounts", err);
	}
	for (json_node node = json_first(doc, list); node != JSON_NODE_NONE;
		node = json_next(doc, node), number++) {
		struct mount mount = {.type = NULL};
		char name[16];
		read_mount(self, &mount, node);
		char *target = mount.is_known && mount.target
		                       ? devcontainer_expand(self->place, mount.target, false)
		                       : NULL;
		if (target && mount.type && strcmp(mount.type, "volume") == 0 &&
			is_target(self, target)) {
			words_append(&self->out->start, "--volume");
			words_append(&self->out->start, target);
		} else {
			text_whole(name, sizeof(name), "%u", number);
			devcontainer_ignore(self, "mounts.", span_of(name));
		}
		free(target);
		free(mount.type);
		free(mount.target);
	}
	return true;
}

/* ---- all of it ---- */

bool devcontainer_take_start(const struct devcontainer *self, struct error *err)
{
	return take_user(self, err) &&
	       take_variables(self, "containerEnv", "--env", &self->out->start, err) &&
	       take_variables(self, "remoteEnv", "--env", &self->out->start, err) &&
	       take_volumes(self, err);
}

static bool take_stage(const struct devcontainer *self, struct error *err)
{
	json_node node = json_path(self->doc, 0, "build.target");
	char *stage = json_string(self->doc, node);
	bool is_fine = stage && is_made_of(span_of(stage), digits, "._-", STAGE_MAX);
	if (is_fine) {
		words_append(&self->out->build, "--target");
		words_append(&self->out->build, stage);
	}
	free(stage);
	return is_fine || node == JSON_NODE_NONE ||
	       devcontainer_expected(self, "build.target",
		       "the name of a stage of letters, digits and . _ -", err);
}

bool devcontainer_take_build(const struct devcontainer *self, struct error *err)
{
	return take_variables(self, "build.args", "--build-arg", &self->out->build, err) &&
	       take_stage(self, err);
}
