/* SPDX-License-Identifier: MIT */
#include "providers/network.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/words.h"
#include "tests/support/facts.h"

static const struct network_abilities none = {.blocks = false};
static const struct network_abilities all = {.blocks = true,
	.allows_hosts = true,
	.allows_cidrs = true,
	.opens_ingress = true,
	.closes_ingress = true};

/* "network=allow allow-host=a.example": settings as a checked profile has them. */
static void settings_read(struct settings *settings, const char *text)
{
	char copy[1024];
	char *rest = copy;
	settings_init(settings);
	snprintf(copy, sizeof(copy), "%s", text);
	for (char *word; (word = strsep(&rest, " ")) != NULL;) {
		char *value = strchr(word, '=');
		if (value) {
			*value = '\0';
			settings_add(settings, word, value + 1, "test");
		}
	}
}

static const char *joined(char **words)
{
	static char text[1024];
	size_t used = 0;
	text[0] = '\0';
	for (char **word = words; *word; word++) {
		used += (size_t)snprintf(
			text + used, sizeof(text) - used, "%s%s", used > 0 ? " " : "", *word);
	}
	return text;
}

static void assert_lists(const char *text, const char *hosts, const char *cidrs)
{
	struct settings settings;
	settings_read(&settings, text);
	struct network_policy policy;
	struct error err;
	const char *key;
	if (!network_policy_read(&policy, &settings, &key, &err)) {
		fail_msg("%s: %s: %s", text, key, err.text);
	}
	assert_int_equal(policy.mode, NETWORK_ALLOW);
	assert_string_equal(joined(policy.hosts), hosts);
	assert_string_equal(joined(policy.cidrs), cidrs);
	network_policy_finish(&policy);
	settings_finish(&settings);
}

static void assert_mistake(const char *text, const char *key, const char *facts)
{
	struct settings settings;
	settings_read(&settings, text);
	struct network_policy policy;
	struct error err;
	const char *found = NULL;
	if (network_policy_read(&policy, &settings, &found, &err)) {
		fail_msg("%s: no mistake", text);
	}
	assert_int_equal(err.code, ERROR_CONFIG);
	assert_string_equal(found, key);
	if (!text_names(err.text, facts)) {
		fail_msg("%s: %s", text, err.text);
	}
	settings_finish(&settings);
}

/* ---- reading ---- */

static void test_nothing_said_is_an_open_network(void **state)
{
	struct settings settings;
	settings_read(&settings, "");
	struct network_policy policy;
	struct error err;
	const char *key;
	assert_true(network_policy_read(&policy, &settings, &key, &err));
	assert_int_equal(policy.mode, NETWORK_OPEN);
	assert_int_equal(policy.ingress, NETWORK_INGRESS_UNSAID);
	assert_false(policy.is_required);
	assert_null(policy.hosts[0]);
	assert_null(policy.cidrs[0]);
	network_policy_finish(&policy);
	settings_finish(&settings);
}

static void test_every_key_is_read(void **state)
{
	struct settings settings;
	settings_read(&settings, "network=blocked public-ingress=no required=yes");
	struct network_policy policy;
	struct error err;
	const char *key;
	assert_true(network_policy_read(&policy, &settings, &key, &err));
	assert_int_equal(policy.mode, NETWORK_BLOCKED);
	assert_int_equal(policy.ingress, NETWORK_INGRESS_CLOSED);
	assert_true(policy.is_required);
	network_policy_finish(&policy);
	settings_add(&settings, "public-ingress", "true", "test");
	assert_true(network_policy_read(&policy, &settings, &key, &err));
	assert_int_equal(policy.ingress, NETWORK_INGRESS_PUBLIC);
	network_policy_finish(&policy);
	settings_finish(&settings);
}

static void test_hosts_are_in_lower_case_and_each_once(void **state)
{
	assert_lists("network=allow allow-host=API.Example.com allow-host=*.b.example "
		     "allow-host=api.example.com allow-host=intranet allow-host=xn--bcher-kva.ch",
		"api.example.com *.b.example intranet xn--bcher-kva.ch", "");
}

static void test_a_host_may_have_a_port(void **state)
{
	struct network_host host;
	assert_lists("network=allow allow-host=A.example:443 allow-host=*.a.example:65535 "
		     "allow-host=a.example:443 allow-host=LocalHost:5432",
		"a.example:443 *.a.example:65535 localhost:5432", "");
	assert_true(network_host_read(&host, "*.a.example:65535"));
	assert_string_equal(host.name, "a.example");
	assert_true(host.is_below && !host.is_service);
	assert_int_equal(host.port, 65535);
	assert_true(network_host_read(&host, "localhost:5432"));
	assert_true(host.is_service && !host.is_below);
	assert_true(network_host_read(&host, "localhost.example"));
	assert_false(host.is_service);
	assert_int_equal(host.port, 0);
}

static void test_an_entry_is_for_its_names_and_ports_alone(void **state)
{
	static const struct {
		const char *entry;
		const char *name;
		uint16_t port;
		bool is_for;
	} cases[] = {
		{"a.example", "a.example", 1, true},
		{"a.example", "b.a.example", 443, false},
		{"a.example", "xa.example", 443, false},
		{"a.example:443", "a.example", 443, true},
		{"a.example:443", "a.example", 80, false},
		{"*.a.example", "b.a.example", 80, true},
		{"*.a.example", "c.b.a.example", 80, true},
		{"*.a.example", "a.example", 80, false},
		{"*.a.example", ".a.example", 80, false},
		{"*.a.example", "ba.example", 80, false},
		{"*.a.example", "a.example.evil.example", 80, false},
		{"*.a.example:443", "b.a.example", 443, true},
		{"*.a.example:443", "b.a.example", 444, false},
		{"localhost:5432", "localhost", 5432, false},
		{"*.localhost", "a.localhost", 5432, true},
		{"a_b.example", "a_b.example", 443, true},
		{"_tcp.a.example:443", "_tcp.a.example", 443, true},
		{"a_b.example", "a-b.example", 443, false},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct network_host host;
		assert_true(network_host_read(&host, cases[i].entry));
		if (network_host_has(&host, cases[i].name, cases[i].port) != cases[i].is_for) {
			fail_msg("%s: %s:%u", cases[i].entry, cases[i].name, cases[i].port);
		}
	}
}

static void test_networks_are_in_one_form_and_each_once(void **state)
{
	assert_lists("network=allow allow-cidr=10.0.0.0/8 allow-cidr=192.0.2.7/32 "
		     "allow-cidr=0.0.0.0/0 allow-cidr=2001:0DB8:0:0::/32 allow-cidr=2001:db8::/32 "
		     "allow-cidr=::/0 allow-cidr=fe80::1/128 allow-cidr=10.128.0.0/9",
		"",
		"10.0.0.0/8 192.0.2.7/32 0.0.0.0/0 2001:db8::/32 ::/0 fe80::1/128 10.128.0.0/9");
}

static void test_what_is_no_host_is_a_mistake(void **state)
{
	static const char *const values[] = {"", "*", "*.", ".", "a.", ".a", "a..b", "-a", "a-",
		"https://a.example", "a.example:", "a.example:0", "a.example:065",
		"a.example:65536", "a.example:443:1", "a.example:https", ":443", "a.example/x",
		"a.example:443/x", "a.*.example", "**.example", "10.0.0.1", "10.0.0.1:443", "::1",
		"*.10", "bücher.ch", "localhost", "LOCALHOST", "127.0.0.1:5432"};
	for (size_t i = 0; i < ARRAY_LENGTH(values); i++) {
		char text[128];
		snprintf(text, sizeof(text), "network=allow allow-host=%s", values[i]);
		assert_mistake(text, "allow-host", "name of a host");
	}
	char label[80];
	char text[400];
	memset(label, 'a', sizeof(label));
	label[63] = '\0';
	snprintf(text, sizeof(text), "network=allow allow-host=%s.%s.%s.%.61s", label, label, label,
		label);
	assert_lists(text, text + strlen("network=allow allow-host="), "");
	snprintf(text, sizeof(text), "network=allow allow-host=%s.%s.%s.%.62s", label, label, label,
		label);
	assert_mistake(text, "allow-host", "expected the name");
	snprintf(text, sizeof(text), "network=allow allow-host=a%s", label);
	assert_mistake(text, "allow-host", "expected the name");
}

static void test_what_is_no_network_is_a_mistake(void **state)
{
	static const char *const values[] = {"", "/", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33",
		"10.0.0.0/08", "10.0.0.0/-1", "10.0.0/8", "10.0.0.0/8/8", "::/129",
		"::", "010.0.0.0/8", "10.0.0.0/8x", "a.example/8", "fe80::1%eth0/64",
		"10.0.0.0/0008", "10.0.0.0/4294967304",
		"1111:2222:3333:4444:5555:6666:7777:8888:1111:2222:3333:4444/8"};
	for (size_t i = 0; i < ARRAY_LENGTH(values); i++) {
		char text[128];
		snprintf(text, sizeof(text), "network=allow allow-cidr=%s", values[i]);
		assert_mistake(text, "allow-cidr", "expected a network");
	}
	assert_mistake("network=allow allow-cidr=10.0.0.1/8", "allow-cidr",
		"expected the network 10.0.0.0/8, or /32");
	assert_mistake("network=allow allow-cidr=2001:db8::1/64", "allow-cidr",
		"expected the network 2001:db8::/64, or /128");
	assert_mistake("network=allow allow-cidr=10.64.0.0/9", "allow-cidr", "10.0.0.0/9");
}

static void test_lists_and_mode_have_to_agree(void **state)
{
	assert_mistake("network=allow", "network", "allow-host | allow-cidr");
	assert_mistake("network=blocked allow-host=a.example", "allow-host", "network = blocked");
	assert_mistake("allow-cidr=10.0.0.0/8", "allow-cidr", "with network = open");
	struct settings settings;
	struct network_policy policy;
	struct error err;
	const char *key;
	settings_read(&settings, "network=ask");
	assert_true(network_policy_read(&policy, &settings, &key, &err));
	assert_int_equal(policy.mode, NETWORK_ASK);
	network_policy_finish(&policy);
	settings_add(&settings, "allow-host", "a.example", "test");
	assert_true(network_policy_read(&policy, &settings, &key, &err));
	assert_string_equal(joined(policy.hosts), "a.example");
	network_policy_finish(&policy);
	settings_finish(&settings);
}

static void test_lists_have_an_end(void **state)
{
	struct settings settings;
	settings_read(&settings, "network=allow");
	struct network_policy policy;
	struct error err;
	const char *key;
	for (int i = 0; i <= NETWORK_ENTRIES_MAX; i++) {
		char value[32];
		snprintf(value, sizeof(value), "h%d.example", i);
		settings_add(&settings, "allow-host", value, "test");
		settings_add(&settings, "allow-host", "h0.example", "test"); // it is already there
		if (i + 1 == NETWORK_ENTRIES_MAX) {
			assert_true(network_policy_read(&policy, &settings, &key, &err));
			assert_int_equal(words_count(policy.hosts), NETWORK_ENTRIES_MAX);
			network_policy_finish(&policy);
		}
	}
	assert_false(network_policy_read(&policy, &settings, &key, &err));
	assert_string_equal(key, "allow-host");
	assert_string_equal(err.text, "expected at most 256 of them");
	settings_finish(&settings);
}

/* ---- rules that are not enforced ---- */

/* The first words of the sentences; or "!", the reason and the text of the error. */
static const char *checked(const char *text, const struct network_abilities *abilities)
{
	static char result[1024];
	struct settings settings;
	settings_read(&settings, text);
	struct error err;
	char **warnings;
	result[0] = '\0';
	if (!network_policy_check(&settings, abilities, "local", &warnings, &err)) {
		assert_int_equal(err.code, ERROR_CONFIG);
		snprintf(result, sizeof(result), "!%s %s", err.reason ? err.reason : "", err.text);
	} else {
		for (char **warning = warnings; *warning; warning++) {
			size_t used = strlen(result);
			assert_names(*warning, "not enforced | backend = local");
			snprintf(result + used, sizeof(result) - used, "%.*s;",
				(int)(strstr(*warning, " is ") - *warning), *warning);
		}
		words_free(warnings);
	}
	settings_finish(&settings);
	return result;
}

static void test_what_is_asked_for_and_not_enforced_is_said(void **state)
{
	assert_string_equal(checked("", &none), "");
	assert_string_equal(checked("network=open", &none), "");
	assert_string_equal(checked("network=blocked", &none), "network = blocked;");
	assert_string_equal(
		checked("network=allow allow-host=a allow-cidr=::/0 public-ingress=1", &none),
		"allow-host;allow-cidr;public-ingress = true;");
	assert_string_equal(checked("public-ingress=off", &none), "public-ingress = false;");
}

static void test_what_would_enforce_it_is_said(void **state)
{
	struct network_abilities with = {.remedy = "confine = yes enforces it"};
	assert_names(checked("required=true network=blocked", &with),
		"!NETWORK_NOT_ENFORCED network = blocked | confine = yes");
}

/* Even if the profile requires nothing. */
static void test_a_backend_that_cannot_ask_is_an_error(void **state)
{
	const struct network_abilities asks = {.asks = true, .allows_hosts = true};
	const struct network_abilities with = {.remedy = "confine = yes enforces it"};
	assert_string_equal(checked("network=ask", &asks), "");
	assert_string_equal(checked("network=ask allow-host=a.example", &asks), "");
	assert_names(checked("network=ask", &with), "!NETWORK_NOT_ENFORCED | confine = yes");
	assert_names(checked("network=ask", &none),
		"!NETWORK_NOT_ENFORCED | backend = local | confine = yes | required");
	assert_names(checked("network=ask required=true allow-host=a.example", &all),
		"!NETWORK_NOT_ENFORCED | network = allow | allow-host");
}

static void test_what_a_backend_does_not_take_is_an_error(void **state)
{
	char text[1024];
	struct network_abilities few = {.allows_hosts = true,
		.allows_cidrs = true,
		.entries_max = 2,
		.needs_domains = true,
		.needs_ipv4 = true};
	static const char *const refused[] = {
		"allow-host=a.example allow-host=b.example allow-host=c.example",
		"allow-host=localhost:80", "allow-host=host.x1", "allow-host=a.example:443",
		"allow-host=a.b", "allow-host=a_b.example",
		"allow-cidr=10.0.0.0/8 allow-cidr=11.0.0.0/8 allow-cidr=12.0.0.0/8",
		"allow-cidr=2001:db8::/32"};
	for (size_t i = 0; i < ARRAY_LENGTH(refused); i++) {
		snprintf(text, sizeof(text), "network=allow %s", refused[i]);
		const char *told = checked(text, &few);
		char key[32];
		snprintf(key, sizeof(key), "! %.10s with", refused[i]);
		assert_memory_equal(told, key, strlen(key));
		assert_memory_not_equal(checked(text, &none), "!", 1); // and not enforced
	}
	assert_string_equal(checked("network=allow allow-host=*.a.example allow-host=b.example "
				    "allow-host=b.example allow-cidr=10.0.0.0/8",
				    &few),
		"");
}

static void test_services_have_an_end(void **state)
{
	struct network_abilities two = {
		.allows_hosts = true, .takes_ports = true, .services_max = 2};
	assert_string_equal(checked("network=allow allow-host=localhost:1 allow-host=localhost:2 "
				    "allow-host=a.example:1",
				    &two),
		"");
	assert_names(checked("network=allow allow-host=localhost:1 allow-host=localhost:2 "
			     "allow-host=localhost:3",
			     &two),
		"! allow-host | 2 | 3");
}

static void test_what_is_enforced_is_not_said(void **state)
{
	assert_string_equal(checked("network=blocked", &all), "");
	assert_string_equal(
		checked("network=allow allow-host=a allow-cidr=::/0 public-ingress=1", &all), "");
	struct network_abilities cidrs = {.allows_cidrs = true};
	assert_string_equal(
		checked("network=allow allow-host=a allow-cidr=::/0", &cidrs), "allow-host;");
}

static void test_what_is_required_and_not_enforced_is_an_error(void **state)
{
	assert_string_equal(checked("required=true", &none), "");
	assert_string_equal(checked("required=true network=blocked", &all), "");
	assert_names(checked("required=true network=blocked", &none),
		"!NETWORK_NOT_ENFORCED network = blocked | backend = local");
	assert_names(checked("network=allow", &none), "! network | allow-host | allow-cidr");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_said_is_an_open_network),
		cmocka_unit_test(test_every_key_is_read),
		cmocka_unit_test(test_hosts_are_in_lower_case_and_each_once),
		cmocka_unit_test(test_a_host_may_have_a_port),
		cmocka_unit_test(test_an_entry_is_for_its_names_and_ports_alone),
		cmocka_unit_test(test_networks_are_in_one_form_and_each_once),
		cmocka_unit_test(test_what_is_no_host_is_a_mistake),
		cmocka_unit_test(test_what_is_no_network_is_a_mistake),
		cmocka_unit_test(test_lists_and_mode_have_to_agree),
		cmocka_unit_test(test_lists_have_an_end),
		cmocka_unit_test(test_what_is_asked_for_and_not_enforced_is_said),
		cmocka_unit_test(test_a_backend_that_cannot_ask_is_an_error),
		cmocka_unit_test(test_what_a_backend_does_not_take_is_an_error),
		cmocka_unit_test(test_services_have_an_end),
		cmocka_unit_test(test_what_would_enforce_it_is_said),
		cmocka_unit_test(test_what_is_enforced_is_not_said),
		cmocka_unit_test(test_what_is_required_and_not_enforced_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
