/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_INIT_PARTS_H
#define BROKER_CLI_INIT_PARTS_H

#include "base/list.h"
#include "broker/cli/init.h"
#include "broker/config/config_file.h"
#include "broker/init/editors.h"

/* ---- agents and places of this machine: init_look.c ---- */

struct init_agent {
	struct list link;                // init.agents
	const char *name;                // borrowed
	const struct known_agent *known; // facts about its program; may be NULL
	char *program;                   // owned; NULL: not on this machine
};

struct init_place {
	struct list link; // init.places
	struct provider *provider;
	const struct provider_place *place;
	bool is_there;
	struct error why; // why not, unless is_there
	char **choices;   // owned; if is_there
	bool is_strict;   // this machine also supports the strict value
	char *warning;    // owned; why it is not strict; or NULL
};

struct init {
	const struct init_means *means;
	struct config_file file; // the existing configuration
	char *config_path;       // owned; absolute
	struct list agents, places;
	bool asks;           // asks questions in the terminal
	bool is_interrupted; // by a signal
	/* The choices: */
	const struct init_agent *agent;
	const struct init_place *place;
	char *asked_value;           // owned; of the place's asked key; or NULL
	const struct editor *editor; // NULL: none
	char *profile;               // owned; its name
	struct settings settings;    // of the profile
};

void init_find_agents(struct init *init);

/* Checks the place of this name, or all places (NULL). False only if a signal ended it. */
bool init_find_places(struct init *init, const char *name, struct error *err) ATTR_NODISCARD;
void init_forget(struct init *init); // agents and places

/*
 * Prepares a sandbox with these settings, then removes it. True if the sandbox confines;
 * *out_warning, owned by the caller, says what it cannot enforce, or is NULL.
 */
bool init_try(struct init *init, struct provider *provider, const struct settings *settings,
	char **out_warning, struct error *err) ATTR_NODISCARD;

/* ---- questions: init_ask.c ---- */

enum { INIT_CHOICES_MAX = 64, INIT_ANSWER_MAX = 256 };

struct init_choice {
	const char *word;
	char text[224]; // for people
};

/*
 * Asks for one of the choices. The user types its number or its word; Enter takes the preset one.
 * Fails with ERROR_UNAVAILABLE at the end of stdin.
 */
bool init_ask(const char *question, const struct init_choice *choices, size_t count, size_t preset,
	size_t *out_choice, struct error *err) ATTR_NODISCARD;

/* Asks for one of the choices or any other word; the caller owns the result. */
bool init_ask_word(const char *question, char *const *choices, char **out_word,
	struct error *err) ATTR_NODISCARD;

bool init_ask_yes(const char *question, bool *out_yes, struct error *err) ATTR_NODISCARD;

/* ---- the choices: init_choose.c ---- */

/* Makes the choices, from the options, the defaults or the user's answers. */
bool init_choose(struct init *init, struct error *err) ATTR_NODISCARD;

/* ---- writing the files: init_write.c ---- */

bool init_write(struct init *init, struct error *err) ATTR_NODISCARD;

#endif
