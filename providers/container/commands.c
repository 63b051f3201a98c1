/* SPDX-License-Identifier: MIT */
#include "providers/container/commands.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/container/devcontainer.h"
#include "providers/container/mount.h"
#include "providers/exec/runner_file.h"
#include "providers/network.h"

enum {
	IMAGE_MAX = 512,
	NAME_MAX_BYTES = 200,
	VARIANT_MAX = 2048,
	QUOTED_MAX = 96,
	NUMBER_SIZE = 24,
	INSPECT_MAX = 512,
	VOLUME_MAX = 3 * FILE_PATH_MAX,
};

static const long long NANO = 1000000000;

static const char runner_there[] = CONTAINER_RUNNER_FOLDER "/" EXEC_RUNNER_NAME;

static const char *const engines[] = {"podman", "docker", NULL};
static const char *const devcontainers[] = {"auto", NULL};
static const char *const mounts[] = {"none", "same-path", NULL};

enum {
	KEY_ENGINE,
	KEY_IMAGE,
	KEY_DOCKERFILE,
	KEY_IN_WORKSPACE,
	KEY_BUILD_TIMEOUT,
	KEY_CONTAINER,
	KEY_MOUNT,
	KEY_GIT_WRITE,
	KEY_MEMORY,
	KEY_CPU,
	KEY_PROCESSES,
	KEY_DEVCONTAINER,
	KEY_DEVCONTAINER_PORTS
};

const struct setting_key container_keys[CONTAINER_KEYS] = {
	[KEY_ENGINE] = {.name = "engine",
		.type = SETTING_CHOICE,
		.choices = engines,
		.help = "the program that runs containers; by default the one on PATH"},
	[KEY_IMAGE] = {.name = "image",
		.type = SETTING_TEXT,
		.help = "the image of the containers that are made"},
	[KEY_DOCKERFILE] = {.name = "dockerfile",
		.type = SETTING_TEXT,
		.help = "the Dockerfile from which the engine builds the image, instead of image"},
	[KEY_IN_WORKSPACE] = {.name = "dockerfile-in-workspace",
		.type = SETTING_BOOL,
		.fallback = "false",
		.help = "whether agents may be able to write the Dockerfile"},
	[KEY_BUILD_TIMEOUT] = {.name = "build-timeout",
		.type = SETTING_DURATION,
		.fallback = "30m",
		.min = 1,
		.max = EXEC_DAY,
		.help = "for the build of the image"},
	[KEY_CONTAINER] = {.name = "container",
		.type = SETTING_TEXT,
		.help = "the name of an existing container, instead of image"},
	[KEY_MOUNT] = {.name = "mount",
		.type = SETTING_CHOICE,
		.choices = mounts,
		.fallback = "none",
		.help = "none: the workspace is synced; same-path: the container has it itself"},
	[KEY_GIT_WRITE] = {.name = "git-write",
		.type = SETTING_BOOL,
		.fallback = "false",
		.help = "with mount = same-path: whether the agent may change repositories"},
	[KEY_MEMORY] = {.name = "memory",
		.type = SETTING_BYTES,
		.min = 6 << 20,
		.max = 1LL << 50,
		.help = "memory of everything in a container together"},
	[KEY_CPU] = {.name = "cpu",
		.type = SETTING_COUNT,
		.min = 1,
		.max = 4096,
		.help = "processor time of everything in a container, in processors"},
	[KEY_PROCESSES] = {.name = "processes",
		.type = SETTING_COUNT,
		.min = 16,
		.max = 4194304,
		.help = "number of processes and threads in a container"},
	[KEY_DEVCONTAINER] = {.name = "devcontainer",
		.type = SETTING_CHOICE,
		.choices = devcontainers,
		.help = "instead of image: what the workspace's devcontainer.json names"},
	[KEY_DEVCONTAINER_PORTS] = {.name = "devcontainer-ports",
		.type = SETTING_BOOL,
		.fallback = "false",
		.help = "whether ports of devcontainer.json (forwardPorts) are opened here"},
	EXEC_COMMON_KEYS,
};

static const char *value_of(const struct settings *settings, int key)
{
	return settings_get(settings, container_keys[key].name);
}

/* 0: no limit. */
static long long limit_of(const struct settings *settings, int key)
{
	return value_of(settings, key) ? settings_number(settings, &container_keys[key]) : 0;
}

/* ---- names ---- */

static bool is_made_of(const char *text, const char *more, size_t max)
{
	static const char alphanumeric[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	size_t len = strlen(text);
	for (size_t i = 0; i < len; i++) {
		bool is_plain = memchr(alphanumeric, text[i], sizeof(alphanumeric) - 1) != NULL;
		if (!is_plain && (i == 0 || !strchr(more, text[i]))) {
			return false;
		}
	}
	return len > 0 && len <= max;
}

/*
 * Accepts names that the engine cannot take for an option: "docker.io/library/debian:12",
 * "localhost/mine@sha256:…".
 */
bool container_check_image(const char *image, struct error *err)
{
	char quoted[QUOTED_MAX];
	return is_made_of(image, "._-/:@", IMAGE_MAX) ||
	       error_set(err, ERROR_CONFIG,
		       "image: expected the name of an image (letters, digits and . _ - / : @, the "
		       "first a letter or a digit), got %s",
		       setting_quote(quoted, sizeof(quoted), image));
}

static bool check_container(const char *name, struct error *err)
{
	char quoted[QUOTED_MAX];
	return is_made_of(name, "._-", NAME_MAX_BYTES) ||
	       error_set(err, ERROR_CONFIG,
		       "container: expected the name or id of a container (letters, digits and . _ "
		       "-, the first a letter or a digit), got %s",
		       setting_quote(quoted, sizeof(quoted), name));
}

/* ---- what an engine can do ---- */

static enum network_mode network_of(const struct settings *settings)
{
	const char *value = settings_get(settings, "network");
	int mode = NETWORK_OPEN;
	while (value && network_modes[mode] && strcmp(network_modes[mode], value) != 0) {
		mode++;
	}
	return network_modes[mode] ? (enum network_mode)mode : NETWORK_OPEN;
}

static bool check_network(const struct settings *settings, struct error *err)
{
	enum network_mode mode = network_of(settings);
	return mode == NETWORK_OPEN || mode == NETWORK_BLOCKED ||
	       error_set_reason(err, ERROR_CONFIG, "NETWORK_NOT_ENFORCED",
		       "network = %s: an engine opens or blocks the network of a container as a "
		       "whole; use open or blocked, or backend = local with confine = yes",
		       network_modes[mode]);
}

bool container_shows_workspace(const struct settings *settings)
{
	const char *value = value_of(settings, KEY_MOUNT);
	return value && strcmp(value, mounts[1]) == 0;
}

/* A container that somebody else has made already has its limits and its network. */
static bool check_attached(const struct settings *settings, struct error *err)
{
	static const int made[] = {KEY_MEMORY, KEY_CPU, KEY_PROCESSES};
	for (size_t i = 0; i < ARRAY_LENGTH(made); i++) {
		if (value_of(settings, made[i])) {
			return error_set(err, ERROR_CONFIG,
				"%s: an existing container keeps its limits; use image, or give "
				"them to the engine when you make the container",
				container_keys[made[i]].name);
		}
	}
	if (container_shows_workspace(settings)) {
		return error_set(err, ERROR_CONFIG,
			"mount = same-path: an existing container keeps its mounts; use image, or "
			"mount = none");
	}
	return network_of(settings) == NETWORK_OPEN ||
	       error_set_reason(err, ERROR_CONFIG, "NETWORK_NOT_ENFORCED",
		       "network = %s: an existing container keeps its network; use image, or give "
		       "the network to the engine when you make the container",
		       network_modes[network_of(settings)]);
}

/* A relative path would mean another file in each folder in which a broker starts. */
static bool check_dockerfile(const char *path, struct error *err)
{
	char quoted[QUOTED_MAX];
	bool is_whole = path[0] == '/' || strncmp(path, "~/", 2) == 0;
	return (is_whole && strlen(path) < FILE_PATH_MAX / 2) ||
	       error_set(err, ERROR_CONFIG,
		       "dockerfile: expected the path of a file that begins with / or ~/, got %s",
		       setting_quote(quoted, sizeof(quoted), path));
}

/* Exactly one of these keys says where the agent works. */
static bool check_kind(const struct settings *settings, struct error *err)
{
	static const int kinds[] = {KEY_IMAGE, KEY_DOCKERFILE, KEY_CONTAINER, KEY_DEVCONTAINER};
	int found = -1;
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
		if (!value_of(settings, kinds[i])) {
			continue;
		}
		if (found >= 0) {
			return error_set(err, ERROR_CONFIG,
				"%s and %s say where the agent works: expected only one of them",
				container_keys[found].name, container_keys[kinds[i]].name);
		}
		found = kinds[i];
	}
	return found >= 0 ||
	       error_set(err, ERROR_CONFIG,
		       "backend = container needs image, for example image = debian:12, or "
		       "dockerfile = PATH, or devcontainer = auto, or container = NAME for an "
		       "existing container");
}

/* Nothing enforces it where the agent works in a copy. */
static bool check_git_write(const struct settings *settings, struct error *err)
{
	return !value_of(settings, KEY_GIT_WRITE) || container_shows_workspace(settings) ||
	       error_set(err, ERROR_CONFIG,
		       "git-write needs mount = same-path: otherwise the agent works in a copy, "
		       "and its repositories are its own");
}

static bool check_ports(const struct settings *settings, struct error *err)
{
	return !value_of(settings, KEY_DEVCONTAINER_PORTS) ||
	       value_of(settings, KEY_DEVCONTAINER) ||
	       error_set(err, ERROR_CONFIG,
		       "devcontainer-ports needs devcontainer = auto; use forward to open ports");
}

static bool check_settings(const struct settings *settings, struct error *err)
{
	const char *image = value_of(settings, KEY_IMAGE);
	const char *dockerfile = value_of(settings, KEY_DOCKERFILE);
	return check_kind(settings, err) && check_network(settings, err) &&
	       check_git_write(settings, err) && check_ports(settings, err) &&
	       (value_of(settings, KEY_DEVCONTAINER) ? true
		       : image                       ? container_check_image(image, err)
		       : dockerfile                  ? check_dockerfile(dockerfile, err)
				    : check_container(value_of(settings, KEY_CONTAINER), err) &&
					      check_attached(settings, err));
}

/* ---- the engine ---- */

/* The engine's path, or its name if the context has no environment. The caller frees it. */
static char *find_engine(
	const struct settings *settings, const struct provider_context *context, struct error *err)
{
	const char *wanted = value_of(settings, KEY_ENGINE);
	if (!context->environment) {
		return mem_strdup(wanted ? wanted : engines[0]);
	}
	const char *path = environment_get(context->environment, "PATH");
	for (size_t i = 0; engines[i]; i++) {
		bool is_meant = !wanted || strcmp(wanted, engines[i]) == 0;
		char *found = is_meant && path ? path_find_program(engines[i], path) : NULL;
		if (found && found[0] == '/') {
			return found;
		}
		free(found);
	}
	error_set_reason(err, ERROR_CONFIG, "ENGINE_NOT_FOUND", "no folder of PATH (%s) has %s",
		path ? path : "which is not set", wanted ? wanted : "podman or docker");
	return NULL;
}

/* ---- commands ---- */

/* Sets a command: the engine and then the words, the last of which is NULL. */
static void set_words(struct exec_profile *profile, enum exec_verb verb, const char *engine, ...)
	__attribute__((sentinel));
static void set_words(struct exec_profile *profile, enum exec_verb verb, const char *engine, ...)
{
	va_list words;
	const char *word;
	words_append(&profile->words[verb], engine);
	va_start(words, engine);
	while ((word = va_arg(words, const char *))) {
		words_append(&profile->words[verb], word);
	}
	va_end(words);
}

static void add_option(char ***words, const char *name, const char *value)
{
	words_append(words, name);
	words_append(words, value);
}

static void add_limits(char ***words, const struct settings *settings)
{
	static const struct {
		int key;
		const char *option;
	} limits[] = {
		{KEY_MEMORY, "--memory"}, {KEY_CPU, "--cpus"}, {KEY_PROCESSES, "--pids-limit"}};
	for (size_t i = 0; i < ARRAY_LENGTH(limits); i++) {
		char number[NUMBER_SIZE];
		long long limit = limit_of(settings, limits[i].key);
		if (limit > 0) {
			text_whole(number, sizeof(number), "%lld", limit);
			add_option(words, limits[i].option, number);
		}
	}
}

/* The runner's folder and then `more`. A "%" becomes "%%", so that it is not taken for %i. */
static char *runner_folder(const struct exec_profile *profile, const char *more)
{
	struct buf text;
	const char *file = profile->runner_file ? profile->runner_file : "";
	const char *end = strrchr(file, '/');
	buf_init(&text, VOLUME_MAX);
	exec_append_literal(&text, (struct span){file, end ? (size_t)(end - file) : 0});
	(void)!buf_append(&text, span_of(more), NULL);
	char *whole = mem_strndup(buf_span(&text));
	buf_finish(&text);
	return whole;
}

static bool add_runner(char ***words, const struct exec_profile *profile, struct error *err)
{
	const char *file = profile->runner_file ? profile->runner_file : "";
	if (strchr(file, ':')) {
		return error_set(err, ERROR_CONFIG,
			"the path of the state folder has a colon, so no engine can mount a folder "
			"of it in a container: %s; set XDG_STATE_HOME",
			file);
	}
	/* "z": without this label SELinux would hide the folder from containers. */
	char *volume = runner_folder(profile, ":" CONTAINER_RUNNER_FOLDER ":ro,z");
	add_option(words, "--volume", volume);
	free(volume);
	return true;
}

static bool add_start(struct exec_profile *profile, const struct settings *settings,
	const char *engine, struct error *err)
{
	char ***words = &profile->words[EXEC_START];
	set_words(profile, EXEC_START, engine, "run", "--detach", "--name", "%i", "--label",
		"acp-broker.sandbox=%i", "--label", "acp-broker.profile=%p", NULL);
	add_limits(words, settings);
	if (network_of(settings) == NETWORK_BLOCKED) {
		add_option(words, "--network", "none");
	}
	if (!add_runner(words, profile, err)) {
		return false;
	}
	add_option(words, "--stop-signal", "SIGTERM");
	add_option(words, "--entrypoint", runner_there);
	add_option(words, profile->built ? "%b" : value_of(settings, KEY_IMAGE), "hold");
	return true;
}

/* Until the recipe is read, the image has no name and the paths are those of the profile. */
static void add_build(
	struct exec_profile *profile, const struct settings *settings, const char *engine)
{
	profile->build_ms = settings_number(settings, &container_keys[KEY_BUILD_TIMEOUT]);
	set_words(profile, EXEC_HAS_BUILT, engine, "image", "inspect", "--format", "{{.Id}}", "%b",
		NULL);
	set_words(profile, EXEC_BUILD, engine, "build", "--tag", "%b", "--file", "%f", "%t", NULL);
}

static void add_dockerfile(struct exec_profile *profile, const struct settings *settings,
	const struct provider_context *context)
{
	const char *path = value_of(settings, KEY_DOCKERFILE);
	const char *home =
		context->environment ? environment_get(context->environment, "HOME") : NULL;
	profile->recipe = path[0] == '~' ? path_join(home ? home : "", path + 2) : mem_strdup(path);
	profile->trusts_workspace = settings_bool(settings, &container_keys[KEY_IN_WORKSPACE]);
	profile->built = mem_strdup("localhost/acp-broker:CONTENT");
	profile->recipe_file = mem_strdup(profile->recipe);
	profile->recipe_folder = mem_strdup(profile->recipe);
	*strrchr(profile->recipe_folder, '/') = '\0';
}

/* Until the workspace is known, capitals stand for what its file will say. */
static void add_devcontainer(struct exec_profile *profile, const struct settings *settings)
{
	profile->opens_ports = settings_bool(settings, &container_keys[KEY_DEVCONTAINER_PORTS]);
	profile->find_recipe = devcontainer_find;
	profile->trusts_workspace = true;
	profile->built = mem_strdup("IMAGE");
	profile->recipe_file = mem_strdup("DOCKERFILE");
	profile->recipe_folder = mem_strdup("FOLDER");
}

/*
 * An engine that cannot set a limit only prints a warning, and makes the container without the
 * limit. So we ask the engine afterwards which limits the container has.
 */
static void add_inspect(
	struct exec_profile *profile, const struct settings *settings, const char *engine)
{
	const struct {
		const char *key;
		const char *field;
		long long wanted;
	} rows[] = {{"memory", "{{.HostConfig.Memory}}", limit_of(settings, KEY_MEMORY)},
		{"cpu", "{{.HostConfig.NanoCpus}}", limit_of(settings, KEY_CPU) * NANO},
		{"processes", "{{.HostConfig.PidsLimit}}", limit_of(settings, KEY_PROCESSES)}};
	struct buf format, made;
	buf_init(&format, INSPECT_MAX);
	buf_init(&made, INSPECT_MAX);
	for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
		if (rows[i].wanted > 0) {
			(void)!buf_append_format(
				&format, NULL, " %s=%s", rows[i].key, rows[i].field);
			(void)!buf_append_format(
				&made, NULL, " %s=%lld", rows[i].key, rows[i].wanted);
		}
	}
	if (network_of(settings) == NETWORK_BLOCKED) {
		(void)!buf_append(
			&format, SPAN_LITERAL(" network={{.HostConfig.NetworkMode}}"), NULL);
		(void)!buf_append(&made, SPAN_LITERAL(" network=none"), NULL);
	}
	if (made.len > 0) {
		char *text = mem_strndup(buf_span(&format));
		profile->made = mem_strndup(buf_span(&made));
		set_words(
			profile, EXEC_INSPECT, engine, "inspect", "--format", text + 1, "%i", NULL);
		memmove(profile->made, profile->made + 1, strlen(profile->made));
		free(text);
	}
	buf_finish(&format);
	buf_finish(&made);
}

/* A profile with another image, limit or network needs another container. */
static char *variant_of(const struct settings *settings, const char *engine)
{
	char text[VARIANT_MAX];
	const char *image = value_of(settings, KEY_IMAGE);
	text_format(text, sizeof(text), "%s %s %lld %lld %lld %d", path_last_part(engine),
		image ? image : "", limit_of(settings, KEY_MEMORY), limit_of(settings, KEY_CPU),
		limit_of(settings, KEY_PROCESSES), (int)network_of(settings));
	return mem_strdup(text);
}

/* Copies the folder, because "cp" makes no folder for a file. */
static void add_attached(struct exec_profile *profile, const char *engine, const char *container)
{
	char target[NAME_MAX_BYTES + sizeof(":" CONTAINER_RUNNER_FOLDER)];
	set_words(profile, EXEC_EXEC, engine, "exec", "-i", container, NULL);
	if (profile->runner_file) {
		char *folder = runner_folder(profile, "/.");
		text_whole(target, sizeof(target), "%s:" CONTAINER_RUNNER_FOLDER, container);
		set_words(profile, EXEC_COPY_IN, engine, "cp", folder, target, NULL);
		profile->runner_there = runner_there;
		free(folder);
	}
}

static bool add_commands(struct exec_profile *profile, const struct settings *settings,
	const struct provider_context *context, const char *engine, struct error *err)
{
	const char *container = value_of(settings, KEY_CONTAINER);
	profile->runner_file = exec_runner_file_path(context, profile->platform->name);
	profile->shows_workspace = container_shows_workspace(settings);
	profile->writes_git = settings_bool(settings, &container_keys[KEY_GIT_WRITE]);
	if (profile->shows_workspace && !container_mount_check(engine, context->environment, err)) {
		return false;
	}
	if (container) {
		add_attached(profile, engine, container);
		return true;
	}
	if (value_of(settings, KEY_DOCKERFILE)) {
		add_dockerfile(profile, settings, context);
		add_build(profile, settings, engine);
	} else if (value_of(settings, KEY_DEVCONTAINER)) {
		add_devcontainer(profile, settings);
		add_build(profile, settings, engine);
	}
	profile->runner_there = runner_there;
	profile->variant = variant_of(settings, engine);
	set_words(profile, EXEC_EXEC, engine, "exec", "-i", "%i", NULL);
	set_words(profile, EXEC_RESTART, engine, "start", "%i", NULL);
	set_words(profile, EXEC_STOP, engine, "stop", "%i", NULL);
	set_words(profile, EXEC_DESTROY, engine, "rm", "--force", "--volumes", "%i", NULL);
	set_words(profile, EXEC_LIST, engine, "ps", "--all", "--no-trunc", "--filter",
		"label=acp-broker.sandbox", "--format", "{{.ID}}", NULL);
	set_words(profile, EXEC_STATE, engine, "ps", "--all", "--no-trunc", "--filter", "id=%i",
		"--format", "{{.State}}", NULL);
	add_inspect(profile, settings, engine);
	return add_start(profile, settings, engine, err);
}

static bool read_commands(struct exec_profile *profile, const struct settings *settings,
	const struct provider_context *context, struct error *err)
{
	if (!check_settings(settings, err)) {
		return false;
	}
	char *engine = find_engine(settings, context, err);
	bool is_ok = engine && add_commands(profile, settings, context, engine, err);
	free(engine);
	return is_ok;
}

/* ---- what an engine prints ---- */

/*
 * docker prints "running" and "exited", podman "Up 2 minutes ago" and "Exited (0) 2 minutes ago".
 * An engine that has no such container prints nothing.
 */
static bool read_state(struct span out, enum exec_state *out_state, char says[EXEC_SAYS_SIZE])
{
	static const struct {
		const char *word;
		enum exec_state state;
	} states[] = {{"up", EXEC_STATE_RUNNING}, {"running", EXEC_STATE_RUNNING},
		{"exited", EXEC_STATE_STOPPED}, {"stopped", EXEC_STATE_STOPPED},
		{"created", EXEC_STATE_STOPPED}, {"configured", EXEC_STATE_STOPPED},
		{"initialized", EXEC_STATE_STOPPED}};
	while (out.len > 0 && (out.data[0] == '\n' || out.data[0] == ' ')) {
		out.data++;
		out.len--;
	}
	if (out.len == 0) {
		*out_state = EXEC_STATE_GONE;
		return true;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(states); i++) {
		size_t len = strlen(states[i].word);
		if (out.len >= len && strncasecmp(out.data, states[i].word, len) == 0 &&
			(out.len == len || strchr(" \n", out.data[len]))) {
			*out_state = states[i].state;
			return true;
		}
	}
	return false;
}

const struct exec_platform container_platform = {
	.name = "container",
	.read = read_commands,
	.read_state = read_state,
	.show = container_mount_show,
};
