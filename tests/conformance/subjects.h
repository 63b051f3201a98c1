/* SPDX-License-Identifier: MIT */
#ifndef TESTS_CONFORMANCE_SUBJECTS_H
#define TESTS_CONFORMANCE_SUBJECTS_H

#include <stddef.h>

#include "tests/conformance/world.h"

/* The providers against which the cases run. */
extern const struct subject subjects[];
extern const size_t subject_count;

#endif
