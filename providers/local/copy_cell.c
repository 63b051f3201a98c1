/* SPDX-License-Identifier: MIT */
#include "providers/local/copy_cell.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/local/cell_drawing.h"
#include "providers/local/allowed_sockets.h"
#include "providers/local/keys/profile_keys.h"

const struct error_reason copy_cell_reason = {"CELL_UNAVAILABLE", false,
	"follow the message; it names what prevents confinement on this machine"};

const char *const confinement_choices[] = {"no", "yes", "required", NULL};

/*
 * git's configuration, and tool chains. Some folders are not shown whole because they may contain
 * passwords: .cargo/credentials.toml, .config/git/credentials.
 */
static const char *const shown[] = {".gitconfig", ".config/git/config", ".config/git/ignore",
	".config/git/attributes", ".cargo/bin", ".cargo/registry", ".cargo/git", ".cargo/env",
	".cargo/config.toml", ".rustup", ".nvm", "go"};

/* Names of variables, and ends of such names, because there are several key agents. */
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

bool copy_is_per_session(const struct settings *settings)
{
	const char *value = settings_get(settings, "copy-per");
	return copy_is_wanted(settings) && value && strcmp(value, "session") == 0;
}

bool copy_cell_has_network(const struct settings *settings)
{
	const char *value = settings_get(settings, "network");
	return !value || strcmp(value, network_modes[NETWORK_OPEN]) == 0;
}

bool copy_cell_is_required(const struct settings *settings)
{
	return copy_confinement(settings) == CONFINEMENT_REQUIRED ||
	       !copy_cell_has_network(settings) || profile_keys_are_wanted(settings);
}

struct network_abilities copy_cell_network(const struct settings *settings)
{
	bool is_confined = copy_confinement(settings) != CONFINEMENT_NO;
	return (struct network_abilities){.blocks = is_confined,
		.allows_hosts = is_confined,
		.allows_cidrs = is_confined,
		.asks = is_confined,
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

/*
 * Variables that only the broker and its user share. ACP_BROKER_RUN may be that of an outer broker,
 * which uses it to find the processes that it must end.
 */
bool copy_cell_hides_anyway(
	const struct provider_context *context, const struct settings *settings, struct span name)
{
	static const char prefix[] = "ACP_BROKER_";
	bool has_prefix = name.len >= sizeof(prefix) - 1 &&
	                  strncmp(name.data, prefix, sizeof(prefix) - 1) == 0;
	return (has_prefix && !span_is(name, "ACP_BROKER_RUN")) ||
	       (context->registry && registry_has_secret(context->registry, name));
}

bool copy_cell_hides(
	const struct provider_context *context, const struct settings *settings, struct span name)
{
	return copy_cell_hides_anyway(context, settings, name) ||
	       (copy_cell_lacks(name) &&
		       !allowed_sockets_have(settings, context->environment, name));
}

const char *copy_cell_home(const struct provider_context *context)
{
	const char *home = environment_get(context->environment, "HOME");
	return home && home[0] == '/' && home[1] ? home : NULL;
}

/* ---- the plan ---- */

/* What is shown as writable is written by the cell's user, and file permissions still apply. */
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
			"%s: the confined agent runs as user %u, because a confined process never "
			"runs as root. %s belongs to user %u, and its permissions decide what the "
			"agent may write",
			drawing->said[i], (unsigned)config->owner->uid, entry->source,
			(unsigned)status.st_uid);
		sandbox_warn(config->sandbox, text);
	}
}

/* The broker's own MCP server (mcp-exec): its socket and its program. */
static bool draw_server(
	struct cell_drawing *drawing, const struct provider_context *context, struct error *err)
{
	const char *program = context->agent_program;
	if (!context->agent_socket) {
		return true;
	}
	return cell_drawing_add_socket(drawing, "mcp-exec = yes", context->agent_socket, err) &&
	       (!program || cell_drawing_add_program(drawing, program, err));
}

/* Our own paths come last, so that none of the user's paths can include them. */
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
	       draw_server(drawing, config->context, err) &&
	       agent_home_draw(config->agent, drawing, config->sandbox, err) &&
	       cell_drawing_hide_own_files(drawing, err) &&
	       cell_drawing_hide(drawing, drawing->home, ".config/acp-broker", err) &&
	       (!folder || folder[0] != '/' ||
		       cell_drawing_hide(drawing, folder, "acp-broker", err)) &&
	       cell_drawing_hide(drawing, config->state, "", err) &&
	       cell_drawing_check(drawing, err);
}

/* As in a passwd file; some people and programs expect a name. */
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
		error_set(err, ERROR_CONFIG, "confining an agent: HOME does not name a folder");
		return NULL;
	}
	struct cell_drawing *drawing = cell_drawing_create(home, context->own_files);
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
		cell_ways_plan(config->ways, &plan);
		cell = cell_create(context->loop, context->spawner, &plan, listener, data, err);
	}
	cell_drawing_destroy(drawing);
	return cell;
}
