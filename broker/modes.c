/* SPDX-License-Identifier: MIT */
#include "broker/modes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"

/* ---- the tables; names are written as plain() makes them ---- */

/* Where a name is an everyday word, an option has to say that it is about permissions. */
static const struct {
	const char *name;
	bool is_common;
} modes[] = {
	{"acceptedits", false},                // claude-agent-acp, claude-code-acp
	{"agentfullaccess", false},            // codex-acp 2
	{"allowall", false},                   // Copilot CLI
	{"approveall", false},                 // clients' own name for it
	{"auto", true},                        // claude-agent-acp, codex-acp, Goose
	{"autoaccept", false},                 // clients' own name for it
	{"autoapprove", false},                // VS Code's agent host
	{"autoedit", false},                   // gemini-cli, qwen-code
	{"autopilot", false},                  // Copilot CLI
	{"bypass", true},                      // clients' own name for it
	{"bypasspermissions", false},          // claude-agent-acp, claude-code-acp
	{"dangerfullaccess", false},           // Codex, sandbox_mode
	{"dangerouslyskippermissions", false}, // Claude Code's flag
	{"dontask", false},                    // claude-agent-acp
	{"fullaccess", false},                 // codex-acp
	{"fullauto", false},                   // Codex's flag
	{"never", true},                       // Codex, approval_policy
	{"skippermissions", false},            // clients' own name for it
	{"yolo", false},                       // gemini-cli, qwen-code
};

/* Options that are switched on and off. */
static const char *const switches[] = {"acceptedits", "allowall", "alwaysallow", "autoaccept",
	"autoapprove", "bypasspermissions", "dangerouslyskippermissions", "skippermissions",
	"yolo"};

static const char *const on_values[] = {"true", "on", "yes", "enabled", "always", "1"};

/* ACP, SessionConfigOptionCategory: what has nothing to do with permissions. */
static const char *const other_categories[] = {"model", "model_config", "thought_level"};

/* Parts of an option's id or category that make an everyday word one about permissions. */
static const char *const hints[] = {"mode", "approv", "permission", "ask"};

/* Where the agent offers several, the first of these; they are known to ask. */
static const char *const preferred[] = {
	"default", "ask", "manual", "approve", "normal", "suggest", "readonly", "plan", "off"};

/* ---- names ---- */

/* Of a URI the part after the last # or slash. */
static const char *last_part(const char *name)
{
	const char *start = name;
	for (const char *at = name; *at; at++) {
		if ((*at == '#' || *at == '/') && at[1]) {
			start = at + 1;
		}
	}
	return start;
}

/* Lower case letters and digits of the last part. */
static const char *plain(const char *name, char out[MODES_NAME_MAX])
{
	size_t len = 0;
	for (const char *at = last_part(name); *at && len < MODES_NAME_MAX - 1; at++) {
		bool is_upper = *at >= 'A' && *at <= 'Z';
		bool is_kept = is_upper || (*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9');
		if (is_kept) {
			out[len++] = (char)(is_upper ? *at - 'A' + 'a' : *at);
		}
	}
	out[len] = '\0';
	return out;
}

static bool is_one_of(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(list[i], name) == 0) {
			return true;
		}
	}
	return false;
}

bool modes_ask_less(const char *mode_id)
{
	char name[MODES_NAME_MAX];
	plain(mode_id, name);
	for (size_t i = 0; i < ARRAY_LENGTH(modes); i++) {
		if (strcmp(modes[i].name, name) == 0) {
			return true;
		}
	}
	return false;
}

static bool is_common(const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(modes); i++) {
		if (strcmp(modes[i].name, name) == 0) {
			return modes[i].is_common;
		}
	}
	return false;
}

static bool has_hint(const char *text)
{
	char name[MODES_NAME_MAX];
	plain(text, name);
	for (size_t i = 0; i < ARRAY_LENGTH(hints); i++) {
		if (strstr(name, hints[i])) {
			return true;
		}
	}
	return false;
}

bool modes_option_asks_less(const char *config_id, const char *category, const char *value)
{
	char name[MODES_NAME_MAX];
	char id[MODES_NAME_MAX];
	category = category ? category : "";
	if (is_one_of(category, other_categories, ARRAY_LENGTH(other_categories))) {
		return false;
	}
	plain(value, name);
	if (is_one_of(plain(config_id, id), switches, ARRAY_LENGTH(switches)) &&
		is_one_of(name, on_values, ARRAY_LENGTH(on_values))) {
		return true;
	}
	return modes_ask_less(value) &&
	       (!is_common(name) || has_hint(config_id) || has_hint(category));
}

/* ---- what a session has ---- */

bool modes_copy_value(const struct json_doc *doc, json_node node, char out[MODES_NAME_MAX])
{
	if (json_is(doc, node, JSON_BOOL)) {
		snprintf(out, MODES_NAME_MAX, "%s", json_bool(doc, node, false) ? "true" : "false");
		return true;
	}
	char *text = json_string(doc, node);
	bool fits = text && strlen(text) < MODES_NAME_MAX;
	if (fits) {
		memcpy(out, text, strlen(text) + 1);
	}
	free(text);
	return fits;
}

static size_t rank_of(const char *value)
{
	char name[MODES_NAME_MAX];
	size_t rank = 0;
	plain(value, name);
	while (rank < ARRAY_LENGTH(preferred) && strcmp(preferred[rank], name) != 0) {
		rank++;
	}
	return rank;
}

static bool value_asks_less(const struct modes_fix *fix, const char *category, const char *value)
{
	return fix->config_id[0] ? modes_option_asks_less(fix->config_id, category, value)
	                         : modes_ask_less(value);
}

static void consider(struct modes_fix *fix, const char *category, const char *value)
{
	if (!value_asks_less(fix, category, value) &&
		(!fix->to[0] || rank_of(value) < rank_of(fix->to))) {
		memcpy(fix->to, value, sizeof(fix->to));
	}
}

/* Looks for the best of what a list offers; options may stand in groups. */
static void choose(const struct json_doc *doc, json_node list, const char *member,
	const char *category, struct modes_fix *fix)
{
	char value[MODES_NAME_MAX];
	for (json_node item = json_first(doc, list); item != JSON_NODE_NONE;
		item = json_next(doc, item)) {
		json_node group = json_get(doc, item, "options");
		for (json_node inner = json_first(doc, group); inner != JSON_NODE_NONE;
			inner = json_next(doc, inner)) {
			if (modes_copy_value(doc, json_get(doc, inner, member), value)) {
				consider(fix, category, value);
			}
		}
		if (group == JSON_NODE_NONE &&
			modes_copy_value(doc, json_get(doc, item, member), value)) {
			consider(fix, category, value);
		}
	}
}

static bool find_mode(const struct json_doc *doc, json_node object, struct modes_fix *fix)
{
	*fix = (struct modes_fix){.is_boolean = false};
	json_node current = json_path(doc, object, "modes.currentModeId");
	if (!modes_copy_value(doc, current, fix->from) || !modes_ask_less(fix->from)) {
		return false;
	}
	choose(doc, json_path(doc, object, "modes.availableModes"), "id", NULL, fix);
	return true;
}

static bool find_option(const struct json_doc *doc, json_node option, struct modes_fix *fix)
{
	char category[MODES_NAME_MAX] = "";
	*fix = (struct modes_fix){.is_boolean = false};
	json_node current = json_get(doc, option, "currentValue");
	modes_copy_value(doc, json_get(doc, option, "category"), category);
	if (!modes_copy_value(doc, json_get(doc, option, "id"), fix->config_id) ||
		!modes_copy_value(doc, current, fix->from) ||
		!modes_option_asks_less(fix->config_id, category, fix->from)) {
		return false;
	}
	fix->is_boolean = json_is(doc, current, JSON_BOOL);
	if (fix->is_boolean) {
		snprintf(fix->to, sizeof(fix->to), "false");
	} else {
		choose(doc, json_get(doc, option, "options"), "value", category, fix);
	}
	return true;
}

size_t modes_find(const struct json_doc *doc, json_node object, struct modes_fix *out_fixes)
{
	size_t count = find_mode(doc, object, &out_fixes[0]) ? 1 : 0;
	bool has_mode = count > 0;
	json_node options = json_get(doc, object, "configOptions");
	for (json_node option = json_first(doc, options);
		option != JSON_NODE_NONE && count < MODES_FIXES_MAX;
		option = json_next(doc, option)) {
		struct modes_fix *fix = &out_fixes[count];
		bool found = find_option(doc, option, fix);
		if (found && !(has_mode && strcmp(fix->from, out_fixes[0].from) == 0)) {
			count++;
		}
	}
	return count;
}

void modes_category(const struct json_doc *doc, json_node options, const char *config_id,
	char *out_category, size_t size)
{
	out_category[0] = '\0';
	for (json_node option = json_first(doc, options); option != JSON_NODE_NONE;
		option = json_next(doc, option)) {
		char *category = json_string_is(doc, json_get(doc, option, "id"), config_id)
		                         ? json_string(doc, json_get(doc, option, "category"))
		                         : NULL;
		if (category) {
			snprintf(out_category, size, "%s", category);
		}
		free(category);
	}
}
