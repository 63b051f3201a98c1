/* SPDX-License-Identifier: MIT */
#include "providers/local/copy_cell.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/local/cell_drawing.h"
#include "providers/local/cell_network.h"
#include "providers/local/allowed_sockets.h"

const struct error_reason copy_cell_reason = {
	"CELL_UNAVAILABLE", false, "do what the message says; it names what forbids confinement"};

const char *const confinement_choices[] = {"no", "yes", "required", NULL};

/*
 * git's configuration and tool chains. Not whole folders where some keep passwords in them:
 * .cargo/credentials.toml, .config/git/credentials.
 */
static const char *const shown[] = {".gitconfig", ".config/git/config", ".config/git/ignore",
	".config/git/attributes", ".cargo/bin", ".cargo/registry", ".cargo/git", ".cargo/env",
	".cargo/config.toml", ".rustup", ".nvm", "go"};

/* Names of variables, and ends of such names: of agents for keys there are several. */
static const char *const lacking[] = {"DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY",
	"XAUTHORITY", "XDG_RUNTIME_DIR", "DOCKER_HOST", "TMPDIR", "TMUX", "I3SOCK", "SWAYSOCK",
	"VSCODE_IPC_HOOK_CLI", "KITTY_LISTEN_ON", "WEZTERM_UNIX_SOCKET", "NVIM"};
static const char *const lacking_ends[] = {"_AUTH_SOCK", "_AGENT_PID", "_AGENT_INFO"};

enum confinement copy_confinement(const struct settings *settings)
{
	const char *value = settings_get(settings, "confine");
	for (int i = CONFINEMENT_NO; value && confinement_choices[i]; i++) {
		if (strcmp(value, confinement_choices[i]) == 0) {
			return (enum confinement)i;
		}
	}
	return CONFINEMENT_NO;
}

bool copy_is_wanted(const struct settings *settings)
{
	const char *isolation = settings_get(settings, "isolation");
	return isolation ? strcmp(isolation, "copy") == 0
	                 : copy_confinement(settings) != CONFINEMENT_NO;
}

bool copy_cell_has_network(const struct settings *settings)
{
	const char *value = settings_get(settings, "network");
	return !value || strcmp(value, network_modes[NETWORK_OPEN]) == 0;
}

bool copy_cell_is_required(const struct settings *settings)
{
	static const struct setting_key required = {
		.name = "required", .type = SETTING_BOOL, .fallback = "false"};
	return copy_confinement(settings) == CONFINEMENT_REQUIRED ||
	       cell_network_is_wanted(settings) ||
	       (!copy_cell_has_network(settings) && settings_bool(settings, &required));
}

struct network_abilities copy_cell_network(const struct settings *settings)
{
	bool is_confined = copy_confinement(settings) != CONFINEMENT_NO;
	return (struct network_abilities){.blocks = is_confined,
		.allows_hosts = is_confined,
		.allows_cidrs = is_confined,
		.takes_ports = is_confined,
		.services_max = is_confined ? PORTS_SERVICES_MAX : 0,
		.closes_ingress = is_confined && !copy_cell_has_network(settings),
		.remedy = is_confined ? NULL : "confine = yes enforces it"};
}

bool copy_cell_lacks(struct span name)
{
	bool lacks = false;
	for (size_t i = 0; i < ARRAY_LENGTH(lacking); i++) {
		lacks = lacks || span_is(name, lacking[i]);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(lacking_ends); i++) {
		size_t len = strlen(lacking_ends[i]);
		lacks = lacks || (name.len > len && memcmp(name.data + name.len - len,
							    lacking_ends[i], len) == 0);
	}
	return lacks;
}

const char *copy_cell_home(const struct provider_context *context)
{
	const char *home = environment_get(context->environment, "HOME");
	return home && home[0] == '/' && home[1] ? home : NULL;
}

/* ---- the plan ---- */

/* What is shown writable is written by who works in the cell, and permissions hold. */
static void warn_of_others(
	const struct cell_drawing *drawing, const struct copy_cell_config *config)
{
	char text[ERROR_TEXT_MAX];
	struct stat status;
	for (size_t i = 0; config->owner->is_other && i < drawing->count; i++) {
		const struct cell_entry *entry = &drawing->entries[i];
		if (entry->rule != CELL_WRITE || stat(entry->source, &status) != 0 ||
			status.st_uid == config->owner->uid) {
			continue;
		}
		text_format(text, sizeof(text),
			"%s: the confined agent runs as user %u, because nothing that is root is "
			"confined. %s is user %u's, and its permissions say what the agent may "
			"write",
			drawing->said[i], (unsigned)config->owner->uid, entry->source,
			(unsigned)status.st_uid);
		sandbox_warn(config->sandbox, text);
	}
}

/* Last what is ours, so that nothing that the user shows has it. */
static bool draw(
	struct cell_drawing *drawing, const struct copy_cell_config *config, struct error *err)
{
	const struct settings *settings = config->settings;
	const char *folder = environment_get(config->context->environment, "XDG_CONFIG_HOME");
	for (size_t i = 0; i < ARRAY_LENGTH(shown); i++) {
		if (!cell_drawing_add_default(drawing, shown[i], err)) {
			return false;
		}
	}
	return cell_drawing_add_key(drawing, CELL_READ, "allow-read", settings, err) &&
	       cell_drawing_add_key(drawing, CELL_WRITE, "allow-write", settings, err) &&
	       allowed_sockets_draw(drawing, settings, config->context->environment, err) &&
	       agent_home_draw(config->agent, drawing, config->sandbox, err) &&
	       cell_drawing_hide(drawing, drawing->home, ".config/acp-broker", err) &&
	       (!folder || folder[0] != '/' ||
		       cell_drawing_hide(drawing, folder, "acp-broker", err)) &&
	       cell_drawing_hide(drawing, config->state, "", err) &&
	       cell_drawing_check(drawing, err);
}

/* As in a passwd file; a name is for people and programs that want one. */
static const char *find_user(const struct provider_context *context)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_-.";
	const char *user = environment_get(context->environment, "USER");
	bool is_name =
		user && user[0] && user[strspn(user, allowed)] == '\0' && strcmp(user, "root") != 0;
	return is_name ? user : "user";
}

void copy_cell_name_user(const struct provider_context *context, char ***environment)
{
	static const char *const names[] = {"USER", "LOGNAME"};
	char text[300];
	const char *user = find_user(context);
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		text_format(text, sizeof(text), "%s=%s", names[i], user);
		environment_drop(*environment, names[i]);
		words_append(environment, text);
	}
}

struct cell *copy_cell_create(const struct copy_cell_config *config,
	const struct cell_listener *listener, void *data, struct error *err)
{
	const struct provider_context *context = config->context;
	struct cell *cell = NULL;
	const char *home = copy_cell_home(context);
	if (!home) {
		error_set(err, ERROR_CONFIG, "confining an agent: HOME names no folder");
		return NULL;
	}
	struct cell_drawing *drawing = cell_drawing_create(home);
	if (draw(drawing, config, err)) {
		warn_of_others(drawing, config);
		struct cell_plan plan = {.user = find_user(context),
			.home = drawing->home,
			.home_name = home,
			.uid = config->owner->uid,
			.gid = config->owner->gid,
			.has_network = copy_cell_has_network(config->settings),
			.has_limit_group = config->group->is_open,
			.limit_group = config->group->fd,
			.entries = drawing->entries,
			.entry_count = drawing->count};
		cell_network_plan(config->settings, &plan);
		cell = cell_create(context->loop, context->spawner, &plan, listener, data, err);
	}
	cell_drawing_destroy(drawing);
	return cell;
}
