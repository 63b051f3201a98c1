/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "providers/ssh/host_impl.h"

static const char process_text[] =
#include "providers/ssh/remote/process.sh.inc"
	;
static const char freeze_text[] =
#include "providers/ssh/remote/freeze.sh.inc"
	;
static const char watch_text[] =
#include "providers/ssh/remote/watch.sh.inc"
	;
static const char control_text[] =
#include "providers/remote/variables.sh.inc"
#include "providers/ssh/remote/control.sh.inc"
	;
const char ssh_login_script[] =
#include "base/environment.h"
#include "providers/ssh/remote/login.sh.inc"
	;

static const char *begin_script(const struct ssh_host *host)
{
	return host->request.stderr_apart ? SCRIPT_BEGIN_APART : SCRIPT_BEGIN;
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

const char *ssh_host_more_variables(const struct ssh_host *host)
{
	const struct ssh_target *target = host->request.target;
	return target->forwards_agent && ssh_target_has_forwards(target) ? "SSH_AUTH_SOCK" : "";
}

bool ssh_control_script(struct buf *buf, const struct ssh_host *host, struct error *err)
{
	const struct span library[] = {span_of(ssh_members_script), span_of(process_text),
		span_of(freeze_text), span_of(watch_text), span_of(ssh_earlier_script)};
	const struct ssh_host_request *request = &host->request;
	bool is_whole = buf_append_format(buf, err,
		"%sacp_token=%s; acp_more=%s; acp_grace=%lld; "
		"acp_sh=%s; "
		"acp_library=",
		SCRIPT_SET_NEWLINE, host->token, ssh_host_more_variables(host),
		(request->grace_ms + 999) / 1000, ssh_host_sh(host));
	for (size_t i = 0; i < ARRAY_LENGTH(library) && is_whole; i++) {
		is_whole = script_quote_append(buf, library[i], err);
	}
	return is_whole && buf_append(buf, SPAN_LITERAL("; acp_earlier() { :"), err) &&
	       (!request->runs ||
		       ssh_runs_append_script(request->runs, request->place, buf, err)) &&
	       buf_append(buf, SPAN_LITERAL("; }; eval "), err) &&
	       script_quote_append(buf, span_of(control_text), err) &&
	       buf_append(buf, SPAN_LITERAL("\n"), err);
}

/* ---- the request ---- */

/*
 * Names that some shell reserves, so that an assignment fails or has another meaning. These
 * variables are set by env(1).
 */
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

/* " NAME='value'" for the reserved names, or for all others. */
static bool append_environment(
	struct buf *buf, const char *const *env, bool shells_own, struct error *err)
{
	for (; *env; env++) {
		struct span name = name_of(*env);
		if ((*env)[name.len] != '=' || !environment_name_is_valid(name.data, name.len)) {
			return error_set(err, ERROR_UNAVAILABLE,
				"\"%.*s\" is not a variable name that a shell on the host accepts",
				(int)name.len, name.data);
		}
		if (is_shells_own(name) != shells_own || span_is(name, "ACP_BROKER_RUN")) {
			continue;
		}
		struct span value = span_of(*env + name.len + 1);
		if (!buf_append(buf, SPAN_LITERAL(" "), err) || !buf_append(buf, name, err) ||
			!buf_append(buf, SPAN_LITERAL("="), err) ||
			!script_quote_append(buf, value, err)) {
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
	/* env(1) would read it as a variable. */
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
	                script_quote_append(buf, (struct span){spec->cwd, spec->cwd_root}, err) &&
	                buf_append(buf, SPAN_LITERAL(" acp_dir="), err) &&
	                script_quote_append(buf, span_of(spec->cwd), err) &&
	                buf_append(buf, SPAN_LITERAL(" acp_path="), err) &&
	                script_quote_append(buf, span_of(path ? path : "/bin:/usr/bin"), err) &&
	                buf_append(buf, SPAN_LITERAL("; "), err) &&
	                append_launch(buf, host, id, spec, err) &&
	                buf_append(buf, SPAN_LITERAL("acp_start"), err);
	for (const char *const *word = spec->argv; *word && is_whole; word++) {
		is_whole = buf_append(buf, SPAN_LITERAL(" "), err) &&
		           script_quote_append(buf, span_of(*word), err);
	}
	return is_whole && buf_append(buf, SPAN_LITERAL("\n"), err);
}
