/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_CONFORMANCE_CASES_H
#define PROVIDERS_CONFORMANCE_CASES_H

#include "providers/conformance/conformance.h"

/* The cases, for the table in conformance.c, which says what each one shows. */
typedef bool conformance_function(struct conformance_place *place, struct error *err);

/* ---- cases_exec.c ---- */
conformance_function case_exit_status, case_streams, case_half_close, case_bytes, case_arguments;
conformance_function case_environment, case_directory, case_not_started, case_kill, case_parallel;

/* ---- cases_files.c ---- */
conformance_function case_files, case_modes, case_parents, case_stat, case_reading, case_special;
conformance_function case_names;

/* ---- cases_paths.c ---- */
conformance_function case_confinement, case_relative, case_links, case_inner_links, case_dots;
conformance_function case_missing, case_overlong;

#endif
