/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_KNOWN_HOSTS_FIXTURE_H
#define TESTS_UNIT_KNOWN_HOSTS_FIXTURE_H

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "providers/ssh/known_hosts.h"
#include "providers/ssh/known_hosts_file.h"

/* Keys made by ssh-keygen, and files of known hosts with them, in the test's own folder. */
enum { KNOWN_TEXT_MAX = 64 * 1024, KNOWN_KEYS = 4 };

extern char known_folder[];
extern char known_user_file[PATH_MAX];
extern char known_global_file[PATH_MAX];
extern struct host_key known_keys[KNOWN_KEYS]; // ed25519, another, ecdsa, rsa

int known_setup(void **state);
int known_teardown(void **state);
int known_clean(void **state); // removes the files

#define KNOWN_TEST(name) cmocka_unit_test_setup(name, known_clean)

void known_write_text(const char *path, const char *text);
char *known_read_text(const char *path);

/* The output of a shell command; the caller frees it. */
char *known_output(const char *format, ...) ATTR_PRINTF(1, 2);

/* The user's file: the lines, with $0 to $3 replaced by the keys. */
void known_write(const char *const *lines);
#define KNOWN_WRITE(...) known_write((const char *const[]){__VA_ARGS__, NULL})

/* Of these two files. */
struct ssh_target known_target(const char *host, int port);

void assert_known_verdict(const struct ssh_target *target, int key,
	enum known_hosts_verdict verdict, const char *file, size_t line);

/* The key's fingerprint as ssh-keygen -l prints it; the caller frees it. */
char *known_fingerprint(int key);

#endif
