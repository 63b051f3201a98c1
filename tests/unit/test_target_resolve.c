/* SPDX-License-Identifier: MIT */
#include "providers/ssh/target.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"
#include "providers/provider.h"

/* Resolved by the real ssh, from files that it reads. */
enum { DEADLINE_MS = 30000 };

static char folder[] = "/tmp/test-target-XXXXXX";
static char config[PATH_MAX];
static struct spawner *spawner;
static struct ev_loop *loop;
static struct settings settings;
static const char *environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/home/kim",
	"LOGNAME=kim", "SSH_AUTH_SOCK=/run/agent", NULL};
static struct provider_context context = {.environment = environment};

/* ---- one resolving ---- */

static struct ssh_target target;
static struct error failure;
static int raised;

static void on_done(void *data, struct ssh_target *found, const struct error *err)
{
	raised++;
	assert_ptr_equal(data, &raised);
	assert_int_equal(found == NULL, err != NULL);
	if (found) {
		target = *found;
	} else {
		failure = *err;
	}
}

static void on_deadline(struct ev_loop *ticking, ev_timer *timer, int events)
{
	ev_break(ticking, EVBREAK_ONE);
}

static void run(void)
{
	ev_timer timer;
	ev_timer_init(&timer, on_deadline, 0.05, 0.05);
	ev_timer_start(loop, &timer);
	long long end_ms = clock_now_ms() + DEADLINE_MS;
	while (raised == 0 && clock_now_ms() < end_ms) {
		ev_run(loop, EVRUN_ONCE);
	}
	ev_timer_stop(loop, &timer);
}

static bool resolve(void)
{
	raised = 0;
	ssh_target_finish(&target);
	struct ssh_resolving *resolving =
		ssh_target_resolve(&context, &settings, on_done, &raised, &failure);
	assert_int_equal(raised, 0);
	if (!resolving) {
		return false;
	}
	run();
	assert_int_equal(raised, 1);
	return target.host != NULL;
}

static void set(const char *key, const char *value)
{
	const struct setting_key *found =
		setting_key_find(ssh_target_keys, ssh_target_key_count, key);
	struct error err;
	assert_non_null(found);
	assert_true(setting_check(found, value, &err));
	settings_add(&settings, key, value, "test");
}

/* A file of ssh's, and the profile that names it. */
static void configure(const char *host, const char *text)
{
	FILE *file = fopen(config, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	set("host", host);
	set("ssh-config", config);
}

static void assert_failure(const char *part)
{
	assert_false(resolve());
	if (!strstr(failure.text, part)) {
		fail_msg("\"%s\" is not in: %s", part, failure.text);
	}
}

static int setup(void **state)
{
	struct error err;
	spawner = spawner_create(&err);
	loop = ev_loop_new(EVFLAG_AUTO);
	if (!spawner || !loop || !mkdtemp(folder)) {
		return -1;
	}
	spawner_attach(spawner, loop);
	context.loop = loop;
	context.spawner = spawner;
	snprintf(config, sizeof(config), "%s/config", folder);
	return 0;
}

static int teardown(void **state)
{
	spawner_destroy(spawner);
	ev_loop_destroy(loop);
	rmdir(folder);
	return 0;
}

static int begin(void **state)
{
	environment[0] = "PATH=/usr/local/bin:/usr/bin:/bin";
	settings_init(&settings);
	return 0;
}

static int clean(void **state)
{
	ssh_target_finish(&target);
	settings_finish(&settings);
	unlink(config);
	return 0;
}

/* ---- files of ssh ---- */

static void test_files_includes_matches_and_tokens_are_as_ssh_has_them(void **state)
{
	char included[PATH_MAX];
	char text[PATH_MAX + 1024];
	assert_in_range(snprintf(included, sizeof(included), "%s/inc", folder), 1, PATH_MAX - 1);
	FILE *file = fopen(included, "w");
	assert_non_null(file);
	fputs("Port 2200\n", file);
	assert_int_equal(fclose(file), 0);
	snprintf(text, sizeof(text),
		"Include %s\n"
		"Match host devbox user lee\n"
		"  IdentityFile /keys/%%h_%%r_%%p_%%n\n"
		"Match all\n"
		"Host dev*\n"
		"  HostName %%h.example.com\n"
		"  User lee\n"
		"  IdentityAgent /agents/%%h\n"
		"  UserKnownHostsFile /kh/%%h \"/kh/a b\"\n"
		"  IdentityFile /keys/%%k%%%%\n"
		"  ProxyCommand nc %%h %%p %%r\n"
		"  ServerAliveInterval 9\n"
		"  SetEnv A=1 \"B=x y\"\n",
		included);
	configure("lee@devbox", text);
	assert_true(resolve());
	unlink(included);
	assert_string_equal(target.alias, "lee@devbox");
	assert_string_equal(target.host, "devbox.example.com");
	assert_int_equal(target.port, 2200);
	assert_string_equal(target.user, "lee");
	assert_string_equal(target.identity_agent, "/agents/devbox.example.com");
	assert_string_equal(target.user_known_hosts_files[0], "/kh/devbox.example.com");
	assert_string_equal(target.user_known_hosts_files[1], "/kh/a b");
	assert_null(target.user_known_hosts_files[2]);
	assert_string_equal(target.identity_files[0], "/keys/devbox.example.com_lee_2200_devbox");
	assert_string_equal(target.identity_files[1], "/keys/devbox%");
	assert_string_equal(target.proxy_command, "nc devbox.example.com 2200 lee");
	assert_int_equal(target.alive_interval_ms, 9000);
	assert_int_equal(target.alive_count_max, 3); // ssh's own, as its interval was set
	assert_string_equal(target.set_env[1], "B=x y");
	assert_string_equal(target.config_file, config);
	assert_non_null(strstr(target.ssh_program, "/ssh"));
	assert_null(target.via);
}

static void test_the_local_tokens_are_those_of_ssh(void **state)
{
	char expected[PATH_MAX];
	char command[PATH_MAX + 128];
	configure("devbox", "IdentityFile /k/%d-%u-%L-%l-%i-%C\nIdentityFile ~/x\n"
			    "IdentityAgent /k/%d-%u-%L-%l-%i-%C\n");
	snprintf(command, sizeof(command), "ssh -G -T -F %s devbox | sed -n 's/^identityagent //p'",
		config);
	FILE *pipe = popen(command, "re"); // NOLINT(bugprone-command-processor): our own text
	assert_non_null(pipe);
	assert_non_null(fgets(expected, sizeof(expected), pipe));
	pclose(pipe);
	expected[strcspn(expected, "\n")] = '\0';
	assert_true(resolve());
	assert_string_equal(target.identity_files[0], expected);
	assert_string_equal(target.identity_agent, expected);
	assert_int_equal(target.identity_files[1][0], '/');
}

static void test_addresses_and_urls_are_destinations(void **state)
{
	static const struct {
		const char *written, *host, *user;
		int port;
	} cases[] = {
		{"ssh://lee@[2001:db8::1]:2200", "2001:db8::1", "lee", 2200},
		{"lee@2001:db8::1", "2001:db8::1", "lee", 22},
		{"[::1]", "::1", NULL, 22},
		{"ssh://box", "box", NULL, 22},
		{"ssh://a@b@box:1/", "box", "a@b", 1},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		configure(cases[i].written, "User deflt\n");
		assert_true(resolve());
		assert_string_equal(target.alias, cases[i].written);
		assert_string_equal(target.host, cases[i].host);
		assert_string_equal(target.user, cases[i].user ? cases[i].user : "deflt");
		assert_int_equal(target.port, cases[i].port);
	}
}

/* ---- hops ---- */

static void test_two_hops_are_reached_in_the_order_they_are_written(void **state)
{
	configure("devbox", "Host devbox\n ProxyJump lee@a:2222,ssh://b\n"
			    "Host a\n HostName a.example\n IdentityFile /keys/a\n"
			    "Host b\n HostName b.example\n Port 2300\n ProxyCommand no %h\n"
			    "Host *\n User kim\n");
	set("port", "4444");
	set("auth-timeout", "5s");
	set("identity-file", "/keys/mine");
	assert_true(resolve());
	const struct ssh_target *b = target.via;
	assert_non_null(b);
	assert_string_equal(b->host, "b.example");
	assert_int_equal(b->port, 2300);
	assert_string_equal(b->user, "kim");
	assert_string_equal(b->alias, "b");
	assert_null(b->proxy_command);
	assert_int_equal(b->auth_timeout_ms, 5000);
	const struct ssh_target *a = b->via;
	assert_non_null(a);
	assert_string_equal(a->host, "a.example");
	assert_int_equal(a->port, 2222);
	assert_string_equal(a->user, "lee");
	assert_string_equal(a->identity_files[0], "/keys/a");
	assert_null(a->via);
	assert_int_equal(target.port, 4444);
	assert_string_equal(target.identity_files[0], "/keys/mine");
}

static void test_the_first_hop_has_its_own_jump(void **state)
{
	configure("devbox", "Host devbox\n ProxyJump a,b\nHost a\n ProxyJump c\n"
			    "Host b\n ProxyJump ignored\nHost c\n ProxyCommand reach %h\n");
	assert_true(resolve());
	assert_string_equal(target.via->host, "b");
	assert_string_equal(target.via->via->host, "a");
	assert_string_equal(target.via->via->via->host, "c");
	assert_string_equal(target.via->via->via->proxy_command, "reach c");
	assert_null(target.via->via->via->via);
}

static void test_hops_in_a_circle_are_refused(void **state)
{
	configure("a", "Host a\n ProxyJump b\nHost b\n ProxyJump a\n");
	assert_failure("more than 8 jump hosts");
	assert_int_equal(failure.code, ERROR_CONFIG);
	clean(NULL);
	begin(NULL);
	configure("x", "Host *\n ProxyJump bastion\n");
	assert_failure("jumphost loop via bastion");
	assert_failure("jump host bastion");
}

/* ---- the profile ---- */

static void test_the_profile_goes_before_the_files(void **state)
{
	configure("lee@devbox", "Port 2200\nIdentityFile /keys/%r%p\nIdentityAgent /agent\n"
				"ConnectTimeout 3\nProxyCommand nc %h %p %r\n"
				"UserKnownHostsFile /kh\n");
	set("port", "2300");
	set("user", "max");
	set("identity-file", "~/one");
	set("identity-file", "/two");
	set("identity-agent", "none");
	set("known-hosts", "~/kh");
	set("host-key", "SHA256:abc");
	set("ssh-client", "openssh");
	set("connect-timeout", "4s");
	set("alive-interval", "500s");
	set("alive-count", "7");
	set("passphrase-command", "echo p");
	set("password-command", "echo w");
	set("allow-none", "yes");
	assert_true(resolve());
	assert_int_equal(target.port, 2300);
	assert_string_equal(target.user, "max");
	assert_string_equal(target.proxy_command, "nc devbox 2300 max");
	assert_string_equal(target.identity_files[0], "/home/kim/one");
	assert_string_equal(target.identity_files[1], "/two");
	assert_null(target.identity_files[2]);
	assert_null(target.identity_agent);
	assert_string_equal(target.user_known_hosts_files[0], "/home/kim/kh");
	assert_null(target.user_known_hosts_files[1]);
	assert_null(target.global_known_hosts_files[0]);
	assert_string_equal(target.host_key_pin, "SHA256:abc");
	assert_int_equal(target.client, SSH_CLIENT_OPENSSH);
	assert_int_equal(target.connect_timeout_ms, 4000);
	assert_int_equal(target.alive_interval_ms, 500000);
	assert_int_equal(target.alive_count_max, 7);
	assert_string_equal(target.passphrase_command, "echo p");
	assert_string_equal(target.password_command, "echo w");
	assert_true(target.allows_none);
}

static void test_without_ssh_the_profile_is_all_there_is(void **state)
{
	environment[0] = "PATH=/nowhere";
	set("host", "ssh://lee@devbox:2200");
	set("alive-interval", "never");
	assert_true(resolve());
	assert_null(target.ssh_program);
	assert_string_equal(target.host, "devbox");
	assert_int_equal(target.port, 2200);
	assert_string_equal(target.user, "lee");
	assert_string_equal(target.identity_files[0], "/home/kim/.ssh/id_ed25519");
	assert_string_equal(target.identity_files[2], "/home/kim/.ssh/id_rsa");
	assert_null(target.identity_files[3]);
	assert_string_equal(target.user_known_hosts_files[0], "/home/kim/.ssh/known_hosts");
	assert_string_equal(target.identity_agent, "/run/agent");
	assert_int_equal(target.connect_timeout_ms, 30000);
	assert_int_equal(target.alive_interval_ms, 0);
}

/* ---- what goes wrong ---- */

static void test_a_host_that_is_missing_or_none_is_refused_at_once(void **state)
{
	static const char *const cases[] = {"-oProxyCommand=x", "lee@-x", "-l@x", "a b", "@",
		"lee@", "ssh://", "ssh://h:0", "ssh://h:99999", "ssh://h:x", "ssh://h:", "a\nb",
		"ssh://-x"};
	assert_false(resolve());
	assert_int_equal(raised, 0);
	assert_non_null(strstr(failure.text, "host = NAME"));
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		set("host", cases[i]);
		assert_false(resolve());
		assert_int_equal(raised, 0);
		assert_int_equal(failure.code, ERROR_CONFIG);
	}
}

static void test_what_ssh_complains_of_is_told_in_its_words(void **state)
{
	configure("devbox", "BadOption yes\n");
	assert_failure("Bad configuration option: badoption");
	assert_failure("host \"devbox\"");
	assert_int_equal(failure.code, ERROR_CONFIG);
	set("ssh-config", "/nowhere/config");
	assert_failure("/nowhere/config");
	clean(NULL);
	begin(NULL);
	configure("a;b", "");
	assert_failure("invalid characters");
}

static void test_a_token_that_is_not_known_names_its_keyword(void **state)
{
	configure("devbox", "IdentityFile /keys/%z\n");
	assert_failure("IdentityFile \"/keys/%z\": the token %z");
}

/* A stand-in for an ssh that hangs, or talks without end: first on PATH. */
static void put_program(const char *script)
{
	static char path_variable[PATH_MAX + 32];
	char path[PATH_MAX];
	assert_in_range(snprintf(path, sizeof(path), "%s/ssh", folder), 1, PATH_MAX - 1);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "#!/bin/sh\n%s\n", script);
	assert_int_equal(fchmod(fileno(file), 0700), 0);
	assert_int_equal(fclose(file), 0);
	snprintf(path_variable, sizeof(path_variable), "PATH=%s:/usr/bin:/bin", folder);
	environment[0] = path_variable;
}

static void remove_program(void)
{
	char path[PATH_MAX];
	assert_in_range(snprintf(path, sizeof(path), "%s/ssh", folder), 1, PATH_MAX - 1);
	unlink(path);
}

static void test_an_answer_without_end_is_refused(void **state)
{
	put_program("exec yes hostname h");
	set("host", "devbox");
	assert_failure("more than");
	assert_int_equal(failure.code, ERROR_LIMIT);
	remove_program();
}

static void test_an_older_ssh_that_answers_less_is_fine(void **state)
{
	put_program("printf 'user lee\\nhostname h\\nport 22\\nidentityfile ~/%%n\\n'; "
		    "echo warning >&2");
	set("host", "devbox");
	assert_true(resolve());
	assert_string_equal(target.identity_files[0], "/home/kim/devbox");
	remove_program();
}

static void test_a_hanging_ssh_has_ten_seconds(void **state)
{
	put_program("echo begun; sleep 60");
	set("host", "devbox");
	assert_failure("has not ended after 10000 ms");
	assert_int_equal(failure.code, ERROR_TIMEOUT);
	remove_program();
}

static void test_a_resolving_can_be_cancelled(void **state)
{
	put_program("sleep 60");
	set("host", "devbox");
	raised = 0;
	ssh_resolving_cancel(ssh_target_resolve(&context, &settings, on_done, &raised, &failure));
	environment[0] = "PATH=/nowhere";
	ssh_resolving_cancel(ssh_target_resolve(&context, &settings, on_done, &raised, &failure));
	ssh_resolving_cancel(NULL);
	ev_run(loop, EVRUN_NOWAIT);
	assert_int_equal(raised, 0);
	remove_program();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, clean)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_files_includes_matches_and_tokens_are_as_ssh_has_them),
		TEST(test_the_local_tokens_are_those_of_ssh),
		TEST(test_addresses_and_urls_are_destinations),
		TEST(test_two_hops_are_reached_in_the_order_they_are_written),
		TEST(test_the_first_hop_has_its_own_jump),
		TEST(test_hops_in_a_circle_are_refused),
		TEST(test_the_profile_goes_before_the_files),
		TEST(test_without_ssh_the_profile_is_all_there_is),
		TEST(test_a_host_that_is_missing_or_none_is_refused_at_once),
		TEST(test_what_ssh_complains_of_is_told_in_its_words),
		TEST(test_a_token_that_is_not_known_names_its_keyword),
		TEST(test_an_answer_without_end_is_refused),
		TEST(test_an_older_ssh_that_answers_less_is_fine),
		TEST(test_a_hanging_ssh_has_ten_seconds),
		TEST(test_a_resolving_can_be_cancelled),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
