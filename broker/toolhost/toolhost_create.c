/* SPDX-License-Identifier: MIT */
#include "broker/toolhost/toolhost_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/words.h"

/* terminal/create: its params, and the command that it starts. */

/* ---- events of the command ---- */

static struct create_call *create_of(const struct tool_terminal *terminal)
{
	return terminal->create ? CONTAINER_OF(terminal->create, struct create_call, call) : NULL;
}

static void on_started(void *data)
{
	struct tool_terminal *terminal = data;
	struct create_call *create = create_of(terminal);
	struct json_writer writer;
	json_write_begin(&writer, &create->call.result);
	json_write_object(&writer);
	json_write_key(&writer, "terminalId");
	json_write_text(&writer, terminal->id);
	json_write_object_end(&writer);
	bool is_written = json_write_end(&writer, NULL);
	assert(is_written);
	(void)is_written;
	create->terminal = NULL;
	terminal->create = NULL;
	tool_call_answer(&create->call);
}

/* The terminal is destroyed with the call. */
static void fail_create(struct create_call *create, const struct error *err)
{
	bool is_missing = (err->code == ERROR_NOT_FOUND || err->code == ERROR_DENIED) &&
	                  !err->reason && create->terminal->process;
	if (is_missing) {
		tool_call_fail(&create->call, "COMMAND_NOT_FOUND", "%s", err->text);
	} else {
		tool_call_fail_with(&create->call, err);
	}
}

static void on_failed(void *data, const struct error *err)
{
	fail_create(create_of(data), err);
}

static void on_login(void *data, const struct login_url *login)
{
	const struct tool_terminal *terminal = data;
	const struct toolhost_config *config = &terminal->toolhost->config;
	config->listener->on_login(config->data, terminal->session_id, login);
}

static void on_piece(void *data, struct span piece)
{
	struct tool_terminal *terminal = data;
	if (terminal->logins) {
		login_scan_feed(terminal->logins, piece, on_login, terminal);
	}
}

static void on_output(void *data)
{
	displays_note(data);
}

static void on_exited(void *data)
{
	struct tool_terminal *terminal = data;
	if (terminal->logins) {
		login_scan_end(terminal->logins, on_login, terminal);
	}
	tool_terminal_exited(data);
}

static void on_emptied(void *data)
{
	struct tool_terminal *terminal = data;
	terminal->is_emptied = true;
	tool_terminals_note(terminal->toolhost);
	tool_terminal_settle(terminal);
}

static const struct terminal_listener terminal_listener = {
	.on_started = on_started,
	.on_failed = on_failed,
	.on_piece = on_piece,
	.on_output = on_output,
	.on_exited = on_exited,
	.on_emptied = on_emptied,
};

/* ---- creating ---- */

static void release_create(struct tool_call *call)
{
	struct create_call *create = CONTAINER_OF(call, struct create_call, call);
	struct tool_terminal *terminal = create->terminal;
	file_op_cancel(create->op);
	ev_timer_stop(call->toolhost->config.loop, &create->due);
	words_free(create->argv);
	words_free(create->env);
	words_free(create->roots);
	if (terminal) { // it was not created after all
		terminal->create = NULL;
		tool_terminal_destroy(terminal);
	}
}

static void start(struct create_call *create)
{
	struct tool_terminal *terminal = create->terminal;
	struct toolhost *toolhost = terminal->toolhost;
	struct error err;
	if (!toolhost->read_buffer) {
		toolhost->read_buffer = mem_alloc(TERMINAL_READ_SIZE);
	}
	struct terminal_config config = {
		.loop = toolhost->config.loop,
		.sandbox = toolhost->config.sandbox,
		.argv = (const char *const *)create->argv,
		.env = (const char *const *)create->env,
		.cwd = terminal->cwd,
		.cwd_root = create->cwd_root,
		.output_limit = create->output_limit,
		.timeout_ms = toolhost->config.limits.terminal_timeout_ms,
		.read_buffer = toolhost->read_buffer,
	};
	terminal->process = terminal_start(&config, &terminal_listener, terminal, &err);
	if (!terminal->process) {
		fail_create(create, &err);
	}
}

/* A folder that does not respond delays nobody longer than this. */
static void on_cwd_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct create_call *create = CONTAINER_OF(timer, struct create_call, due);
	struct error err;
	if (sandbox_extend_timer(create->call.toolhost->config.sandbox, timer, &create->away_ms)) {
		return;
	}
	error_set(&err, ERROR_TIMEOUT, "%s: not found within file-timeout (%d ms)",
		create->terminal->cwd, create->call.toolhost->config.limits.file_timeout_ms);
	fail_create(create, &err);
}

static void on_cwd_resolved(void *data, const char *path, const struct error *err)
{
	struct create_call *create = data;
	struct tool_terminal *terminal = create->terminal;
	create->op = NULL;
	ev_timer_stop(terminal->toolhost->config.loop, &create->due);
	if (err && err->code == ERROR_NOT_FOUND && !err->reason) {
		tool_call_fail(&create->call, "DIRECTORY_NOT_FOUND", "%s", err->text);
	} else if (err) {
		fail_create(create, err);
	} else if (!tool_is_below(path, (const char *const *)create->roots)) {
		struct error refusal;
		error_set_reason(&refusal, ERROR_DENIED, "SECURITY_VIOLATION",
			"%s: refused as a terminal's cwd, it leads out of the session's roots",
			terminal->cwd);
		fail_create(create, &refusal);
	} else {
		free(terminal->cwd);
		terminal->cwd = mem_strdup(path);
		create->cwd_root = sandbox_root_length(terminal->toolhost->config.sandbox, path);
		start(create);
	}
}

static struct tool_terminal *terminal_create(struct create_call *create, char *cwd)
{
	struct toolhost *toolhost = create->call.toolhost;
	struct tool_terminal *terminal = mem_alloc_zero(sizeof(*terminal));
	terminal->toolhost = toolhost;
	terminal->logins =
		toolhost->config.watches_logins ? mem_alloc_zero(sizeof(*terminal->logins)) : NULL;
	snprintf(terminal->id, sizeof(terminal->id), "term-%u", ++*toolhost->config.last_terminal);
	terminal->session_id = mem_strdup(create->call.session_id);
	terminal->cwd = cwd;
	terminal->create = &create->call;
	list_init(&terminal->waiting);
	list_append(&toolhost->terminals, &terminal->link);
	toolhost->terminal_count++;
	toolhost->open_terminals++;
	tool_terminals_note(toolhost);
	return terminal;
}

/* ---- the params of terminal/create ---- */

static bool refuse_strings(struct tool_call *call, const char *name)
{
	tool_call_fail(call, "INVALID_PARAMS", "\"%s\" is not a list of strings without NUL", name);
	return false;
}

/* Reads command and args; a command without args is a line for the shell. */
static bool take_argv(struct create_call *create, const struct tool_params *params)
{
	const struct json_doc *doc = params->doc;
	json_node args = json_get(doc, 0, "args");
	bool has_args = args != JSON_NODE_NONE && !json_is(doc, args, JSON_NULL);
	if (has_args && !json_is(doc, args, JSON_ARRAY)) {
		return refuse_strings(&create->call, "args");
	}
	char *command = tool_string(&create->call, params, "command");
	if (!command) {
		return false;
	}
	size_t count = json_count(doc, args);
	create->argv = mem_alloc_zero((count + 4) * sizeof(*create->argv));
	char **next = create->argv;
	if (count == 0) {
		*next++ = mem_strdup("/bin/sh");
		*next++ = mem_strdup("-c");
	}
	*next++ = command;
	for (json_node arg = json_first(doc, args); arg != JSON_NODE_NONE;
		arg = json_next(doc, arg)) {
		*next = json_string(doc, arg);
		if (!*next++) {
			return refuse_strings(&create->call, "args");
		}
	}
	return true;
}

/* NAME=value from {name, value}; NULL if it has another form. */
static char *read_variable(const struct json_doc *doc, json_node item)
{
	char *name = json_string(doc, json_get(doc, item, "name"));
	char *value = json_string(doc, json_get(doc, item, "value"));
	char *entry = NULL;
	if (name && value && *name && !strchr(name, '=') &&
		asprintf(&entry, "%s=%s", name, value) < 0) {
		entry = NULL;
	}
	free(name);
	free(value);
	return entry;
}

/* Nobody could use a pager in such a terminal. */
static const char *const pagers[] = {"PAGER=", "GIT_PAGER=cat", NULL};

static bool take_env(struct create_call *create, const struct tool_params *params)
{
	const struct json_doc *doc = params->doc;
	json_node list = json_get(doc, 0, "env");
	bool has_list = list != JSON_NODE_NONE && !json_is(doc, list, JSON_NULL);
	if (has_list && !json_is(doc, list, JSON_ARRAY)) {
		return refuse_strings(&create->call, "env");
	}
	char **added = mem_alloc_zero((json_count(doc, list) + 1) * sizeof(*added));
	char **next = added;
	bool is_good = true;
	for (json_node item = json_first(doc, list); item != JSON_NODE_NONE && is_good;
		item = json_next(doc, item)) {
		*next = read_variable(doc, item);
		is_good = *next++ != NULL;
	}
	if (is_good) {
		const struct sandbox *sandbox = create->call.toolhost->config.sandbox;
		char **base = environment_merge(sandbox_environment(sandbox), pagers);
		create->env =
			environment_merge((const char *const *)base, (const char *const *)added);
		words_free(base);
	}
	words_free(added);
	return is_good || refuse_strings(&create->call, "env");
}

static bool take_limit(struct create_call *create, const struct tool_params *params)
{
	size_t most = create->call.toolhost->config.limits.output_limit;
	unsigned long long limit = most;
	if (!tool_number(&create->call, params, "outputByteLimit", &limit)) {
		return false;
	}
	create->output_limit = limit < most ? (size_t)limit : most;
	return true;
}

/* *out_cwd is NULL for the session's own. */
static bool take_cwd(struct create_call *create, const struct tool_params *params, char **out_cwd)
{
	json_node node = json_get(params->doc, 0, "cwd");
	*out_cwd = NULL;
	if (node == JSON_NODE_NONE || json_is(params->doc, node, JSON_NULL)) {
		return true;
	}
	*out_cwd = tool_string(&create->call, params, "cwd");
	return *out_cwd != NULL;
}

static bool check_room(struct tool_call *call)
{
	const struct toolhost *toolhost = call->toolhost;
	int most = toolhost->config.limits.max_terminals;
	if (toolhost->open_terminals >= most) {
		tool_call_fail(call, "RESOURCE_LIMIT_EXCEEDED",
			"terminal/create: %d terminals are already open (max-terminals); release "
			"one first",
			most);
		return false;
	}
	if (toolhost->terminal_count >= 2LL * most) {
		tool_call_fail(call, "RESOURCE_LIMIT_EXCEEDED",
			"terminal/create: %d released terminals still have processes in the "
			"background (max-terminals)",
			toolhost->terminal_count - toolhost->open_terminals);
		return false;
	}
	return true;
}

/*
 * Below a root, a link may lead out of it, so the sandbox has to resolve the path first. Elsewhere
 * that is a round trip. Many agents always name the session's own directory, which needs none.
 */
static bool must_resolve(const char *cwd, const char *const *roots)
{
	for (; roots && *roots; roots++) {
		if (strcmp(cwd, *roots) == 0) {
			return false;
		}
	}
	return true;
}

void terminal_serve_create(struct tool_call *call, const struct tool_params *params)
{
	struct create_call *create = CONTAINER_OF(call, struct create_call, call);
	call->release = release_create;
	ev_init(&create->due, on_cwd_due);
	char *cwd;
	if (!check_room(call) || !take_argv(create, params) || !take_env(create, params) ||
		!take_limit(create, params) || !take_cwd(create, params, &cwd)) {
		return;
	}
	bool is_free = cwd != NULL && must_resolve(cwd, params->roots);
	create->terminal = terminal_create(create, cwd ? cwd : mem_strdup(params->roots[0]));
	if (!is_free) {
		start(create);
		return;
	}
	create->roots = environment_merge(params->roots, NULL);
	int timeout_ms = call->toolhost->config.limits.file_timeout_ms;
	ev_timer_set(&create->due, timeout_ms / 1000., 0.);
	create->away_ms = sandbox_away_ms(call->toolhost->config.sandbox);
	if (timeout_ms > 0) {
		ev_timer_start(call->toolhost->config.loop, &create->due);
	}
	create->op =
		sandbox_resolve_path(call->toolhost->config.sandbox, cwd, on_cwd_resolved, create);
}
