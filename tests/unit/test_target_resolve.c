/* SPDX-License-Identifier: MIT */
#include "tests/unit/resolve_fixture.h"

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
	assert_int_equal(target.alive_count_max, 3); // ssh's own, because its interval was set
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
				"UserKnownHostsFile /kh\n"
				"KnownHostsCommand /bin/keys %H\nVerifyHostKeyDNS yes\n");
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
	assert_false(target.has_known_hosts_command);
	assert_false(target.verifies_by_dns);
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
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
