/* SPDX-License-Identifier: MIT */
#include "broker/policy/modes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/text.h"

/* ---- the table; names in the form that plain() makes ---- */

#define ANY "*" // any agent without its own row for the mode

enum meaning {
	ASKS,        // the agent asks about everything; for ANY: applies to agents without any row
	LESS,        // the agent asks nobody, or not about everything
	LESS_COMMON, // the same; an everyday word, so it counts for an option only if that is about
	             // permissions
};

/*
 * The meaning of each mode for each agent, in the named versions. If an agent offers several modes
 * that ask, the broker chooses the first one in this table.
 */
static const struct mode {
	const char *agent;
	const char *mode;
	enum meaning meaning;
} modes[] = {
	{ANY, "default", ASKS},
	{ANY, "ask", ASKS},
	{ANY, "manual", ASKS},
	{ANY, "approve", ASKS},
	{ANY, "normal", ASKS},
	{ANY, "suggest", ASKS},
	{ANY, "readonly", ASKS},
	{ANY, "plan", ASKS},
	{ANY, "off", ASKS},
	{ANY, "acceptedits", LESS},                // claude-agent-acp, claude-code-acp
	{ANY, "agentfullaccess", LESS},            // codex-acp 2
	{ANY, "allowall", LESS},                   // Copilot CLI
	{ANY, "approveall", LESS},                 // clients' own name for it
	{ANY, "auto", LESS_COMMON},                // claude-agent-acp, codex-acp, Goose
	{ANY, "autoaccept", LESS},                 // clients' own name for it
	{ANY, "autoapprove", LESS},                // VS Code's agent host
	{ANY, "autoedit", LESS},                   // gemini-cli, qwen-code
	{ANY, "autopilot", LESS},                  // Copilot CLI
	{ANY, "bypass", LESS_COMMON},              // clients' own name for it
	{ANY, "bypasspermissions", LESS},          // claude-agent-acp, claude-code-acp
	{ANY, "dangerfullaccess", LESS},           // Codex, sandbox_mode
	{ANY, "dangerouslyskippermissions", LESS}, // Claude Code's flag
	{ANY, "dontask", LESS},                    // claude-agent-acp
	{ANY, "fullaccess", LESS},                 // codex-acp
	{ANY, "fullauto", LESS},                   // Codex's flag
	{ANY, "never", LESS_COMMON},               // Codex, approval_policy
	{ANY, "skippermissions", LESS},            // clients' own name for it
	{ANY, "yolo", LESS},                       // gemini-cli, qwen-code
	/* @agentclientprotocol/codex-acp 2.6.0, @zed-industries/codex-acp 0.16.0 */
	{"codexacp", "readonly", ASKS},
	{"codexacp", "workspacewrite", LESS}, // edits the workspace unasked
	{"codexacp", "agent", LESS},          // a model decides about what it asks; the default
	{"codexacp", "agentfullaccess", LESS},
	{"codexacp", "auto", LESS},
	{"codexacp", "fullaccess", LESS},
	/* @agentclientprotocol/claude-agent-acp 0.101.0, @zed-industries/claude-code-acp 0.16.2 */
	{"claudeagentacp", "default", ASKS},
	{"claudeagentacp", "plan", LESS}, // if it has the mode auto, a model decides about commands
	{"claudeagentacp", "acceptedits", LESS},
	{"claudeagentacp", "auto", LESS},
	{"claudeagentacp", "dontask", LESS},
	{"claudeagentacp", "bypasspermissions", LESS},
	{"claudecodeacp", "default", ASKS},
	{"claudecodeacp", "plan", ASKS},
	{"claudecodeacp", "acceptedits", LESS},
	{"claudecodeacp", "dontask", LESS},
	{"claudecodeacp", "bypasspermissions", LESS},
	/* @google/gemini-cli 0.61.0 */
	{"geminicli", "default", ASKS},
	{"geminicli", "plan", ASKS},
	{"geminicli", "autoedit", LESS},
	{"geminicli", "yolo", LESS},
	/* @qwen-code/qwen-code 0.24.4 */
	{"qwencode", "default", ASKS},
	{"qwencode", "plan", ASKS},
	{"qwencode", "autoedit", LESS},
	{"qwencode", "auto", LESS},
	{"qwencode", "yolo", LESS},
	/* opencode-ai 1.18.33: commands run unasked, unless its own configuration has them asked */
	{"opencode", "build", LESS},
	{"opencode", "plan", LESS},
	/* @github/copilot 1.0.102 */
	{"copilot", "agent", ASKS},
	{"copilot", "plan", ASKS},
	{"copilot", "autopilot", LESS},
};

/* Options that can be switched on and off. */
static const char *const switches[] = {"acceptedits", "allowall", "alwaysallow", "autoaccept",
	"autoapprove", "bypasspermissions", "dangerouslyskippermissions", "skippermissions",
	"yolo"};

static const char *const on_values[] = {"true", "on", "yes", "enabled", "always", "1"};

/* ACP, SessionConfigOptionCategory: categories that have nothing to do with permissions. */
static const char *const other_categories[] = {"model", "model_config", "thought_level"};

/*
 * If an option's id or category contains one of these, an everyday word in it is about permissions.
 */
static const char *const hints[] = {"mode", "approv", "permission", "ask"};

/* ---- names ---- */

/* The part of a URI after the last # or slash. */
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

/*
 * Whether a name has a last part without being a URI: the user's own "x/read-only" is not the
 * agent's "read-only".
 */
static bool is_cut(const char *mode_id)
{
	return last_part(mode_id) != mode_id && !strstr(mode_id, "://");
}

/* The lower-case letters and digits of the last part. */
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

/* The row of an agent, or of ANY; both in the form that plain() makes; or NULL. */
static const struct mode *find(const char *agent, const char *mode)
{
	for (size_t i = 0; i < ARRAY_LENGTH(modes); i++) {
		if (strcmp(modes[i].agent, agent) == 0 &&
			(!mode || strcmp(modes[i].mode, mode) == 0)) {
			return &modes[i];
		}
	}
	return NULL;
}

bool modes_know_agent(const char *agent)
{
	char name[MODES_NAME_MAX];
	return find(plain(agent, name), NULL) != NULL;
}

static enum modes_verdict verdict_of(const struct mode *row, const char *mode_id)
{
	if (!row || (row->meaning == ASKS && is_cut(mode_id))) {
		return MODES_UNKNOWN;
	}
	return row->meaning == ASKS ? MODES_ASK : MODES_ASK_LESS;
}

/* MODES_UNKNOWN if the table does not have the mode. */
static enum modes_verdict judge_by_agent(const char *agent, const char *mode_id)
{
	char name[MODES_NAME_MAX];
	char mode[MODES_NAME_MAX];
	return verdict_of(find(plain(agent, name), plain(mode_id, mode)), mode_id);
}

enum modes_verdict modes_judge(const char *agent, const char *mode_id)
{
	char mode[MODES_NAME_MAX];
	enum modes_verdict verdict = judge_by_agent(agent, mode_id);
	if (verdict == MODES_UNKNOWN) {
		verdict = verdict_of(find(ANY, plain(mode_id, mode)), mode_id);
		bool is_doubtful = verdict == MODES_ASK && modes_know_agent(agent);
		return is_doubtful ? MODES_UNKNOWN : verdict;
	}
	return verdict;
}

bool modes_ask_less(const char *agent, const char *mode_id)
{
	return modes_judge(agent, mode_id) == MODES_ASK_LESS;
}

bool modes_is_read_only(const char *mode_id)
{
	static const char *const names[] = {"plan", "readonly"};
	char mode[MODES_NAME_MAX];
	return is_one_of(plain(mode_id, mode), names, ARRAY_LENGTH(names));
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

/* ACP, SessionConfigOptionCategory: whether an option is also the session's mode. */
bool modes_option_is_mode(const char *config_id, const char *category)
{
	char id[MODES_NAME_MAX];
	return strcmp(category, "mode") == 0 || strcmp(plain(config_id, id), "mode") == 0;
}

bool modes_option_asks_less(
	const char *agent, const char *config_id, const char *category, const char *value)
{
	char name[MODES_NAME_MAX];
	char id[MODES_NAME_MAX];
	category = category ? category : "";
	if (is_one_of(category, other_categories, ARRAY_LENGTH(other_categories))) {
		return false;
	}
	enum modes_verdict verdict = modes_option_is_mode(config_id, category)
	                                     ? judge_by_agent(agent, value)
	                                     : MODES_UNKNOWN;
	if (verdict != MODES_UNKNOWN) {
		return verdict == MODES_ASK_LESS;
	}
	plain(value, name);
	if (is_one_of(plain(config_id, id), switches, ARRAY_LENGTH(switches)) &&
		is_one_of(name, on_values, ARRAY_LENGTH(on_values))) {
		return true;
	}
	const struct mode *row = find(ANY, name);
	return row && row->meaning != ASKS &&
	       (row->meaning == LESS || has_hint(config_id) || has_hint(category));
}

/* ---- the modes of a session ---- */

bool modes_copy_value(const struct json_doc *doc, json_node node, char out[MODES_NAME_MAX])
{
	if (json_is(doc, node, JSON_BOOL)) {
		text_whole(
			out, MODES_NAME_MAX, "%s", json_bool(doc, node, false) ? "true" : "false");
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

/* What to search for, and for which agent. */
struct search {
	const char *agent;
	const struct json_doc *doc;
	const char *category;
	struct modes_fix *fix;
};

/* The rank of a value; the lowest is chosen: its place in the table, then the agent's own order. */
static size_t rank_of(const struct search *search, const char *value)
{
	char name[MODES_NAME_MAX];
	const struct mode *row = find(ANY, plain(value, name));
	if (verdict_of(row, value) == MODES_ASK) {
		return (size_t)(row - modes);
	}
	return judge_by_agent(search->agent, value) == MODES_ASK ? 0 : ARRAY_LENGTH(modes);
}

static bool value_asks_less(const struct search *search, const char *value)
{
	const char *id = search->fix->config_id;
	return id[0] ? modes_option_asks_less(search->agent, id, search->category, value)
	             : modes_ask_less(search->agent, value);
}

static void consider(const struct search *search, const char *value)
{
	struct modes_fix *fix = search->fix;
	if (!value_asks_less(search, value) &&
		(!fix->to[0] || rank_of(search, value) < rank_of(search, fix->to))) {
		memcpy(fix->to, value, sizeof(fix->to));
	}
}

/* Chooses the best value that a list offers; options may be in groups. */
static void choose(const struct search *search, json_node list, const char *member)
{
	char value[MODES_NAME_MAX];
	const struct json_doc *doc = search->doc;
	for (json_node item = json_first(doc, list); item != JSON_NODE_NONE;
		item = json_next(doc, item)) {
		json_node group = json_get(doc, item, "options");
		for (json_node inner = json_first(doc, group); inner != JSON_NODE_NONE;
			inner = json_next(doc, inner)) {
			if (modes_copy_value(doc, json_get(doc, inner, member), value)) {
				consider(search, value);
			}
		}
		if (group == JSON_NODE_NONE &&
			modes_copy_value(doc, json_get(doc, item, member), value)) {
			consider(search, value);
		}
	}
}

static bool find_mode(
	const char *agent, const struct json_doc *doc, json_node object, struct modes_fix *fix)
{
	struct search search = {.agent = agent, .doc = doc, .fix = fix};
	*fix = (struct modes_fix){.is_boolean = false};
	json_node current = json_path(doc, object, "modes.currentModeId");
	if (!modes_copy_value(doc, current, fix->from) || !modes_ask_less(agent, fix->from)) {
		return false;
	}
	choose(&search, json_path(doc, object, "modes.availableModes"), "id");
	return true;
}

static bool find_option(
	const char *agent, const struct json_doc *doc, json_node option, struct modes_fix *fix)
{
	char category[MODES_NAME_MAX] = "";
	struct search search = {.agent = agent, .doc = doc, .category = category, .fix = fix};
	*fix = (struct modes_fix){.is_boolean = false};
	json_node current = json_get(doc, option, "currentValue");
	modes_copy_value(doc, json_get(doc, option, "category"), category);
	if (!modes_copy_value(doc, json_get(doc, option, "id"), fix->config_id) ||
		!modes_copy_value(doc, current, fix->from) ||
		!modes_option_asks_less(agent, fix->config_id, category, fix->from)) {
		return false;
	}
	fix->is_boolean = json_is(doc, current, JSON_BOOL);
	if (fix->is_boolean) {
		snprintf(fix->to, sizeof(fix->to), "false");
	} else {
		choose(&search, json_get(doc, option, "options"), "value");
	}
	return true;
}

/* Copies the option's value; false if the option does not hold the mode. */
static bool read_mode(const struct json_doc *doc, json_node option, char out_value[MODES_NAME_MAX])
{
	char id[MODES_NAME_MAX];
	char category[MODES_NAME_MAX] = "";
	modes_copy_value(doc, json_get(doc, option, "category"), category);
	return modes_copy_value(doc, json_get(doc, option, "id"), id) &&
	       modes_option_is_mode(id, category) &&
	       modes_copy_value(doc, json_get(doc, option, "currentValue"), out_value);
}

bool modes_find_option(
	const struct json_doc *doc, json_node options, char out_value[MODES_NAME_MAX])
{
	for (json_node option = json_first(doc, options); option != JSON_NODE_NONE;
		option = json_next(doc, option)) {
		if (read_mode(doc, option, out_value)) {
			return true;
		}
	}
	return false;
}

bool modes_find_unknown(const char *agent, const struct json_doc *doc, json_node options,
	char out_value[MODES_NAME_MAX])
{
	for (json_node option = json_first(doc, options); option != JSON_NODE_NONE;
		option = json_next(doc, option)) {
		if (read_mode(doc, option, out_value) &&
			modes_judge(agent, out_value) == MODES_UNKNOWN) {
			return true;
		}
	}
	return false;
}

size_t modes_find(const char *agent, const struct json_doc *doc, json_node object,
	struct modes_fix *out_fixes)
{
	size_t count = find_mode(agent, doc, object, &out_fixes[0]) ? 1 : 0;
	bool has_mode = count > 0;
	json_node options = json_get(doc, object, "configOptions");
	for (json_node option = json_first(doc, options);
		option != JSON_NODE_NONE && count < MODES_FIXES_MAX;
		option = json_next(doc, option)) {
		struct modes_fix *fix = &out_fixes[count];
		bool found = find_option(agent, doc, option, fix);
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
			text_whole(out_category, size, "%s", category);
		}
		free(category);
	}
}
