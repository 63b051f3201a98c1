/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_SUBJECT_FIXTURE_H
#define TESTS_UNIT_SUBJECT_FIXTURE_H

/* For tests of decisions on subjects. Include it after cmocka.h. */
#include "base/error.h"
#include "broker/policy/subject.h"

/* Makes a subject from params of _broker/policy/explain; the test finishes it. */
static inline struct subject subject_of(enum policy_operation operation, const char *params)
{
	struct error err;
	struct subject subject;
	if (!subject_read_params(&subject, operation, span_of(params), &err)) {
		fail_msg("%s: %s", params, err.text);
	}
	return subject;
}

#endif
