/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_CHOICES_H
#define BROKER_SESSION_CHOICES_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/json_doc.h"
#include "base/json_writer.h"
#include "base/list.h"
#include "broker/policy/modes.h"

/*
 * What the editor has chosen in a session and the agent has acknowledged: the mode, the model and
 * the options (ACP: session/set_mode, session/set_model, session/set_config_option). An agent that
 * is started anew is told all of it again. Knows nothing of agents and links.
 */
enum choice_kind { CHOICE_MODE, CHOICE_MODEL, CHOICE_OPTION, CHOICE_KIND_COUNT };

enum {
	CHOICES_MAX = 16,            // of one session; a further option is not remembered
	CHOICES_JSON_MAX = 16 << 10, // bytes of all of a session
};

struct choice {
	struct list link; // choices.all
	enum choice_kind kind;
	char config_id[MODES_NAME_MAX]; // "" unless it is an option
	char value[MODES_NAME_MAX];     // "true" or "false" of a boolean
	bool is_boolean;
	bool is_mode;    // of an option: the agent files it under "mode"
	bool is_stale;   // the agent was started anew and has not acknowledged it
	unsigned serial; // changes whenever the value does
};

struct choices {
	struct list all; // of struct choice, in the order in which they are sent again
	int count;
	unsigned serials;
	char *refusal; // owned; why the agent refused one; NULL: it did not, or a prompt has said
	               // so
	char *refused; // owned; the same in the agent's words: the detail
};

void choices_init(struct choices *choices);
void choices_finish(struct choices *choices);

/* The method that sets this kind. */
const char *choice_method(enum choice_kind kind);

/* Reads the params of such a method; false where they are none that can be remembered. */
bool choice_read(const char *method, const struct json_doc *doc, struct choice *out_choice);

/* Writes the request that sets it. Fails where that does not fit into `out`. */
bool choice_write_request(const struct choice *choice, uint64_t id, const char *session_id,
	struct buf *out, struct error *err) ATTR_NODISCARD;

/*
 * The agent has acknowledged it: takes the place of the one before, and comes last. Of the models
 * it comes first: which options there are depends on the model. A refusal is forgotten. False:
 * there are too many.
 */
bool choices_put(struct choices *choices, const struct choice *choice);
struct choice *choices_find(
	struct choices *choices, enum choice_kind kind, const char *config_id); // or NULL
void choices_drop(struct choices *choices, struct choice *choice);

/*
 * The agent tells of another mode, or of all its options: what is remembered follows. `except` is
 * not touched; NULL: none. Whether anything changed. What is stale is left as it is.
 */
bool choices_follow_mode(struct choices *choices, const char *mode_id);
bool choices_follow_options(
	struct choices *choices, const struct json_doc *doc, json_node options, const char *except);

/* The agent has ended: whoever comes after it knows none of them. */
void choices_make_stale(struct choices *choices);
struct choice *choices_first_stale(const struct choices *choices);                // or NULL
struct choice *choices_of_serial(const struct choices *choices, unsigned serial); // or NULL

/* As an array of JSON; nothing where there are none. What is read is stale. */
void choices_write_json(const struct choices *choices, struct buf *out);
void choices_read_json(struct choices *choices, struct span json);

#endif
