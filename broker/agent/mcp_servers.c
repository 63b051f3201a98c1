/* SPDX-License-Identifier: MIT */
#include "broker/agent/mcp_servers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acp/rewrite.h"
#include "base/text.h"
#include "base/words.h"
#include "broker/agent/mcp_entry.h"
#include "broker/config/mcp_url.h"

enum { NAME_BYTES = 96, SUBJECT_BYTES = 256, NOTICE_BYTES = 1024 };

/* ---- servers of the profile ---- */

/* The broker's own counts as the last one of the profile. */
static size_t count_servers(const struct mcp_context *context)
{
	return context->server_count + (context->own ? 1 : 0);
}

static const struct mcp_server *server_at(const struct mcp_context *context, size_t at)
{
	return at < context->server_count ? &context->servers[at] : context->own;
}

/* count_servers if there is none. */
static size_t find_server(const struct mcp_context *context, const char *name)
{
	size_t at = 0;
	size_t count = count_servers(context);
	while (at < count && (!name || strcmp(server_at(context, at)->name, name) != 0)) {
		at++;
	}
	return at;
}

static const char *path_of_server(const struct mcp_server *server)
{
	const char *path = "";
	for (char **entry = server->env; *entry; entry++) {
		if (strncmp(*entry, "PATH=", 5) == 0) {
			path = *entry + 5;
		}
	}
	return path;
}

/* ---- the list ---- */

/* Parses the list; *out_doc is NULL if there is none, or if it is no list. */
static bool open_list(const struct message *message, struct json_doc **out_doc, struct error *err)
{
	struct span raw = message_place(message, PLACE_MCP_SERVERS);
	*out_doc = NULL;
	if (raw.len == 0 || raw.data[0] != '[') {
		return true;
	}
	*out_doc = json_doc_parse_unchecked(raw, err);
	return *out_doc || error_prefix(err, "%s: mcpServers", message->method);
}

bool mcp_servers_concern(const struct mcp_context *context)
{
	return count_servers(context) > 0 || context->has_other_files ||
	       context->has_other_loopback;
}

bool mcp_servers_collect(const struct mcp_context *context, const struct message *message,
	struct mcp_commands *commands, struct error *err)
{
	struct json_doc *doc;
	if (!context->has_other_files) {
		return true;
	}
	if (!open_list(message, &doc, err)) {
		return false;
	}
	for (size_t i = 0; i < context->server_count; i++) {
		const struct mcp_server *server = &context->servers[i];
		if (server->command) {
			mcp_commands_add(commands, server->command, path_of_server(server));
		}
	}
	json_node node = doc ? json_first(doc, 0) : JSON_NODE_NONE;
	for (; node != JSON_NODE_NONE; node = json_next(doc, node)) {
		struct mcp_entry entry;
		mcp_entry_init(&entry, context->map, doc, node);
		bool is_replaced = find_server(context, entry.name) < count_servers(context);
		if (entry.command && !is_replaced) {
			mcp_commands_add(commands, entry.command, entry.path);
		}
		mcp_entry_finish(&entry);
	}
	json_doc_destroy(doc);
	return true;
}

/* ---- the edits ---- */

struct edit {
	const struct mcp_context *context;
	const struct message *message;
	struct splice *splice;
	char ***notices;
	bool *has_server; // for each server of the profile: it has replaced one of the list
	size_t left_out;  // servers left out, for the notices
	bool has_unknown; // it is unknown of some command whether it exists
	size_t first;     // offset of the first element; 0: none
	size_t last_end;  // end of the last element seen
	bool has_kept;    // an element stays
};

static void say(struct edit *edit, const char *name, const char *what)
{
	char quoted[NAME_BYTES];
	char text[NOTICE_BYTES];
	if (edit->left_out++ < MCP_NOTICES_MAX) {
		text_format(text, sizeof(text), "MCP server %s was left out: %s",
			setting_quote(quoted, sizeof(quoted), name ? name : ""), what);
		words_append(edit->notices, text);
	}
}

/* Whether the sandbox has a command, as far as known. */
static bool command_passes(
	struct edit *edit, const char *name, const char *command, const char *path)
{
	char quoted[SUBJECT_BYTES];
	char text[NOTICE_BYTES];
	const struct mcp_context *context = edit->context;
	if (!context->has_other_files || !context->commands) {
		return true;
	}
	enum mcp_command_state state = mcp_commands_state(context->commands, command, path);
	edit->has_unknown = edit->has_unknown || state == MCP_COMMAND_UNKNOWN;
	if (state != MCP_COMMAND_MISSING) {
		return true;
	}
	text_format(text, sizeof(text),
		"the sandbox has no command %s; install it there, or configure another in "
		"an [mcp \"NAME\"] section of the configuration",
		setting_quote(quoted, sizeof(quoted), command));
	say(edit, name, text);
	return false;
}

static bool server_passes(struct edit *edit, const struct mcp_server *server)
{
	char text[NOTICE_BYTES];
	if (server == edit->context->own) {
		return true;
	}
	if (server->type == MCP_STDIO) {
		return command_passes(edit, server->name, server->command, path_of_server(server));
	}
	bool is_lacking =
		server->type == MCP_HTTP ? edit->context->lacks_http : edit->context->lacks_sse;
	if (is_lacking) {
		text_format(text, sizeof(text),
			"the agent takes no servers of type %s, which the configuration gives it",
			mcp_type_name(server->type));
		say(edit, server->name, text);
	}
	return !is_lacking;
}

static bool url_passes(const struct mcp_context *context, const char *url)
{
	uint16_t port = mcp_url_local_port(url);
	return !context->has_other_loopback || !mcp_url_is_loopback(url) ||
	       (port != 0 && context->reaches_port && context->reaches_port(context->data, port));
}

static void print_url_remedy(
	const struct mcp_context *context, const char *url, char *out, size_t size)
{
	uint16_t port = mcp_url_local_port(url);
	if (context->reached_by && port != 0) {
		text_format(out, size, "%s%u in the profile lets it", context->reached_by, port);
	} else if (context->reached_by) {
		text_format(out, size, "use localhost as its name, and add %sPORT to the profile",
			context->reached_by);
	} else {
		text_format(out, size,
			"configure another in an [mcp \"NAME\"] section of the configuration");
	}
}

static bool entry_passes(struct edit *edit, const struct mcp_entry *entry)
{
	char shown[SUBJECT_BYTES];
	char quoted[SUBJECT_BYTES];
	char remedy[SUBJECT_BYTES];
	char text[NOTICE_BYTES];
	if (entry->command) {
		return command_passes(edit, entry->name, entry->command, entry->path);
	}
	if (!entry->url || url_passes(edit->context, entry->url)) {
		return true;
	}
	print_url_remedy(edit->context, entry->url, remedy, sizeof(remedy));
	mcp_url_shown(shown, sizeof(shown), entry->url);
	text_format(text, sizeof(text),
		"%s leads to this machine, which the sandbox cannot reach by that address; %s",
		setting_quote(quoted, sizeof(quoted), shown), remedy);
	say(edit, entry->name, text);
	return false;
}

static bool write_server(
	const struct mcp_server *server, struct buf *out, const char *before, struct error *err)
{
	struct json_writer writer;
	struct buf text;
	buf_init(&text, SPLICE_BYTES_MAX);
	json_write_begin(&writer, &text);
	mcp_server_write(server, &writer);
	bool ok = json_write_end(&writer, err) && buf_append(out, span_of(before), err) &&
	          buf_append(out, buf_span(&text), err);
	buf_finish(&text);
	return ok;
}

static bool replace_entry(struct edit *edit, size_t start, size_t end,
	const struct mcp_server *server, struct error *err)
{
	struct buf text;
	buf_init(&text, SPLICE_BYTES_MAX);
	bool ok = write_server(server, &text, "", err) &&
	          splice_add(edit->splice, start, end, buf_span(&text), err);
	buf_finish(&text);
	return ok;
}

/* The offset of a span in the message. */
static size_t offset_of(const struct edit *edit, struct span span)
{
	return (size_t)(span.data - edit->message->text.data);
}

/* Keeps the element. Elements left out before the first one kept take their commas with them. */
static bool keep(struct edit *edit, size_t start, struct error *err)
{
	bool was_first = !edit->has_kept;
	edit->has_kept = true;
	return !was_first || edit->first == start ||
	       splice_add(edit->splice, edit->first, start, SPAN_LITERAL(""), err);
}

/* Removes the element, and the comma before it. */
static bool drop(struct edit *edit, size_t end, struct error *err)
{
	return !edit->has_kept ||
	       splice_add(edit->splice, edit->last_end, end, SPAN_LITERAL(""), err);
}

static bool translate_command(struct edit *edit, const struct mcp_entry *entry, struct error *err)
{
	if (!entry->command) {
		return true;
	}
	size_t start = offset_of(edit, entry->quoted);
	struct json_hit hit = {.start = start, .end = start + entry->quoted.len};
	return rewrite_path(
		edit->context->map, PATH_TO_RUNTIME, edit->message, &hit, edit->splice, err);
}

static bool edit_entry(struct edit *edit, const struct mcp_entry *entry, struct error *err)
{
	struct span raw = json_raw(entry->doc, entry->node);
	const struct mcp_context *context = edit->context;
	size_t start = offset_of(edit, raw);
	size_t end = start + raw.len;
	size_t at = find_server(context, entry->name);
	edit->first = edit->first ? edit->first : start;
	bool ok;
	if (at == count_servers(context)) {
		ok = entry_passes(edit, entry)
		             ? keep(edit, start, err) && translate_command(edit, entry, err)
		             : drop(edit, end, err);
	} else if (!edit->has_server[at] && server_passes(edit, server_at(context, at))) {
		ok = keep(edit, start, err) &&
		     replace_entry(edit, start, end, server_at(context, at), err);
		edit->has_server[at] = true;
	} else {
		ok = drop(edit, end, err);
		edit->has_server[at] = true;
	}
	edit->last_end = end;
	return ok;
}

/* Writes the profile's servers that the list does not name, separated by commas. */
static bool write_further(struct edit *edit, struct buf *out, struct error *err)
{
	const struct mcp_context *context = edit->context;
	for (size_t i = 0; i < count_servers(context); i++) {
		const struct mcp_server *server = server_at(context, i);
		if (!edit->has_server[i] && server_passes(edit, server) &&
			!write_server(server, out, out->len > 0 ? "," : "", err)) {
			return false;
		}
	}
	return true;
}

/* Appends `further` to the list; the part before it is edited already. */
static bool end_list(
	struct edit *edit, const struct json_hit *list, struct span further, struct error *err)
{
	if (edit->has_kept) {
		return further.len == 0 || (splice_add(edit->splice, edit->last_end, edit->last_end,
						    SPAN_LITERAL(","), err) &&
						   splice_add(edit->splice, edit->last_end,
							   edit->last_end, further, err));
	}
	if (edit->first) {
		return splice_add(edit->splice, edit->first, edit->last_end, further, err);
	}
	return further.len == 0 ||
	       splice_add(edit->splice, list->start + 1, list->start + 1, further, err);
}

/* There is no list, or null in its place: creates it. */
static bool make_list(struct edit *edit, struct span further, struct error *err)
{
	struct buf list;
	const struct json_hit *hit = message_hit(edit->message, PLACE_MCP_SERVERS);
	struct span params = message_place(edit->message, PLACE_PARAMS);
	bool is_null = hit && span_is(message_place(edit->message, PLACE_MCP_SERVERS), "null");
	if (further.len == 0 || (hit && !is_null) || params.len == 0 || params.data[0] != '{') {
		return true;
	}
	buf_init(&list, SPLICE_BYTES_MAX);
	bool ok = buf_append(&list, SPAN_LITERAL("["), err) && buf_append(&list, further, err) &&
	          buf_append(&list, SPAN_LITERAL("]"), err) &&
	          (is_null ? splice_add(edit->splice, hit->start, hit->end, buf_span(&list), err)
			   : splice_insert_member(edit->splice, edit->message->text, params,
				     "mcpServers", buf_span(&list), err));
	buf_finish(&list);
	return ok;
}

static void say_the_rest(struct edit *edit)
{
	char text[NOTICE_BYTES];
	if (edit->left_out > MCP_NOTICES_MAX) {
		snprintf(text, sizeof(text), "%zu further MCP servers were left out",
			edit->left_out - MCP_NOTICES_MAX);
		words_append(edit->notices, text);
	}
	if (edit->has_unknown) {
		text_format(text, sizeof(text),
			"MCP servers were passed on although it is not known whether the sandbox "
			"has their commands: %s",
			edit->context->commands->why_unknown);
		words_append(edit->notices, text);
	}
}

static bool edit_all(struct edit *edit, const struct json_doc *doc, struct error *err)
{
	struct buf further;
	bool ok = true;
	json_node node = doc ? json_first(doc, 0) : JSON_NODE_NONE;
	for (; ok && node != JSON_NODE_NONE; node = json_next(doc, node)) {
		struct mcp_entry entry;
		mcp_entry_init(&entry, edit->context->map, doc, node);
		ok = edit_entry(edit, &entry, err);
		mcp_entry_finish(&entry);
	}
	buf_init(&further, SPLICE_BYTES_MAX);
	const struct json_hit *list = message_hit(edit->message, PLACE_MCP_SERVERS);
	ok = ok && write_further(edit, &further, err) &&
	     (doc ? end_list(edit, list, buf_span(&further), err)
		  : make_list(edit, buf_span(&further), err));
	buf_finish(&further);
	return ok;
}

bool mcp_servers_edit(const struct mcp_context *context, const struct message *message,
	struct splice *splice, char ***notices, struct error *err)
{
	struct json_doc *doc;
	struct edit edit = {
		.context = context, .message = message, .splice = splice, .notices = notices};
	if (!mcp_servers_concern(context)) {
		return true;
	}
	if (!open_list(message, &doc, err)) {
		return false;
	}
	edit.has_server = mem_alloc_zero(count_servers(context) + 1);
	bool ok = edit_all(&edit, doc, err);
	say_the_rest(&edit);
	free(edit.has_server);
	json_doc_destroy(doc);
	return ok;
}
