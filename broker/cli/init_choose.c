/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/text.h"
#include "base/words.h"
#include "broker/cli/init_parts.h"
#include "broker/init/profile_text.h"

enum { PROFILE_SIZE = 256, CHOICES_TEXT_MAX = 256 };

/* ---- the agent ---- */

static void describe_agent(const struct init_agent *agent, struct init_choice *out_choice)
{
	*out_choice = (struct init_choice){.word = agent->name};
	text_format(out_choice->text, sizeof(out_choice->text), "%s%s%s",
		agent->known ? agent->known->title : "", agent->known ? ", " : "",
		agent->program ? agent->program : "not installed");
}

static const struct init_agent *agent_at(const struct init *init, size_t index)
{
	LIST_FOR_EACH(agent, &init->agents, struct init_agent, link) {
		if (index-- == 0) {
			return agent;
		}
	}
	return NULL;
}

/* The first agent that is installed; SIZE_MAX if none is. */
static size_t first_agent(const struct init *init)
{
	size_t index = 0;
	LIST_FOR_EACH(agent, &init->agents, struct init_agent, link) {
		if (agent->program) {
			return index;
		}
		index++;
	}
	return SIZE_MAX;
}

static bool ask_agent(struct init *init, struct error *err)
{
	struct init_choice choices[INIT_CHOICES_MAX];
	size_t count = 0;
	size_t first = first_agent(init);
	LIST_FOR_EACH(agent, &init->agents, struct init_agent, link) {
		if (count < INIT_CHOICES_MAX) {
			describe_agent(agent, &choices[count++]);
		}
	}
	size_t chosen;
	if (!init_ask("Which agent?", choices, count, first < count ? first : 0, &chosen, err)) {
		return false;
	}
	init->agent = agent_at(init, chosen);
	return true;
}

static bool choose_agent(struct init *init, struct error *err)
{
	const char *name = init->means->options->agent;
	struct config_agent found;
	if (!name && init->asks) {
		return ask_agent(init, err);
	}
	if (!name) {
		size_t first = first_agent(init);
		init->agent = first == SIZE_MAX ? NULL : agent_at(init, first);
		return init->agent ||
		       error_set(err, ERROR_CONFIG,
			       "--yes: expected --agent NAME, as no known agent is installed here: "
			       "acp-broker agents lists them, and how to install each");
	}
	if (!config_file_need_agent(&init->file, name, &found, err)) {
		return error_prefix(err, "--agent");
	}
	LIST_FOR_EACH(agent, &init->agents, struct init_agent, link) {
		init->agent = strcmp(agent->name, name) == 0 ? agent : init->agent;
	}
	return init->agent ||
	       error_set(err, ERROR_CONFIG, "--agent: [agent \"%s\"] has no command", name);
}

/* ---- the place ---- */

static bool fail_place(const struct init *init, const char *name, struct error *err)
{
	const char *names[INIT_CHOICES_MAX] = {NULL};
	char text[CHOICES_TEXT_MAX], quoted[CHOICES_TEXT_MAX];
	size_t count = 0;
	LIST_FOR_EACH(place, &init->places, struct init_place, link) {
		if (count + 1 < INIT_CHOICES_MAX) {
			names[count++] = place->place->name;
		}
	}
	return error_set(err, ERROR_CONFIG, "--place: expected %s, got %s",
		setting_choices_text(text, sizeof(text), names),
		setting_quote(quoted, sizeof(quoted), name));
}

static bool ask_place(struct init *init, struct error *err)
{
	struct init_choice choices[INIT_CHOICES_MAX];
	const struct init_place *offered[INIT_CHOICES_MAX];
	size_t count = 0;
	LIST_FOR_EACH(place, &init->places, struct init_place, link) {
		if (place->is_there && count < INIT_CHOICES_MAX) {
			offered[count] = place;
			choices[count] = (struct init_choice){.word = place->place->name};
			text_format(choices[count].text, sizeof(choices[count].text), "%s",
				place->place->text);
			count++;
		}
	}
	size_t chosen;
	if (!init_ask("Where does it work?", choices, count, 0, &chosen, err)) {
		return false;
	}
	init->place = offered[chosen];
	return true;
}

static bool choose_place(struct init *init, struct error *err)
{
	const char *name = init->means->options->place;
	if (!init_find_places(init, name, err)) {
		return false;
	}
	if (!name && init->asks) {
		return ask_place(init, err);
	}
	/* Without --place, takes the first one, which every machine has. */
	LIST_FOR_EACH(place, &init->places, struct init_place, link) {
		if (!init->place && (!name || strcmp(place->place->name, name) == 0)) {
			init->place = place;
		}
	}
	if (!init->place) {
		return fail_place(init, name, err);
	}
	if (!init->place->is_there) {
		*err = init->place->why;
		return error_prefix(err, "--place %s", init->place->place->name);
	}
	return true;
}

/* Chooses the value, such as a host. A name that begins with a dash would be an option of ssh. */
static bool choose_value(struct init *init, struct error *err)
{
	const char *given = init->means->options->host;
	const struct provider_place *place = init->place->place;
	if (given && !place->asked) {
		return error_set(err, ERROR_CONFIG, "--place %s takes no --host", place->name);
	}
	if (given && (given[0] == '-' || strlen(given) >= INIT_ANSWER_MAX)) {
		return error_set(
			err, ERROR_CONFIG, "--host: expected the name of a host, or USER@HOST");
	}
	init->asked_value = mem_strdup_or_null(given);
	if (!place->asked || given) {
		return true;
	}
	if (!init->asks) {
		return error_set(
			err, ERROR_CONFIG, "--place %s: expected --host NAME, too", place->name);
	}
	char question[64];
	text_format(question, sizeof(question), "Which %s?", place->asked);
	return init_ask_word(question, init->place->choices, &init->asked_value, err);
}

/* ---- the editor ---- */

static bool ask_editor(struct init *init, struct error *err)
{
	const struct editor *editor;
	const struct editor *offered[INIT_CHOICES_MAX] = {NULL};
	struct init_choice choices[INIT_CHOICES_MAX] = {
		{.word = "none", .text = "change no editor's settings"}};
	size_t count = 1;
	for (size_t i = 0; (editor = editor_at(i)) != NULL; i++) {
		char *path = editor_path(editor, init->means->environment);
		if (path && editor_is_here(editor, init->means->environment)) {
			offered[count] = editor;
			choices[count].word = editor_name(editor);
			text_format(choices[count].text, sizeof(choices[count].text), "%s", path);
			count++;
		}
		free(path);
	}
	size_t chosen = 0;
	bool ok = count == 1 ||
	          init_ask("Which editor gets it, too?", choices, count, 0, &chosen, err);
	init->editor = ok ? offered[chosen] : NULL;
	return ok;
}

static bool choose_editor(struct init *init, struct error *err)
{
	const char *name = init->means->options->editor;
	if (!name) {
		return !init->asks || ask_editor(init, err);
	}
	const char *names[INIT_CHOICES_MAX] = {"none"};
	size_t count = 1;
	for (size_t i = 0; editor_at(i); i++) {
		names[count++] = editor_name(editor_at(i));
	}
	struct setting_key key = {.type = SETTING_CHOICE, .choices = names};
	if (!setting_check(&key, name, err)) {
		return error_prefix(err, "--editor");
	}
	init->editor = editor_find(name); // NULL: none
	return true;
}

/* ---- the profile ---- */

static void add_setting(struct init *init, const char *key, const char *value)
{
	settings_add(&init->settings, key, value, "init");
}

/* A new machine has no agent and no login, so the profile installs one and passes a key on. */
static void add_machine(struct init *init)
{
	const struct known_agent *known = init->agent->known;
	add_setting(init, "image", init->place->place->image);
	if (!known) {
		return;
	}
	add_setting(init, "setup", known->install);
	for (const char *const *name = known->key_names; *name; name++) {
		if (environment_get(init->means->environment, *name)) {
			add_setting(init, "secret-env", *name);
			return;
		}
	}
}

static void make_settings(struct init *init)
{
	const struct provider_place *place = init->place->place;
	const char *backend = provider_name(init->place->provider);
	if (strcmp(backend, PROVIDER_DEFAULT) != 0) {
		add_setting(init, "backend", backend);
	}
	if (place->asked) {
		add_setting(init, place->asked, init->asked_value);
	}
	add_setting(init, "agent", init->agent->name);
	if (place->key) {
		add_setting(
			init, place->key, init->place->is_strict ? place->strict : place->value);
	}
	if (place->more_key) {
		add_setting(init, place->more_key, place->more_value);
	}
	if (place->image) {
		add_machine(init);
	}
}

/* "claude-confined", "claude-devbox". */
static bool name_profile(struct init *init, struct error *err)
{
	char name[PROFILE_SIZE];
	const char *given = init->means->options->profile;
	const char *where = init->asked_value ? init->asked_value : init->place->place->name;
	bool fits = text_whole(name, sizeof(name), "%s-%s", init->agent->name, where);
	for (char *at = name; *at && !given; at++) {
		if (*at == ':' || *at == '/' || *at == '%' || *at == '[' || *at == ']') {
			*at = '-';
		}
	}
	if (!profile_text_is_name(given ? given : fits ? name : "")) {
		return error_set(err, ERROR_CONFIG,
			"--profile: expected a name of letters, digits, \".\", \"_\", \"@\" and "
			"\"-\""
			"%s",
			given ? ""
			      : ", because the names of the agent and its place do not make one");
	}
	init->profile = mem_strdup(given ? given : name);
	return true;
}

bool init_choose(struct init *init, struct error *err)
{
	init_find_agents(init);
	if (!choose_agent(init, err) || !choose_place(init, err) || !choose_value(init, err) ||
		!choose_editor(init, err) || !name_profile(init, err)) {
		return false;
	}
	make_settings(init);
	return true;
}
