/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_LIBRARY_FIXTURE_H
#define TESTS_UNIT_LIBRARY_FIXTURE_H

/*
 * The program on a machine without one of its libraries, or with another one of that name:
 * every library_open looks for this name. The test is linked with --wrap=library_open.
 */
extern const char *library_fixture_soname;

#endif
