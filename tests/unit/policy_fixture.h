/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_POLICY_FIXTURE_H
#define TESTS_UNIT_POLICY_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "broker/policy/policy.h"

enum { RULES_MAX = 4, WORDS_MAX = 8 };

/* Makes a policy of lines "key = value". */
static inline struct policy *policy_of(const char *const *lines, struct error *err)
{
	struct settings settings;
	settings_init(&settings);
	for (; *lines; lines++) {
		char key[16];
		const char *equals = strstr(*lines, " = ");
		assert_non_null(equals);
		snprintf(key, sizeof(key), "%.*s", (int)(equals - *lines), *lines);
		settings_add(&settings, key, equals + 3, "test");
	}
	struct policy *policy = policy_create(&settings, err);
	settings_finish(&settings);
	return policy;
}

#define ALLOW POLICY_ALLOW_ONCE
#define REJECT POLICY_REJECT_ONCE
#define ASK POLICY_PENDING

#endif
