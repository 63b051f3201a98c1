/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/container/devcontainer_members.h"
#include "providers/container/devcontainer_text.h"

enum {
	LINES_MAX = 16,
	LINE_BYTES = 8192,
	NAME_SIZE = 96,
	PORT_MIN = 1024, // only root may serve the ones below
	PORTS_MAX = 64,
};

static const char expected[] = "a string, an array of strings, or an object of these, and at most "
			       "16 commands of 8192 bytes";

/* In the order in which they run. None of them runs on this machine. */
static const char *const members[] = {
	"onCreateCommand", "updateContentCommand", "postCreateCommand"};

/* A command as a line of sh; the caller frees it. NULL: it has a variable that we do not give. */
static char *line_of_words(const struct devcontainer *self, json_node list)
{
	struct buf line;
	bool is_ok = true;
	buf_init(&line, 8 * LINE_BYTES);
	for (json_node node = json_first(self->doc, list); is_ok && node != JSON_NODE_NONE;
		node = json_next(self->doc, node)) {
		char *text = json_string(self->doc, node);
		char *word = text ? devcontainer_expand(self->place, text, true) : NULL;
		is_ok = word != NULL;
		if (is_ok && line.len > 0) {
			(void)!buf_append(&line, SPAN_LITERAL(" "), NULL);
		}
		if (is_ok) {
			devcontainer_quote(&line, word);
		}
		free(word);
		free(text);
	}
	char *whole = is_ok ? mem_strndup(buf_span(&line)) : NULL;
	buf_finish(&line);
	return whole;
}

static bool are_strings(const struct json_doc *doc, json_node list)
{
	for (json_node node = json_first(doc, list); node != JSON_NODE_NONE;
		node = json_next(doc, node)) {
		char *text = json_string(doc, node);
		free(text);
		if (!text) {
			return false;
		}
	}
	return true;
}

/* Appends one command. False: it is none. */
static bool take_command(
	const struct devcontainer *self, const char *prefix, struct span name, json_node node)
{
	const struct json_doc *doc = self->doc;
	char shown[NAME_SIZE];
	char *text = json_string(doc, node);
	bool is_list = !text && json_is(doc, node, JSON_ARRAY) && are_strings(doc, node);
	char *line = text      ? devcontainer_expand(self->place, text, true)
	             : is_list ? line_of_words(self, node)
	                       : NULL;
	bool is_command = text || is_list;
	if (is_command && !line) {
		devcontainer_ignore(self, prefix, name);
	} else if (is_command && line[0]) {
		is_command =
			strlen(line) <= LINE_BYTES && words_count(self->out->lines) < LINES_MAX;
		devcontainer_name(shown, sizeof(shown), prefix, name);
		words_append(&self->out->lines, line);
		words_append(&self->out->line_names, shown);
	}
	free(line);
	free(text);
	return is_command;
}

/* The commands of an object could run at the same time; ours run one after the other. */
static bool take_commands(const struct devcontainer *self, const char *member, json_node node)
{
	char prefix[NAME_SIZE];
	if (!json_is(self->doc, node, JSON_OBJECT)) {
		return take_command(self, "", span_of(member), node);
	}
	text_format(prefix, sizeof(prefix), "%s.", member);
	for (json_node child = json_first(self->doc, node); child != JSON_NODE_NONE;
		child = json_next(self->doc, child)) {
		if (!take_command(self, prefix, json_key(self->doc, child), child)) {
			return false;
		}
	}
	return true;
}

bool devcontainer_take_lines(const struct devcontainer *self, struct error *err)
{
	for (size_t i = 0; i < ARRAY_LENGTH(members); i++) {
		json_node node = json_get(self->doc, 0, members[i]);
		if (node != JSON_NODE_NONE && !json_is(self->doc, node, JSON_NULL) &&
			!take_commands(self, members[i], node)) {
			return devcontainer_expected(self, members[i], expected, err);
		}
	}
	return true;
}

/* ---- ports ---- */

/* A text such as "db:5432" is a port of another container. */
static bool add_port(struct exec_found *out, long long port)
{
	if (port < PORT_MIN || port > UINT16_MAX || out->port_count == FORWARDS_MAX) {
		return false;
	}
	for (size_t i = 0; i < out->port_count; i++) {
		if (out->ports[i] == port) {
			return true;
		}
	}
	out->ports[out->port_count++] = (uint16_t)port;
	return true;
}

/* The user must have allowed it: every program of this machine can connect to such a port. */
bool devcontainer_take_ports(const struct devcontainer *self, struct error *err)
{
	static const char member[] = "forwardPorts";
	const struct json_doc *doc = self->doc;
	json_node list = json_get(doc, 0, member);
	unsigned number = 0;
	if (list == JSON_NODE_NONE) {
		return true;
	}
	if (!json_is(doc, list, JSON_ARRAY) || json_count(doc, list) > PORTS_MAX) {
		return devcontainer_expected(self, member, "an array of at most 64 ports", err);
	}
	if (!self->place->opens_ports) {
		devcontainer_ignore(self, "", span_of(member));
		return true;
	}
	for (json_node node = json_first(doc, list); node != JSON_NODE_NONE;
		node = json_next(doc, node), number++) {
		char index[16];
		text_whole(index, sizeof(index), "%u", number);
		if (!add_port(self->out, json_int(doc, node, -1))) {
			devcontainer_ignore(self, "forwardPorts.", span_of(index));
		}
	}
	return true;
}
