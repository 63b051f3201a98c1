/* SPDX-License-Identifier: MIT */
#include "providers/local/cell/probe.h"

#include "tests/support/facts.h"

#include <errno.h>
#include <string.h>

#include "base/attr.h"

static const struct probe_facts usual = {
	.allows_users = 1, .namespaces_max = 15000, .apparmor_forbids = 0, .is_filtered = 0};

static void explain(
	enum probe_step step, int errnum, const struct probe_facts *facts, struct error *err)
{
	assert_false(probe_explain(err, step, errnum, facts));
	assert_int_equal(err->code, ERROR_UNAVAILABLE);
	assert_true(error_has_reason(err, "CELL_UNAVAILABLE"));
}

static void test_each_setting_of_the_kernel_is_named_with_what_to_do(void **state)
{
	struct error err;
	struct probe_facts facts = usual;
	facts.allows_users = 0;
	explain(PROBE_NAMESPACES, EPERM, &facts, &err);
	assert_names(err.text, "sysctl -w kernel.unprivileged_userns_clone=1");
	facts = usual;
	facts.namespaces_max = 0;
	explain(PROBE_NAMESPACES, ENOSPC, &facts, &err);
	assert_names(err.text, "sysctl -w user.max_user_namespaces=15000");
	facts = usual;
	facts.apparmor_forbids = 1;
	explain(PROBE_IDENTITY, EPERM, &facts, &err);
	assert_names(err.text, "kernel.apparmor_restrict_unprivileged_userns | "
			       "apparmor_parser -r /etc/apparmor.d/acp-broker");
}

static void test_a_container_is_told_from_a_machine(void **state)
{
	struct error err;
	struct probe_facts facts = usual;
	facts.is_filtered = 1;
	explain(PROBE_NAMESPACES, EPERM, &facts, &err);
	assert_names(err.text, "--security-opt seccomp=unconfined");
	explain(PROBE_PROC, EPERM, &facts, &err);
	assert_names(err.text, "--security-opt systempaths=unconfined");
	explain(PROBE_MOUNTS, ENOSYS, &facts, &err);
	assert_names(err.text, "--security-opt seccomp=unconfined");
	facts.apparmor_forbids = 1; // the machine's own setting, which is shown in its containers
	explain(PROBE_NAMESPACES, EPERM, &facts, &err);
	assert_names(err.text, "--security-opt seccomp=unconfined");
	explain(PROBE_PROC, EPERM, &facts, &err);
	assert_names(err.text, "--security-opt systempaths=unconfined");
}

/* A confined agent can use up all of these, so they must not let the next one start unconfined. */
static void test_what_others_can_use_up_does_not_forbid_a_cell(void **state)
{
	static const int errnums[] = {ENOSPC, EAGAIN, ENOMEM, EMFILE, ENFILE, EUSERS, EIO};
	struct error err;
	for (size_t i = 0; i < ARRAY_LENGTH(errnums); i++) {
		assert_false(probe_explain(&err, PROBE_NAMESPACES, errnums[i], &usual));
		assert_int_equal(err.code, ERROR_LIMIT);
		assert_false(error_has_reason(&err, "CELL_UNAVAILABLE"));
	}
	assert_false(probe_explain(&err, PROBE_NAMESPACES, ENOSPC, &usual));
	assert_names(err.text, "user.max_user_namespaces");
}

static void test_a_kernel_without_nf_tables_is_told(void **state)
{
	static const int errnums[] = {ENOENT, EOPNOTSUPP, EPROTONOSUPPORT};
	struct error err;
	for (size_t i = 0; i < ARRAY_LENGTH(errnums); i++) {
		explain(PROBE_PORTS, errnums[i], &usual, &err);
		assert_names(
			err.text, "network = allow | nf_tables | nft_redir | network = blocked");
	}
}

static void explain_landlock(
	int version, int errnum, bool is_filtered, const char *word, const char *other)
{
	struct error err;
	struct probe_facts facts = usual;
	facts.is_filtered = is_filtered;
	assert_false(probe_explain_landlock(&err, version, errnum, &facts));
	assert_true(error_has_reason(&err, "CELL_UNAVAILABLE"));
	assert_names(err.text, "abstract sockets");
	assert_names(err.text, word);
	assert_null(strstr(err.text, other));
}

static void test_a_kernel_without_scopes_is_told_from_one_that_hides_them(void **state)
{
	explain_landlock(5, 0, false, "6.12", "seccomp");
	explain_landlock(5, 0, true, "6.12", "seccomp");
	explain_landlock(-1, EOPNOTSUPP, false, "lsm=", "6.12");
	explain_landlock(-1, ENOSYS, false, "6.12", "seccomp");
	explain_landlock(-1, ENOSYS, true, "--security-opt seccomp=unconfined", "6.12");
	explain_landlock(-1, EPERM, true, "--security-opt seccomp=unconfined", "6.12");
}

static void test_an_old_kernel_is_named(void **state)
{
	struct error err;
	explain(PROBE_MOUNTS, ENOSYS, &usual, &err);
	assert_names(err.text, "5.12");
}

static void test_what_nothing_explains_has_the_kernels_word(void **state)
{
	struct error err;
	explain(PROBE_MOUNTS, EPERM, &usual, &err);
	assert_names(err.text, "Operation not permitted");
	explain(PROBE_NAMESPACES, EPERM,
		&(struct probe_facts){.allows_users = -1,
			.namespaces_max = -1,
			.apparmor_forbids = -1,
			.is_filtered = -1},
		&err);
	assert_names(err.text, "Operation not permitted");
}

static void test_this_machine_can_be_read(void **state)
{
	struct probe_facts facts = {.is_filtered = 7};
	probe_read(&facts);
	assert_in_range(facts.is_filtered + 1, 0, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_setting_of_the_kernel_is_named_with_what_to_do),
		cmocka_unit_test(test_a_kernel_without_nf_tables_is_told),
		cmocka_unit_test(test_a_container_is_told_from_a_machine),
		cmocka_unit_test(test_what_others_can_use_up_does_not_forbid_a_cell),
		cmocka_unit_test(test_a_kernel_without_scopes_is_told_from_one_that_hides_them),
		cmocka_unit_test(test_an_old_kernel_is_named),
		cmocka_unit_test(test_what_nothing_explains_has_the_kernels_word),
		cmocka_unit_test(test_this_machine_can_be_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
