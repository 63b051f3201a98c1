/* SPDX-License-Identifier: MIT */
#include "providers/ssh/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/words.h"

static const char *const environment[] = {
	"HOME=/home/kim", "LOGNAME=kim", "SSH_AUTH_SOCK=/run/agent", "KEYS=/keys", NULL};

static struct ssh_target target;
static char *jumps;
static struct error err;

static bool read_text(const char *text)
{
	ssh_target_finish(&target);
	free(jumps);
	jumps = NULL;
	return ssh_target_read(span_of(text), environment, &target, &jumps, &err);
}

static int clean(void **state)
{
	ssh_target_finish(&target);
	free(jumps);
	jumps = NULL;
	return 0;
}

static void assert_list(char *const *list, const char *const *expected)
{
	assert_non_null(list);
	for (; *expected; expected++, list++) {
		assert_non_null(*list);
		assert_string_equal(*list, *expected);
	}
	assert_null(*list);
}

#define ASSERT_LIST(list, ...) assert_list(list, (const char *const[]){__VA_ARGS__, NULL})

static void test_a_host_alone_has_our_defaults(void **state)
{
	assert_true(read_text("hostname devbox\n"));
	assert_string_equal(target.host, "devbox");
	assert_string_equal(target.alias, "devbox");
	assert_string_equal(target.user, "kim");
	assert_int_equal(target.port, 22);
	assert_int_equal(target.connect_timeout_ms, 30000);
	assert_int_equal(target.auth_timeout_ms, 60000);
	assert_int_equal(target.alive_interval_ms, 15000);
	assert_int_equal(target.alive_count_max, 4);
	assert_int_equal(target.host_checking, SSH_HOST_CHECKING_STRICT);
	assert_int_equal(target.client, SSH_CLIENT_AUTO);
	assert_string_equal(target.identity_agent, "/run/agent");
	assert_list(target.identity_files, (const char *const[]){NULL});
	assert_list(target.user_known_hosts_files, (const char *const[]){NULL});
	assert_list(target.set_env, (const char *const[]){NULL});
	assert_null(target.proxy_command);
	assert_null(jumps);
}

static void test_what_ssh_prints_for_nothing_is_replaced(void **state)
{
	assert_true(read_text("hostname h\nconnecttimeout none\nserveraliveinterval 0\n"
			      "serveralivecountmax 3\nproxycommand none\nproxyjump none\n"
			      "identityagent none\nidentityfile none\nhostkeyalias none\n"
			      "userknownhostsfile none\n"));
	assert_int_equal(target.connect_timeout_ms, 30000);
	assert_int_equal(target.alive_interval_ms, 15000);
	assert_int_equal(target.alive_count_max, 4);
	assert_null(target.proxy_command);
	assert_null(target.identity_agent);
	assert_null(target.host_key_alias);
	assert_null(jumps);
	assert_list(target.identity_files, (const char *const[]){NULL});
	assert_list(target.user_known_hosts_files, (const char *const[]){NULL});
}

static void test_what_may_be_negotiated_and_tried_is_taken(void **state)
{
	assert_true(read_text("hostname h\n"));
	for (size_t i = 0; i < SSH_ALGORITHMS_COUNT; i++) {
		assert_null(target.algorithms[i]);
	}
	assert_false(target.avoids_password || target.avoids_questions || target.trusts_loopback);
	assert_true(read_text("hostname h\nkexalgorithms a,b\nhostkeyalgorithms c\nciphers d,e\n"
			      "macs f\npubkeyacceptedalgorithms g,h\npasswordauthentication no\n"
			      "kbdinteractiveauthentication no\n"
			      "nohostauthenticationforlocalhost yes\n"));
	assert_string_equal(target.algorithms[SSH_KEX_ALGORITHMS], "a,b");
	assert_string_equal(target.algorithms[SSH_HOST_KEY_ALGORITHMS], "c");
	assert_string_equal(target.algorithms[SSH_CIPHERS], "d,e");
	assert_string_equal(target.algorithms[SSH_MACS], "f");
	assert_string_equal(target.algorithms[SSH_PUBKEY_ALGORITHMS], "g,h");
	assert_true(target.avoids_password && target.avoids_questions && target.trusts_loopback);
	assert_true(ssh_names_have("d,e", SPAN_LITERAL("e")));
	assert_false(ssh_names_have("d,ee", SPAN_LITERAL("e")));
	assert_false(ssh_names_have(NULL, SPAN_LITERAL("e")));
	assert_true(read_text("hostname h\npubkeyacceptedkeytypes k\n"));
	assert_string_equal(target.algorithms[SSH_PUBKEY_ALGORITHMS], "k");
}

static void test_what_is_said_is_taken(void **state)
{
	assert_true(read_text("host box\nuser lee\nhostname 192.0.2.7\nport 2200\n"
			      "hostkeyalias al\nidentitiesonly yes\nhashknownhosts yes\n"
			      "stricthostkeychecking accept-new\nconnecttimeout 7\n"
			      "serveraliveinterval 20\nserveralivecountmax 2\nproxyjump a,b:22\n"
			      "setenv A=1\nsetenv B=x y\nsendenv LANG\nrekeylimit 0 0\n"));
	assert_string_equal(target.alias, "box");
	assert_string_equal(target.user, "lee");
	assert_string_equal(target.host, "192.0.2.7");
	assert_int_equal(target.port, 2200);
	assert_string_equal(target.host_key_alias, "al");
	assert_true(target.identities_only);
	assert_true(target.hash_known_hosts);
	assert_int_equal(target.host_checking, SSH_HOST_CHECKING_ACCEPT_NEW);
	assert_int_equal(target.connect_timeout_ms, 7000);
	assert_int_equal(target.alive_interval_ms, 20000);
	assert_int_equal(target.alive_count_max, 2);
	assert_string_equal(jumps, "a,b:22");
	ASSERT_LIST(target.set_env, "A=1", "B=x y");
}

static void test_every_word_of_host_checking_is_known(void **state)
{
	static const struct {
		const char *line;
		enum ssh_host_checking checking;
	} cases[] = {
		{"hostname h\nstricthostkeychecking ask", SSH_HOST_CHECKING_STRICT},
		{"hostname h\nstricthostkeychecking true", SSH_HOST_CHECKING_STRICT},
		{"hostname h\nstricthostkeychecking yes", SSH_HOST_CHECKING_STRICT},
		{"hostname h\nstricthostkeychecking accept-new", SSH_HOST_CHECKING_ACCEPT_NEW},
		{"hostname h\nstricthostkeychecking false", SSH_HOST_CHECKING_OFF},
		{"hostname h\nstricthostkeychecking no", SSH_HOST_CHECKING_OFF},
		{"hostname h\nstricthostkeychecking off", SSH_HOST_CHECKING_OFF},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		assert_true(read_text(cases[i].line));
		assert_int_equal(target.host_checking, cases[i].checking);
	}
}

static void test_names_of_identities_are_expanded(void **state)
{
	assert_true(read_text("host box\nhostname h.example\nuser lee\nport 44\nhostkeyalias al\n"
			      "controlpath /root\x1fme\x1fhere\x1fhere.example\x1f"
			      "7\x1f"
			      "abc\n"
			      "identityfile ~/.ssh/%h_%r_%p_%n\n"
			      "identityfile /x/%d%u%L%l%i%k%C%%\n"
			      "identityfile ${KEYS}/a b\n"
			      "identityfile plain~\n"
			      "identityfile ~root/k\n"));
	ASSERT_LIST(target.identity_files, "/root/.ssh/h.example_lee_44_box",
		"/x//rootmeherehere.example7alabc%", "/keys/a b", "plain~", "/root/k");
}

static void test_local_names_come_from_the_environment_where_ssh_does_not_tell(void **state)
{
	assert_true(read_text("hostname h\ncontrolpath ~/mine-%C\nidentityfile ~/%u-%d\n"));
	ASSERT_LIST(target.identity_files, "/home/kim/kim-/home/kim");
	assert_false(read_text("hostname h\nidentityfile ~/%C\n"));
}

static void test_a_proxy_command_has_its_tokens_and_no_more(void **state)
{
	assert_true(read_text("host box\nhostname h.example\nuser lee\n"
			      "proxycommand nc %h %p \"%r\" %n %% ~ ${KEYS} $X\n"));
	assert_string_equal(target.proxy_command, "nc h.example 22 \"lee\" box % ~ ${KEYS} $X");
}

static void test_an_agent_is_a_socket_a_variable_or_none(void **state)
{
	static const char *const cases[][2] = {
		{"hostname h\nidentityagent SSH_AUTH_SOCK\n", "/run/agent"},
		{"hostname h\nidentityagent $KEYS\n", "/keys"},
		{"hostname h\nidentityagent $NOT_SET\n", NULL},
		{"hostname h\nidentityagent ~/a%h\n", "/home/kim/a%h"}, // ssh has expanded it
		{"hostname h\nidentityagent /a b\n", "/a b"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		assert_true(read_text(cases[i][0]));
		if (cases[i][1]) {
			assert_string_equal(target.identity_agent, cases[i][1]);
		} else {
			assert_null(target.identity_agent);
		}
	}
}

static void test_lists_of_files_keep_names_with_spaces(void **state)
{
	assert_true(read_text("hostname h\nuserknownhostsfile /a/kh two /b ~/c%h \"/d e\" /f\n"
			      "globalknownhostsfile one two\n"));
	ASSERT_LIST(
		target.user_known_hosts_files, "/a/kh two", "/b", "/home/kim/c%h", "/d e", "/f");
	ASSERT_LIST(target.global_known_hosts_files, "one", "two");
}

static void test_revoked_keys_certificates_and_a_command_for_keys_are_read(void **state)
{
	assert_true(read_text("hostname h\nrevokedhostkeys ~/revoked\n"
			      "certificatefile ~/a-cert.pub\ncertificatefile /b-cert.pub\n"
			      "knownhostscommand /bin/keys %H\nverifyhostkeydns true\n"));
	assert_string_equal(target.revoked_host_keys, "/home/kim/revoked");
	ASSERT_LIST(target.certificate_files, "/home/kim/a-cert.pub", "/b-cert.pub");
	assert_true(target.has_known_hosts_command);
	assert_true(target.verifies_by_dns);
	assert_true(read_text("hostname h\nrevokedhostkeys none\nknownhostscommand none\n"
			      "verifyhostkeydns ask\n"));
	assert_null(target.revoked_host_keys);
	assert_false(target.has_known_hosts_command);
	assert_false(target.verifies_by_dns);
}

static void test_ways_to_log_in_are_read(void **state)
{
	assert_true(read_text("hostname h\npreferredauthentications publickey,password\n"
			      "pubkeyauthentication false\ngssapiauthentication yes\n"
			      "hostbasedauthentication yes\npkcs11provider /card.so\n"));
	assert_string_equal(target.preferred_methods, "publickey,password");
	assert_true(target.avoids_keys && target.has_kerberos && target.has_host_login &&
		    target.has_smart_card);
	assert_true(read_text("hostname h\npubkeyauthentication true\n"
			      "gssapiauthentication no\nhostbasedauthentication no\n"
			      "pkcs11provider none\n"));
	assert_null(target.preferred_methods);
	assert_false(target.avoids_keys || target.has_kerberos || target.has_host_login ||
		     target.has_smart_card);
	assert_true(read_text("hostname h\npubkeyauthentication unbound\n"));
	assert_false(target.avoids_keys);
}

static void test_where_a_ticket_of_kerberos_would_be_is_of_the_environment(void **state)
{
	static const char *const with_cache[] = {"LOGNAME=kim", "KRB5CCNAME=/run/cc", NULL};
	static const char *const with_none[] = {"LOGNAME=kim", "KRB5CCNAME=", NULL};
	assert_true(read_text("hostname h\n"));
	assert_false(target.names_tickets);
	clean(NULL);
	assert_true(
		ssh_target_read(SPAN_LITERAL("hostname h\n"), with_cache, &target, &jumps, &err));
	assert_true(target.names_tickets);
	clean(NULL);
	assert_true(
		ssh_target_read(SPAN_LITERAL("hostname h\n"), with_none, &target, &jumps, &err));
	assert_false(target.names_tickets);
}

static void test_what_libssh2_does_not_know_is_named(void **state)
{
	static const char *const settings[] = {
		"BindAddress 192.0.2.1", "BindInterface lo", "ProxyUseFdpass yes"};
	for (size_t i = 0; i < ARRAY_LENGTH(settings); i++) {
		char text[128];
		snprintf(text, sizeof(text), "hostname h\n%s\n", settings[i]);
		assert_true(read_text(text));
		assert_string_equal(target.unknown_setting, settings[i]);
	}
	assert_true(read_text("hostname h\nproxyusefdpass yes\nbindinterface lo\n"));
	assert_string_equal(target.unknown_setting, "ProxyUseFdpass yes");
	assert_true(read_text("hostname h\nbindaddress none\nproxyusefdpass no\n"));
	assert_null(target.unknown_setting);
}

static void test_what_is_forwarded_is_listed(void **state)
{
	assert_true(read_text("hostname h\nclearallforwardings no\nforwardagent no\n"));
	assert_null(target.forwards);
	assert_false(target.forwards_agent || ssh_target_has_forwards(&target));
	assert_true(read_text("hostname h\nlocalforward 8080 [localhost]:80\n"
			      "remoteforward 9000 [localhost]:22\nforwardagent /run/socket\n"));
	assert_string_equal(target.forwards[0], "LocalForward 8080 [localhost]:80");
	assert_string_equal(target.forwards[1], "RemoteForward 9000 [localhost]:22");
	assert_string_equal(target.forwards[2], "ForwardAgent /run/socket");
	assert_null(target.forwards[3]);
	assert_true(target.forwards_agent && ssh_target_has_forwards(&target));
	target.omits_forwards = true;
	assert_false(ssh_target_has_forwards(&target));
}

static void test_a_family_of_addresses_is_read(void **state)
{
	assert_true(read_text("hostname h\naddressfamily inet\n"));
	assert_int_equal(target.address_family, AF_INET);
	assert_true(read_text("hostname h\naddressfamily inet6\n"));
	assert_int_equal(target.address_family, AF_INET6);
	assert_true(read_text("hostname h\naddressfamily any\n"));
	assert_int_equal(target.address_family, AF_UNSPEC);
}

static void test_an_address_loses_its_brackets(void **state)
{
	assert_true(read_text("hostname [2001:db8::1]\n"));
	assert_string_equal(target.host, "2001:db8::1");
}

static void test_what_cannot_be_read_names_its_keyword(void **state)
{
	static const char *const cases[][2] = {
		{"", "names no host"},
		{"hostname \n", "hostname"},
		{"hostname h\nport x\n", "port \"x\""},
		{"hostname h\nport 0\n", "port"},
		{"hostname h\nport 70000\n", "port"},
		{"hostname h\nport -1\n", "port"},
		{"hostname h\ngssapiauthentication 1\n", "gssapiauthentication \"1\""},
		{"hostname h\nidentitiesonly perhaps\n", "identitiesonly \"perhaps\""},
		{"hostname h\nstricthostkeychecking maybe\n", "stricthostkeychecking"},
		{"hostname h\nconnecttimeout soon\n", "connecttimeout"},
		{"hostname h\nserveralivecountmax -1\n", "serveralivecountmax"},
		{"hostname h\nsetenv 1=2\n", "setenv"},
		{"hostname h\nidentityfile %z\n", "%z"},
		{"hostname h\nidentityfile %\n", "IdentityFile"},
		{"hostname h\nidentityfile ${NOT_SET}/x\n", "${NOT_SET}"},
		{"hostname h\nidentityfile ${KEYS\n", "IdentityFile"},
		{"hostname h\nidentityfile ~nobody-of-that-name/x\n", "~nobody-of-that-name"},
		{"hostname h\nproxycommand nc %q\n", "ProxyCommand"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		assert_false(read_text(cases[i][0]));
		assert_int_equal(err.code, ERROR_CONFIG);
		if (!strstr(err.text, cases[i][1])) {
			fail_msg("\"%s\" is not in: %s", cases[i][1], err.text);
		}
	}
}

static void test_lists_are_bounded(void **state)
{
	struct buf text;
	buf_init(&text, 1 << 20);
	assert_true(buf_append(&text, SPAN_LITERAL("hostname h\n"), &err));
	for (int i = 0; i < 101; i++) {
		assert_true(buf_append_format(&text, &err, "identityfile /k%d\n", i));
	}
	assert_false(ssh_target_read(buf_span(&text), environment, &target, &jumps, &err));
	assert_non_null(strstr(err.text, "more than 100"));
	buf_finish(&text);
}

static void test_finishing_is_fine_for_nothing_and_for_half(void **state)
{
	struct ssh_target half = {0};
	ssh_target_finish(&half);
	half.host = mem_strdup("h");
	half.via = mem_alloc_zero(sizeof(*half.via));
	half.via->user = mem_strdup("u");
	words_append(&half.set_env, "A=1");
	ssh_target_finish(&half);
	assert_null(half.via);
	assert_null(half.host);
}

#define TEST(name) cmocka_unit_test_teardown(name, clean)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_host_alone_has_our_defaults),
		TEST(test_what_ssh_prints_for_nothing_is_replaced),
		TEST(test_what_may_be_negotiated_and_tried_is_taken),
		TEST(test_what_is_said_is_taken),
		TEST(test_every_word_of_host_checking_is_known),
		TEST(test_names_of_identities_are_expanded),
		TEST(test_local_names_come_from_the_environment_where_ssh_does_not_tell),
		TEST(test_a_proxy_command_has_its_tokens_and_no_more),
		TEST(test_an_agent_is_a_socket_a_variable_or_none),
		TEST(test_lists_of_files_keep_names_with_spaces),
		TEST(test_revoked_keys_certificates_and_a_command_for_keys_are_read),
		TEST(test_ways_to_log_in_are_read),
		TEST(test_where_a_ticket_of_kerberos_would_be_is_of_the_environment),
		TEST(test_what_libssh2_does_not_know_is_named),
		TEST(test_what_is_forwarded_is_listed),
		TEST(test_a_family_of_addresses_is_read),
		TEST(test_an_address_loses_its_brackets),
		TEST(test_what_cannot_be_read_names_its_keyword),
		TEST(test_lists_are_bounded),
		TEST(test_finishing_is_fine_for_nothing_and_for_half),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
