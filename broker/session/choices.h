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
 * The choices that the editor has made in a session and the agent has acknowledged: the mode, the
 * model and the options (ACP: session/set_mode, session/set_model, session/set_config_option). The
 * broker sends all of them again to a restarted agent. This file does not know agents or links.
 */
enum choice_kind { CHOICE_MODE, CHOICE_MODEL, CHOICE_OPTION, CHOICE_KIND_COUNT };

enum {
	CHOICES_MAX = 16,            // per session; further options are not remembered
	CHOICES_JSON_MAX = 16 << 10, // bytes of all choices of a session
};

struct choice {
	struct list link; // choices.all
	enum choice_kind kind;
	char config_id[MODES_NAME_MAX]; // "" if it is not an option
	char value[MODES_NAME_MAX];     // "true" or "false" for a boolean
	bool is_boolean;
	bool is_mode;    // an option that the agent files under "mode"
	bool is_stale;   // the agent has restarted and has not acknowledged it yet
	unsigned serial; // changes with the value
};

struct choices {
	struct list all; // of struct choice, in the order for sending them again
	int count;
	unsigned serials;
	char *refusal; // owned; why the agent refused one; NULL: it did not, or a prompt said so
	char *refused; // owned; the agent's own words for it, used as detail
};

void choices_init(struct choices *choices);
void choices_finish(struct choices *choices);

/* Returns the ACP method that sets this kind. */
const char *choice_method(enum choice_kind kind);

/* Reads the params of such a method. False if they hold nothing that can be remembered. */
bool choice_read(const char *method, const struct json_doc *doc, struct choice *out_choice);

/* Writes the request that sets the choice. Fails if it does not fit into `out`. */
bool choice_write_request(const struct choice *choice, uint64_t id, const char *session_id,
	struct buf *out, struct error *err) ATTR_NODISCARD;

/*
 * The agent has acknowledged the choice: it replaces an earlier one and becomes the last. A model
 * becomes the first, because the options depend on the model. A refusal is forgotten. False if
 * there are too many choices.
 */
bool choices_put(struct choices *choices, const struct choice *choice);
struct choice *choices_find(
	struct choices *choices, enum choice_kind kind, const char *config_id); // or NULL
void choices_drop(struct choices *choices, struct choice *choice);

/*
 * The agent has reported another mode, or all of its options: updates the choices. `except` is an
 * option to leave alone; NULL: none. Stale choices are left alone. Returns whether anything
 * changed.
 */
bool choices_follow_mode(struct choices *choices, const char *mode_id);
bool choices_follow_options(
	struct choices *choices, const struct json_doc *doc, json_node options, const char *except);

/* The agent has ended; its successor knows none of the choices. */
void choices_make_stale(struct choices *choices);
struct choice *choices_first_stale(const struct choices *choices);                // or NULL
struct choice *choices_of_serial(const struct choices *choices, unsigned serial); // or NULL

/*
 * Writes and reads the choices as a JSON array; writes nothing if there are none. Choices that were
 * read are stale.
 */
void choices_write_json(const struct choices *choices, struct buf *out);
void choices_read_json(struct choices *choices, struct span json);

#endif
