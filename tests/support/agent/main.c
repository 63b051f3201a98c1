/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/agent/agent.h"
#include "tests/support/agent/turn.h"

static const struct {
	const char *name;
	bool takes_value;
	size_t at; // of a const char * or a bool in struct agent_options
	const char *help;
} options[] = {
#define FLAG(name, member, help)                                                                   \
	{                                                                                          \
		name, false, offsetof(struct agent_options, member), help                          \
	}
#define VALUE(name, member, help)                                                                  \
	{                                                                                          \
		name, true, offsetof(struct agent_options, member), help                           \
	}
	VALUE("--journal", journal,
		"FILE: write every line there, received (<) and sent (>); %p: its id"),
	VALUE("--pids", pids, "FILE: write the id of every process there"),
	VALUE("--load-replay", load_replay, "COUNT: updates before session/load is answered"),
	VALUE("--load-size", load_size, "BYTES: of each of them"),
	VALUE("--list-page", list_page, "COUNT: sessions on one page of session/list"),
	VALUE("--protocol-version", protocol_version, "N: answer initialize with N"),
	VALUE("--exit-at-once", exit_at_once, "STATUS: leave without a word on stdout"),
	VALUE("--slow-exit", slow_exit, "SECONDS: between the end of input and leaving"),
	VALUE("--meta", meta, "JSON: _meta of the initialize result"),
	VALUE("--sessions", sessions,
		"FILE: remember sessions there; one that is not there cannot be loaded"),
	VALUE("--modes", modes, "JSON: members of session/new's result, in place of its modes"),
	FLAG("--refuse-modes", refuse_modes, "refuse session/set_mode and set_config_option"),
	FLAG("--silent-modes", silent_modes, "answer neither of the two"),
	FLAG("--never-answer", never_answer, "read everything, answer nothing"),
	FLAG("--garbage-first", garbage_first, "print a banner on stdout before anything"),
	FLAG("--ignore-eof", ignore_eof, "stay after the end of input"),
	FLAG("--ignore-term", ignore_term, "stay after TERM, HUP and INT"),
	FLAG("--terminal-auth", terminal_auth, "offer authentication in a terminal"),
	VALUE("--auth-methods", auth_methods, "JSON: further items of authMethods"),
	FLAG("--need-auth", need_auth, "refuse session/new before authenticate"),
	FLAG("--no-load", no_load, "do not offer session/load"),
	FLAG("--error-data", error_data, "an unknown session's error has data"),
	FLAG("--late-replay", late_replay, "go on with the replay after session/load was answered"),
	FLAG("--no-resume", no_resume, "do not offer session/resume"),
	FLAG("--only-stdio", only_stdio, "take MCP servers of no type but stdio"),
	FLAG("--null-results", null_results, "answer null where nothing is required"),
	FLAG("--own-names", own_names, "sessions' names have the process id, as real ones differ"),
	FLAG("--login", login, "be a person's login instead of an agent"),
	FLAG("--help", help, "print this"),
#undef FLAG
#undef VALUE
};

/* Returns how many words it has used, 0 for an unknown option. */
static int take_option(struct agent_options *out, char **words)
{
	for (size_t i = 0; i < ARRAY_LENGTH(options); i++) {
		if (strcmp(options[i].name, words[0]) != 0) {
			continue;
		}
		char *member = (char *)out + options[i].at;
		if (!options[i].takes_value) {
			*(bool *)(void *)member = true;
			return 1;
		}
		if (words[1] != NULL) {
			*(const char **)(void *)member = words[1];
			return 2;
		}
	}
	return 0;
}

static void print_help(void)
{
	printf("usage: scripted-agent [OPTION...]\n\nOptions:\n");
	for (size_t i = 0; i < ARRAY_LENGTH(options); i++) {
		printf("  %-20s %s\n", options[i].name, options[i].help);
	}
	printf("\nCommands of a prompt, one a line:\n");
	turn_print_commands();
}

/* What terminal authentication runs: asks the user, succeeds on "open sesame". */
static int log_in(void)
{
	char word[64];
	const char *marker = getenv("SCRIPTED_LOGIN");
	printf("terminal: %s, SCRIPTED_LOGIN=%s\n", isatty(STDIN_FILENO) ? "yes" : "no",
		marker != NULL ? marker : "(unset)");
	printf("password: ");
	fflush(stdout);
	if (fgets(word, sizeof(word), stdin) == NULL) {
		return 3;
	}
	bool right = strncmp(word, "open sesame", strlen("open sesame")) == 0;
	printf("%s\n", right ? "welcome" : "wrong");
	return right ? 0 : 4;
}

static int run(const struct agent_options *chosen, int argc, char **argv)
{
	struct agent agent;
	agent_init(&agent, chosen);
	agent.argc = argc;
	agent.argv = argv;
	memory_read(&agent);
	if (chosen->garbage_first) {
		agent_send_raw(
			&agent, SPAN_LITERAL("Welcome to the scripted agent!\n{not json}\n\n"));
	}
	int status = agent_run(&agent);
	agent_finish(&agent);
	return status;
}

int main(int argc, char **argv)
{
	struct agent_options chosen = {0};
	for (int at = 1; at < argc;) {
		int taken = take_option(&chosen, argv + at);
		if (taken == 0) {
			fprintf(stderr, "scripted-agent: unknown option %s\n", argv[at]);
			return 2;
		}
		at += taken;
	}
	if (chosen.help) {
		print_help();
		return 0;
	}
	if (chosen.login) {
		return log_in();
	}
	if (chosen.exit_at_once != NULL) {
		fprintf(stderr, "scripted-agent: leaving at once\n");
		return (int)strtol(chosen.exit_at_once, NULL, 10);
	}
	if (chosen.ignore_term) {
		signal(SIGTERM, SIG_IGN);
		signal(SIGHUP, SIG_IGN);
		signal(SIGINT, SIG_IGN);
	}
	signal(SIGPIPE, SIG_IGN);
	agent_stop_on_signal();
	return run(&chosen, argc, argv);
}
