/* SPDX-License-Identifier: MIT */
#include "broker/cli/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/fd.h"
#include "base/libc.h"
#include "base/log.h"
#include "base/own_environment.h"
#include "base/pool.h"
#include "base/private_folder.h"
#include "base/real_path.h"
#include "base/process.h"
#include "base/secrets.h"
#include "base/text.h"
#include "base/user_config.h"
#include "base/words.h"
#include "broker/agent/login.h"
#include "broker/agent/mcp_door.h"
#include "broker/cli/agents.h"
#include "broker/cli/check.h"
#include "broker/cli/command.h"
#include "broker/cli/complete.h"
#include "broker/cli/disk.h"
#include "broker/cli/doctor.h"
#include "broker/cli/end_signals.h"
#include "broker/cli/chat_command.h"
#include "broker/cli/exec.h"
#include "broker/cli/heir.h"
#include "broker/cli/init.h"
#include "broker/cli/mcp_connect.h"
#include "broker/cli/policy_explain.h"
#include "broker/cli/policy_hosts.h"
#include "broker/cli/sandboxes.h"
#include "broker/cli/sessions.h"
#include "broker/cli/status.h"
#include "broker/cli/stderr_line.h"
#include "broker/cli/test_provider.h"
#include "broker/client/client.h"
#include "broker/config/config.h"
#include "broker/config/options.h"
#include "broker/ledger/state_folder.h"
#include "broker/policy/audit.h"
#include "broker/relay/relay.h"
#include "broker/session/trace.h"
#include "providers/heir.h"
#include "providers/parting.h"
#include "sync/rsync/shell.h"
#include "sync/snapshot.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* run() fills it from the top down and takes it apart in reverse. */
/* For mcp-exec (broker/agent/mcp_door.h). */
struct mcp_means {
	struct private_folder folder;
	char socket[108]; // in the folder; as long as a socket's path may be
	char *program;    // owned; the broker's own; may be NULL
};

struct broker {
	const struct options *options;
	const char *const *arguments; // without argv[0] and a word of ours
	const char *const *environment;
	const struct broker_providers *providers;
	bool was_signaled;       // by a signal; so the end of our stdin is not reported as a second
	                         // reason
	bool client_tells;       // started by a client of ours, which reports failures to the user
	bool is_trial;           // started by doctor: does not touch what earlier brokers left
	char *const *argv;       // whole
	int heir_count;          // of an heir (heir.h): the profiles that argv names; otherwise 0
	const char *start;       // the folder in which it was started; NULL: unknown
	const char *login_token; // an editor has started it for a login in a terminal; or NULL
	struct ev_loop *loop;
	struct spawner *spawner;
	struct pool *pool;
	char *state_folder; // owned; may be NULL
	struct provider_context context;
	struct partings partings;
	struct transport_tools tools;
	struct registry *registry;
	struct config config;
	struct trace *trace;
	struct audit *audit;
	struct secrets *secrets; // masked in the log
	struct mcp_means mcp;
	struct relay *relay;
	char *directory; // owned; the directory it was started in, if that can be a workspace; or
	                 // NULL
	struct error failure; // the session's; ERROR_NONE: none
	struct fd_inherited in;
	struct fd_inherited out;
	struct end_signals signals;
	int login_signal; // that ended a login; 0: none
};

/* Prints one line: what was attempted, on what, why it failed, what to do. */
static int complain(const struct error *err)
{
	stderr_failure(err);
	return err->code == ERROR_CONFIG ? EXIT_USAGE : EXIT_FAILED;
}

/*
 * The loop cannot continue. Nothing is cleaned up here: the guards notice our end and end what
 * runs.
 */
static void on_loop_failed(const char *text)
{
	static const char lead[] = "(libev) ";
	struct error err;
	int errnum = errno;
	size_t skip = strncmp(text, lead, strlen(lead)) == 0 ? strlen(lead) : 0;
	error_set_errno(&err, errnum, "waiting for events: %s", text + skip);
	_exit(complain(&err));
}

/* ---- a session ---- */

/*
 * An editor starts us in its project's directory, unless that is a directory such as the home
 * directory.
 */
static char *workspace_of_start(const char *home)
{
	struct error ignored;
	char *directory = getcwd(NULL, 0);
	if (directory && !snapshot_root_check(directory, home, &ignored)) {
		free(directory);
		directory = NULL;
	}
	return directory;
}

static void on_signal(struct ev_loop *loop, struct ev_signal *watcher, int events)
{
	struct broker *broker = watcher->data;
	log_info("broker: %s, ending", libc_signal_name(watcher->signum));
	if (!broker->relay) {
		partings_hurry(&broker->partings);
		return;
	}
	(broker->was_signaled ? relay_hurry : relay_end)(broker->relay);
	broker->was_signaled = true;
}

static void on_editor_gone(void *data)
{
	struct broker *broker = data;
	relay_end(broker->relay);
}

static void on_finished(void *data, const struct error *err)
{
	struct broker *broker = data;
	if (err) {
		broker->failure = *err;
	}
	ev_break(broker->loop, EVBREAK_ALL);
}

static const struct relay_listener relay_listener = {
	.on_editor_gone = on_editor_gone,
	.on_finished = on_finished,
};

/* Gives the relay duplicates, so that the inherited descriptors can be restored. */
static bool connect_editor(struct broker *broker, struct error *err)
{
	if (!fd_inherited_init(&broker->in, STDIN_FILENO, O_RDONLY, err)) {
		return error_prefix(err, "stdin");
	}
	if (!fd_inherited_init(&broker->out, STDOUT_FILENO, O_WRONLY, err)) {
		fd_inherited_finish(&broker->in);
		return error_prefix(err, "stdout");
	}
	int in = fcntl(broker->in.fd, F_DUPFD_CLOEXEC, 3);
	int out = fcntl(broker->out.fd, F_DUPFD_CLOEXEC, 3);
	if (in == -1 || out == -1) {
		error_set_errno(err, errno, "duplicating stdin and stdout for the relay");
		fd_close(&in);
		fd_close(&out);
		fd_inherited_finish(&broker->in);
		fd_inherited_finish(&broker->out);
		return false;
	}
	relay_start(broker->relay, in, out);
	return true;
}

/*
 * stdin is a terminal, so a person has typed the command and does not see what the program waits
 * for.
 */
static void greet_terminal(const struct options *options)
{
	if (isatty(STDIN_FILENO) != 1) {
		return;
	}
	fprintf(stderr,
		"acp-broker is started by an editor or another ACP client, and speaks JSON-RPC\n"
		"with it on stdin and stdout. It now waits for such a client here.\n\n"
		"  The agent's command in an editor's settings:  acp-broker%s%s\n"
		"  The effective configuration:                  acp-broker check\n"
		"  All commands:                                 acp-broker --help\n\n"
		"Ctrl-D or Ctrl-C ends it.\n",
		options->agent_argv ? " -- " : "",
		options->agent_argv ? options->agent_argv[0] : "");
}

static int serve_editor(struct broker *broker, struct provider *provider)
{
	struct error err;
	const char *home = environment_get(broker->environment, "HOME");
	struct relay_config config = {
		.loop = broker->loop,
		.provider = provider,
		.profile = &broker->config.profile,
		.others = broker->config.others,
		.other_count = broker->config.other_count,
		.registry = broker->registry,
		.directory = broker->directory,
		.pool = broker->pool,
		.trace = broker->trace,
		.audit = broker->audit,
		.secrets = broker->secrets,
		.state_folder = broker->state_folder,
		.own_files = broker->context.own_files,
		.home = home,
		.mcp_socket = broker->context.agent_socket,
		.mcp_program = broker->mcp.program,
		.client_tells = broker->client_tells,
		.is_trial = broker->is_trial,
		.tools = &broker->tools,
		.listener = &relay_listener,
		.data = broker,
	};
	broker->relay = relay_create(&config);
	greet_terminal(broker->options);
	if (!connect_editor(broker, &err)) {
		relay_destroy(broker->relay);
		return complain(&err);
	}
	end_signals_start(&broker->signals, broker->loop, on_signal, broker);
	ev_run(broker->loop, 0);
	relay_destroy(broker->relay);
	broker->relay = NULL;
	partings_wait(&broker->partings);
	end_signals_stop(&broker->signals);
	fd_inherited_finish(&broker->out);
	fd_inherited_finish(&broker->in);
	if (broker->failure.code != ERROR_NONE) {
		complain(&broker->failure);
		return EXIT_FAILED; // the command line was right, so this is not a usage error
	}
	return EXIT_SUCCESS;
}

/* The relay tells the sessions if anything of this is missing. */
static void mcp_prepare(struct broker *broker)
{
	struct error err;
	struct mcp_means *mcp = &broker->mcp;
	if (!broker->config.profile.mcp_exec || !broker->config.profile.runs_here) {
		return;
	}
	mcp->program = client_own_program();
	if (private_folder_make(&mcp->folder, "acp-mcp-", "the socket of mcp-exec",
		    broker->environment, &err)) {
		/* A cell shows no socket that a link leads to (providers/local/cell_drawing.h). */
		char *folder = real_path(mcp->folder.path);
		if (!text_whole(mcp->socket, sizeof(mcp->socket), "%s/s", folder)) {
			text_whole(mcp->socket, sizeof(mcp->socket), "%s/s", mcp->folder.path);
		}
		free(folder);
		broker->context.agent_socket = mcp->socket;
		broker->context.agent_program = mcp->program;
	} else {
		log_failure(LOG_LEVEL_WARNING, &err, "mcp-exec: %s", err.text);
	}
}

static void mcp_clean_up(struct broker *broker)
{
	private_folder_remove(&broker->mcp.folder);
	broker->context.agent_socket = NULL;
	broker->context.agent_program = NULL;
	free(broker->mcp.program);
}

static int run_session(struct broker *broker, struct provider *provider)
{
	struct heir *heir = broker->is_trial ? NULL
	                                     : heir_create(broker->spawner, broker->environment,
						       broker->arguments, broker->start);
	broker->context.heir = heir;
	broker->directory = workspace_of_start(environment_get(broker->environment, "HOME"));
	mcp_prepare(broker);
	int status = serve_editor(broker, provider);
	mcp_clean_up(broker);
	free(broker->directory);
	broker->context.heir = NULL;
	heir_destroy(heir);
	return status;
}

/* ---- the commands ---- */

/* The login has put its terminal in another mode, and must restore it. */
static void on_login_signal(struct ev_loop *loop, struct ev_signal *watcher, int events)
{
	struct broker *broker = watcher->data;
	broker->login_signal = watcher->signum;
	ev_break(loop, EVBREAK_ALL);
}

static int run_login(struct broker *broker, struct provider *provider)
{
	struct error err;
	int status;
	struct login_note *note = login_note_open(broker->state_folder, broker->login_token, &err);
	if (!note) {
		error_prefix(&err, LOGIN_MARK);
		return complain(&err);
	}
	struct login_request request = {
		.loop = broker->loop,
		.provider = provider,
		.profile = &broker->config.profile,
		.note = note,
		.terminal_type = environment_get(broker->environment, "TERM"),
	};
	end_signals_start(&broker->signals, broker->loop, on_login_signal, broker);
	bool is_done = login_run(&request, &status, &err);
	end_signals_stop(&broker->signals);
	if (!is_done) {
		status = complain(&err);
	} else if (broker->login_signal) {
		status = 128 + broker->login_signal;
	} else if (status == EXIT_SUCCESS) {
		login_note_remove(note);
	}
	login_note_close(note);
	return status;
}

static int run_check(struct broker *broker, struct provider *provider)
{
	struct error err;
	bool is_found;
	struct check_means means = {
		.loop = broker->loop,
		.provider = provider,
		.config = &broker->config,
		.environment = broker->environment,
		.is_json = (broker->options->flags & OPTION_JSON) != 0,
	};
	if (!check_run(&means, &is_found, &err)) {
		fflush(stdout);
		return complain(&err);
	}
	return is_found ? EXIT_SUCCESS : EXIT_FAILED;
}

static int run_test_provider(struct broker *broker, struct provider *provider)
{
	struct error err;
	size_t failed;
	struct test_provider_means means = {
		.loop = broker->loop,
		.pool = broker->pool,
		.provider = provider,
		.config = &broker->config,
		.environment = broker->environment,
		.tools = &broker->tools,
		.is_json = broker->options->flags & OPTION_JSON,
	};
	if (!test_provider_run(&means, &failed, &err)) {
		return complain(&err);
	}
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILED;
}

/*
 * Variables that may hold secrets: those of the broker's own environment, and those that the
 * profile adds for the agent.
 */
static char **variables(const struct broker *broker)
{
	char **all = mem_alloc_zero(sizeof(*all));
	words_append_all(&all, broker->environment);
	words_append_all(&all, (const char *const *)broker->config.profile.agent_env);
	return all;
}

static void learn_secrets(struct broker *broker)
{
	char **all = variables(broker);
	broker->secrets = secrets_create(
		(const char *const *)all, (const char *const *)broker->config.profile.masked_env);
	words_free(all);
}

static bool open_trace(struct broker *broker, struct error *err)
{
	const char *file = broker->config.trace;
	broker->trace = file ? trace_open(file, broker->secrets, err) : NULL;
	return broker->trace || !file;
}

static bool open_audit(struct broker *broker, struct error *err)
{
	const struct config *config = &broker->config;
	if (config->audit) {
		broker->audit = audit_open(config->audit, config->audit_size, broker->secrets, err);
	}
	return broker->audit || !config->audit;
}

static bool enter_workspace(const struct config *config, struct error *err)
{
	if (config->workspace && chdir(config->workspace) == -1) {
		error_set_errno(err, errno, "--workspace %s", config->workspace);
		err->code = ERROR_CONFIG;
		return false;
	}
	return true;
}

static int run_heir(struct broker *broker)
{
	struct error err;
	if (!enter_workspace(&broker->config, &err)) {
		return complain(&err);
	}
	return heir_run(broker->loop, broker->registry, &broker->config, broker->argv,
		       broker->heir_count)
	               ? EXIT_SUCCESS
	               : EXIT_FAILED;
}

static bool load_configuration(struct broker *broker, struct error *err)
{
	if (!config_load(
		    &broker->config, broker->options, broker->registry, broker->environment, err)) {
		return false;
	}
	config_set_log(&broker->config);
	broker->context.own_files = (const char *const *)broker->config.own_files;
	for (char **name = broker->config.profile.masked_env; name && *name; name++) {
		own_environment_forget(*name);
	}
	learn_secrets(broker);
	return true;
}

/* Also works without a usable configuration, because that is a finding. */
static int run_doctor(struct broker *broker)
{
	struct error err, unusable;
	bool is_well = false;
	struct doctor_means means = {
		.options = broker->options,
		.environment = broker->environment,
		.registry = broker->registry,
		.loop = broker->loop,
		.pool = broker->pool,
		.tools = &broker->tools,
		.state_folder = broker->state_folder,
		.config_error = &unusable,
	};
	bool is_usable =
		doctor_reaches_named(&means, &unusable) && load_configuration(broker, &unusable);
	means.secrets = broker->secrets;
	means.config = is_usable ? &broker->config : NULL;
	if (is_usable && !broker->options->log_level) {
		log_set_level(LOG_LEVEL_ERROR); // the findings report it
	}
	bool ok = doctor_run(&means, &is_well, &err);
	int status = !ok ? complain(&err) : is_well ? EXIT_SUCCESS : EXIT_FAILED;
	if (is_usable) {
		secrets_destroy(broker->secrets);
		config_finish(&broker->config);
	}
	return status;
}

static int run_configured(struct broker *broker)
{
	struct error err;
	if (!load_configuration(broker, &err)) {
		return complain(&err);
	}
	int status = EXIT_FAILED;
	struct provider *provider =
		registry_get(broker->registry, broker->config.profile.backend, &err);
	if (broker->options->command == COMMAND_CHECK) {
		status = run_check(broker, provider);
	} else if (provider && broker->options->command == COMMAND_TEST_PROVIDER) {
		status = run_test_provider(broker, provider);
	} else if (broker->options->command == COMMAND_HEIR) {
		status = run_heir(broker);
	} else if (!provider || !enter_workspace(&broker->config, &err) ||
		   !open_trace(broker, &err) || !open_audit(broker, &err)) {
		status = complain(&err);
	} else if (broker->login_token) {
		status = run_login(broker, provider);
	} else {
		status = run_session(broker, provider);
	}
	audit_close(broker->audit);
	trace_close(broker->trace);
	secrets_destroy(broker->secrets);
	config_finish(&broker->config);
	return status;
}

/* Commands on dead brokers' sessions and on sandboxes; each uses its own profile. */
static int run_on_sessions(const struct broker *broker)
{
	struct error err;
	struct sessions_means means = {
		.options = broker->options,
		.environment = broker->environment,
		.registry = broker->registry,
		.loop = broker->loop,
		.pool = broker->pool,
		.state_folder = broker->state_folder,
		.tools = &broker->tools,
	};
	bool ok = options_is_for_sandboxes(broker->options) ? sandboxes_act(&means, &err)
	          : options_is_for_disk(broker->options)    ? disk_act(&means, &err)
	                                                    : sessions_act(&means, &err);
	return ok ? EXIT_SUCCESS : complain(&err);
}

static int run_agents(const struct broker *broker)
{
	struct error err;
	struct agents_means means = {.options = broker->options,
		.environment = broker->environment,
		.loop = broker->loop,
		.spawner = broker->spawner};
	return agents_run(&means, &err) ? EXIT_SUCCESS : complain(&err);
}

static int run_init(const struct broker *broker)
{
	struct error err;
	struct init_means means = {.options = broker->options,
		.environment = broker->environment,
		.registry = broker->registry,
		.add_providers = broker->providers->add,
		.loop = broker->loop,
		.spawner = broker->spawner,
		.pool = broker->pool};
	return init_run(&means, &err) ? EXIT_SUCCESS : complain(&err);
}

static bool is_of_a_profile(const struct options *options)
{
	return options_has_agent(options) || options->command == COMMAND_TEST_PROVIDER ||
	       options->command == COMMAND_HEIR;
}

/* The spawner comes first: it is forked before memory is allocated and libraries are loaded. */
static int run(struct broker *broker)
{
	struct error err;
	broker->spawner = spawner_create(&err);
	if (!broker->spawner) {
		return complain(&err);
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); // a trace that reaches its size limit must not kill us
	int status = EXIT_FAILED;
	ev_set_syserr_cb(on_loop_failed);
	/*
	 * Not epoll: libev ignores a descriptor that epoll cannot register, even its own for
	 * signals and threads. poll costs half a microsecond more per loop iteration for our few
	 * descriptors.
	 */
	broker->loop = ev_loop_new(EVBACKEND_POLL | EVFLAG_NOENV);
	broker->pool = pool_create(broker->loop);
	spawner_attach(broker->spawner, broker->loop);
	broker->state_folder = state_folder_name(broker->environment);
	broker->context = (struct provider_context){
		.loop = broker->loop,
		.spawner = broker->spawner,
		.pool = broker->pool,
		.environment = broker->environment,
		.state_folder = broker->state_folder,
		.partings = &broker->partings,
	};
	partings_init(&broker->partings, broker->loop);
	broker->tools = (struct transport_tools){
		.spawner = broker->spawner, .path = environment_get(broker->environment, "PATH")};
	broker->registry = registry_create();
	broker->context.registry = broker->registry;
	if (broker->providers->add(broker->registry, &broker->context, &err)) {
		status = broker->options->command == COMMAND_DOCTOR   ? run_doctor(broker)
		         : broker->options->command == COMMAND_AGENTS ? run_agents(broker)
		         : broker->options->command == COMMAND_INIT   ? run_init(broker)
		         : is_of_a_profile(broker->options)           ? run_configured(broker)
		                                                      : run_on_sessions(broker);
	} else {
		status = complain(&err);
	}
	partings_wait(&broker->partings);
	registry_destroy(broker->registry);
	pool_destroy(broker->pool);
	if (!spawner_end(broker->spawner, &err)) {
		int failed = complain(&err);
		status = status == EXIT_SUCCESS ? failed : status;
	}
	spawner_destroy(broker->spawner);
	ev_loop_destroy(broker->loop);
	free(broker->state_folder);
	return status;
}

/* Commands on a workspace's store or on its policy: they run no agent and fork nothing for one. */
static int run_command(const struct broker *broker)
{
	static const struct {
		enum command command;
		bool (*run)(const struct options *options, const struct registry *registry,
			const char *const *environment, struct error *err);
	} policies[] = {
		{COMMAND_POLICY_EXPLAIN, policy_explain_run},
		{COMMAND_POLICY_LIST, policy_list_run},
		{COMMAND_POLICY_FORGET, policy_forget_run},
	};
	struct error err;
	struct provider_context context = {.environment = broker->environment};
	struct registry *registry = registry_create();
	bool (*run_it)(const struct options *options, const struct registry *registry,
		const char *const *environment, struct error *err) = command_run;
	for (size_t i = 0; i < ARRAY_LENGTH(policies); i++) {
		if (policies[i].command == broker->options->command) {
			run_it = policies[i].run;
		}
	}
	bool ok = broker->providers->add(registry, &context, &err) &&
	          run_it(broker->options, registry, broker->environment, &err);
	registry_destroy(registry);
	return ok ? EXIT_SUCCESS : complain(&err);
}

static int run_on_records(const struct broker *broker)
{
	struct error err;
	char *state_folder = state_folder_name(broker->environment);
	bool ok = (broker->options->command == COMMAND_STATUS ? status_run : sessions_look)(
		broker->options, state_folder, &err);
	free(state_folder);
	return ok ? EXIT_SUCCESS : complain(&err);
}

/* exec and chat: they run the broker as a process of its own, so they need no spawner. */
static int run_exec(const struct broker *broker)
{
	struct error err;
	int status = EXIT_FAILED;
	struct provider_context context = {.environment = broker->environment};
	struct registry *registry = registry_create();
	struct exec_means means = {
		.options = broker->options,
		.environment = broker->environment,
		.registry = registry,
		.loop = ev_loop_new(EVBACKEND_POLL | EVFLAG_NOENV),
	};
	signal(SIGPIPE, SIG_IGN);
	ev_set_syserr_cb(on_loop_failed);
	if (!broker->providers->add(registry, &context, &err) ||
		!(broker->options->command == COMMAND_CHAT ? chat_command_run : exec_run)(
			&means, &status, &err)) {
		status = complain(&err);
	}
	ev_loop_destroy(means.loop);
	registry_destroy(registry);
	return status;
}

/* Without stdout nobody would see the result, whatever the command did. */
static bool check_stdout(struct error *err)
{
	return fcntl(STDOUT_FILENO, F_GETFD) >= 0 ||
	       error_set(err, ERROR_SYSTEM,
		       "writing to stdout: it was closed when acp-broker started. Start it with a "
		       "stdout, or with /dev/null where nobody reads it");
}

/*
 * Makes sure that a command's output is written, or fails. --watch ends successfully if its reader
 * has gone.
 */
static int flush_stdout(const struct options *options, int status)
{
	if (status != EXIT_SUCCESS || (options->flags & OPTION_WATCH)) {
		return status;
	}
	struct error err;
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout)) {
		return status;
	}
	error_set_errno(&err, errno ? errno : EIO, "writing to stdout");
	return complain(&err);
}

static int run_any(struct broker *broker)
{
	const struct options *options = broker->options;
	if (options->command == COMMAND_EXEC || options->command == COMMAND_CHAT) {
		return run_exec(broker);
	}
	if (options_is_for_records(options)) {
		return run_on_records(broker);
	}
	bool is_straight = options_is_for_store(options) || options_is_for_policy(options);
	return is_straight ? run_command(broker) : run(broker);
}

int broker_main(int argc, char **argv, const char *const *environment,
	const struct broker_providers *providers)
{
	struct error err;
	struct options options;
	(void)setvbuf(stderr, NULL, _IOLBF, 0); // a line is one write: others may write there, too
	if (argc > 1 && strcmp(argv[1], RSYNC_SHELL_WORD) == 0) {
		return rsync_shell_main(argc, argv, environment);
	}
	if (argc > 1 && strcmp(argv[1], MCP_CONNECT_WORD) == 0) {
		return mcp_connect_main(environment);
	}
	if (argc > 1 && strcmp(argv[1], COMPLETE_WORD) == 0) {
		return complete_main(argc, argv, environment);
	}
	bool is_trial = argc > 1 && strcmp(argv[1], DOCTOR_WORD) == 0;
	bool client_tells = is_trial || (argc > 1 && strcmp(argv[1], CLIENT_WORD) == 0);
	int heirs = heir_count(argc, argv);
	int own_words = client_tells + heirs * HEIR_WORDS;
	bool is_understood = options_parse(&options, argc - own_words, argv + own_words, &err);
	enum log_format format;
	if (options.log_format && log_format_parse(options.log_format, &format)) {
		log_set_format(format); // before the first message; config_load checks the value
	}
	if (!is_understood) {
		return complain(&err);
	}
	if (options.command == COMMAND_HELP) {
		options_print_help(options.topic);
		return flush_stdout(&options, EXIT_SUCCESS);
	}
	if (options.command == COMMAND_VERSION) {
		options_print_version();
		return flush_stdout(&options, EXIT_SUCCESS);
	}
	if (!check_stdout(&err) || !fd_fill_standard(&err)) {
		return complain(&err);
	}
	if (heirs > 0) {
		options.command = COMMAND_HEIR;
	}
	char *start = getcwd(NULL, 0);
	end_signals_prepare();
	log_init(LOG_LEVEL_INFO);
	user_config_set_environment(environment);
	struct broker broker = {
		.options = &options,
		.arguments = (const char *const *)argv + own_words + 1,
		.environment = environment,
		.providers = providers,
		.client_tells = client_tells,
		.is_trial = is_trial,
		.argv = argv,
		.heir_count = heirs,
		.start = start,
		.login_token = environment_get(environment, LOGIN_MARK),
	};
	int status = flush_stdout(&options, run_any(&broker));
	free(start);
	return status;
}
