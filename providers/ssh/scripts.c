/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "providers/ssh/host_impl.h"

static const char members_text[] =
#include "providers/ssh/remote/members.sh.inc"
	;
static const char process_text[] =
#include "providers/ssh/remote/process.sh.inc"
	;
static const char freeze_text[] =
#include "providers/ssh/remote/freeze.sh.inc"
	;
static const char watch_text[] =
#include "providers/ssh/remote/watch.sh.inc"
	;
static const char earlier_text[] =
#include "providers/ssh/remote/earlier.sh.inc"
	;
static const char control_text[] =
#include "providers/ssh/remote/control.sh.inc"
	;
static const char login_text[] =
#include "base/environment.h"
#include "providers/ssh/remote/login.sh.inc"
	;

/* Printed in two pieces, so that a login shell that traces what it runs does not print it. '@' is
 * at its beginning alone. */
static const char begin_text[] = "@acp-broker:begins-here;";
#define PRINT_BEGIN "printf \"@%s:%s;\" acp-broker begins-here"

/*
 * What bash, dash, busybox, fish, csh and tcsh read alike: no newline, no '!', no backslash, one
 * word in single quotes. sshd sets PATH.
 */
#define READ_SCRIPT "read -r acp_line; eval \"$acp_line\""
#define BEGIN PRINT_BEGIN "; " PRINT_BEGIN " >&2; " READ_SCRIPT

/* Nothing at all is written to stderr. */
#define BEGIN_APART "exec 2>/dev/null; " PRINT_BEGIN "; " READ_SCRIPT

static const char *begin_script(const struct ssh_host *host)
{
	return host->request.stderr_apart ? BEGIN_APART : BEGIN;
}

void ssh_control_command(char command[SSH_COMMAND_MAX], const struct ssh_host *host)
{
	bool is_whole = text_whole(command, SSH_COMMAND_MAX,
		"exec /usr/bin/env ACP_BROKER_RUN=%s %s -c '%s'", host->token, ssh_host_sh(host),
		begin_script(host));
	assert(is_whole);
	(void)is_whole;
}

void ssh_process_command(char command[SSH_COMMAND_MAX], const struct ssh_host *host)
{
	int len = snprintf(command, SSH_COMMAND_MAX,
		"exec /usr/bin/env -i PATH=\"$PATH\" ACP_BROKER_RUN=%s %s -c '%s'", host->token,
		ssh_host_sh(host), begin_script(host));
	assert(len < SSH_COMMAND_MAX);
}

size_t ssh_begin_skip(struct ssh_begin *begin, struct span bytes)
{
	size_t at = 0;
	for (; at < bytes.len && !begin->is_over; at++) {
		char c = bytes.data[at];
		if (c != begin_text[begin->matched]) {
			begin->matched = 0;
		}
		begin->matched += c == begin_text[begin->matched];
		begin->is_over = begin->matched == sizeof(begin_text) - 1;
	}
	return at;
}

bool ssh_quote_append(struct buf *buf, struct span text, struct error *err)
{
	if (!buf_append(buf, SPAN_LITERAL("'"), err)) {
		return false;
	}
	while (text.len > 0) {
		size_t plain = 0;
		while (plain < text.len && text.data[plain] != '\'' && text.data[plain] != '\n') {
			plain++;
		}
		struct span special = SPAN_LITERAL("");
		if (plain < text.len) {
			special = text.data[plain] == '\n' ? SPAN_LITERAL("'\"$acp_n\"'")
			                                   : SPAN_LITERAL("'\\''");
		}
		if (!buf_append(buf, (struct span){text.data, plain}, err) ||
			!buf_append(buf, special, err)) {
			return false;
		}
		size_t used = plain < text.len ? plain + 1 : plain;
		text.data += used;
		text.len -= used;
	}
	return buf_append(buf, SPAN_LITERAL("'"), err);
}

bool ssh_control_script(struct buf *buf, const struct ssh_host *host, struct error *err)
{
	const struct span library[] = {span_of(members_text), span_of(process_text),
		span_of(freeze_text), span_of(watch_text), span_of(earlier_text)};
	const struct ssh_host_request *request = &host->request;
	bool is_whole = buf_append_format(buf, err,
		"acp_n=$(printf '\\nx'); acp_n=${acp_n%%x}; acp_token=%s; acp_grace=%lld; "
		"acp_sh=%s; "
		"acp_library=",
		host->token, (request->grace_ms + 999) / 1000, ssh_host_sh(host));
	for (size_t i = 0; i < ARRAY_LENGTH(library) && is_whole; i++) {
		is_whole = ssh_quote_append(buf, library[i], err);
	}
	return is_whole && buf_append(buf, SPAN_LITERAL("; acp_login="), err) &&
	       ssh_quote_append(buf, span_of(login_text), err) &&
	       buf_append(buf, SPAN_LITERAL("; acp_earlier() { :"), err) &&
	       (!request->runs ||
		       ssh_runs_append_script(request->runs, request->place, buf, err)) &&
	       buf_append(buf, SPAN_LITERAL("; }; eval "), err) &&
	       ssh_quote_append(buf, span_of(control_text), err) &&
	       buf_append(buf, SPAN_LITERAL("\n"), err);
}

/* ---- the request ---- */

/* What some shell keeps for itself, so that an assignment fails or means something else. These
 * go through env(1). */
static bool is_shells_own(struct span name)
{
	static const char *const names[] = {"_", "SHLVL", "PPID", "UID", "EUID", "GROUPS",
		"BASHOPTS", "BASHPID", "SHELLOPTS", "RANDOM", "SRANDOM", "SECONDS", "LINENO",
		"OPTIND", "FUNCNAME", "FUNCNEST", "DIRSTACK", "EPOCHSECONDS", "EPOCHREALTIME",
		"HISTCMD", "BASH_ARGC", "BASH_ARGV", "BASH_LINENO", "BASH_SOURCE", "BASH_VERSINFO",
		"BASH_COMMAND", "BASH_SUBSHELL"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		if (span_is(name, names[i])) {
			return true;
		}
	}
	return false;
}

static struct span name_of(const char *entry)
{
	return (struct span){entry, strcspn(entry, "=")};
}

const char *ssh_environment_get(const char *const *env, const char *name)
{
	for (; *env; env++) {
		struct span own = name_of(*env);
		if (span_is(own, name) && (*env)[own.len] == '=') {
			return *env + own.len + 1;
		}
	}
	return NULL;
}

/* " NAME='value'" of all that are the shells' own, or of all others. */
static bool append_environment(
	struct buf *buf, const char *const *env, bool shells_own, struct error *err)
{
	for (; *env; env++) {
		struct span name = name_of(*env);
		if ((*env)[name.len] != '=' || !environment_name_is_valid(name.data, name.len)) {
			return error_set(err, ERROR_UNAVAILABLE,
				"\"%.*s\" is no name that a shell there can put into an "
				"environment",
				(int)name.len, name.data);
		}
		if (is_shells_own(name) != shells_own || span_is(name, "ACP_BROKER_RUN")) {
			continue;
		}
		struct span value = span_of(*env + name.len + 1);
		if (!buf_append(buf, SPAN_LITERAL(" "), err) || !buf_append(buf, name, err) ||
			!buf_append(buf, SPAN_LITERAL("="), err) ||
			!ssh_quote_append(buf, value, err)) {
			return false;
		}
	}
	return true;
}

static bool append_launch(struct buf *buf, const struct ssh_host *host, unsigned id,
	const struct exec_spec *spec, struct error *err)
{
	if (!buf_append_format(buf, err, "acp_launch() { set -- $acp_env") ||
		!append_environment(buf, spec->env, true, err)) {
		return false;
	}
	/* env(1) would take it for a variable. */
	if (strchr(spec->argv[0], '=') &&
		!buf_append_format(buf, err, " %s -c 'exec \"$0\" \"$@\"'", ssh_host_sh(host))) {
		return false;
	}
	return buf_append_format(buf, err,
		       " \"$@\"; unset PWD OLDPWD; { export ACP_BROKER_RUN=%s.%u.", host->token,
		       id) &&
	       append_environment(buf, spec->env, false, err) &&
	       buf_append_format(buf, err, "; } 2>/dev/null; exec \"$@\" 9>&-; }; ");
}

bool ssh_request_append(struct buf *buf, const struct ssh_host *host, unsigned id,
	const struct exec_spec *spec, struct error *err)
{
	const char *path = ssh_environment_get(spec->env, "PATH");
	bool is_whole = buf_append_format(buf, err,
				"acp_id=%u acp_in=%d acp_merge=%d acp_apart=%d acp_root=", id,
				spec->want_stdin, spec->merge_stderr, host->request.stderr_apart) &&
	                ssh_quote_append(buf, (struct span){spec->cwd, spec->cwd_root}, err) &&
	                buf_append(buf, SPAN_LITERAL(" acp_dir="), err) &&
	                ssh_quote_append(buf, span_of(spec->cwd), err) &&
	                buf_append(buf, SPAN_LITERAL(" acp_path="), err) &&
	                ssh_quote_append(buf, span_of(path ? path : "/bin:/usr/bin"), err) &&
	                buf_append(buf, SPAN_LITERAL("; "), err) &&
	                append_launch(buf, host, id, spec, err) &&
	                buf_append(buf, SPAN_LITERAL("acp_start"), err);
	for (const char *const *word = spec->argv; *word && is_whole; word++) {
		is_whole = buf_append(buf, SPAN_LITERAL(" "), err) &&
		           ssh_quote_append(buf, span_of(*word), err);
	}
	return is_whole && buf_append(buf, SPAN_LITERAL("\n"), err);
}
