/* SPDX-License-Identifier: MIT */
#include "tests/unit/daytona_api_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "tests/unit/daytona_tls_fixture.h"

/*
 * Where the key and a token are left behind: in no core dump, and nowhere in memory after the end.
 */

enum { SECRET_SIZE = 40, TURNED = 0x55 };

/* Stored in a changed form, so that this is not a copy of it. */
static unsigned char turned[SECRET_SIZE];

static void turn(char *secret)
{
	for (size_t i = 0; i < SECRET_SIZE; i++) {
		secret[i] = (char)(turned[i] ^ TURNED);
	}
	secret[SECRET_SIZE] = '\0';
}

static void make_secret(void)
{
	for (size_t i = 0; i < SECRET_SIZE; i++) {
		turned[i] = (unsigned char)(('a' + (i * 7 + (size_t)getpid()) % 26) ^ TURNED);
	}
}

/* ---- memory ---- */

static size_t count_in(const unsigned char *begin, const unsigned char *end)
{
	size_t found = 0;
	for (const unsigned char *at = begin; at + SECRET_SIZE <= end; at++) {
		size_t same = 0;
		while (same < SECRET_SIZE && (at[same] ^ TURNED) == turned[same]) {
			same++;
		}
		found += same == SECRET_SIZE;
	}
	return found;
}

/* Counts the secret in all memory that this process can write: heap, stacks, data, mappings. */
static size_t count_everywhere(void)
{
	size_t found = 0;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "re");
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		char *rest = line;
		uintptr_t ends[2] = {strtoull(line, &rest, 16), 0};
		ends[1] = strtoull(rest + 1, &rest, 16);
		if (strncmp(rest, " rw", 3) == 0) {
			const unsigned char *bytes[2];
			memcpy(bytes, ends, sizeof(bytes));
			found += count_in(bytes[0], bytes[1]);
		}
	}
	fclose(maps);
	return found;
}

static char url[64];
static char authority[128];
static const char *environment[] = {authority, NULL};

static void ask_everything(bool is_tls)
{
	char key[SECRET_SIZE + 1];
	snprintf(url, sizeof(url), "%s://127.0.0.1:%d/api", is_tls ? "https" : "http",
		is_tls ? tls_ports.right : tls_ports.plain);
	snprintf(authority, sizeof(authority), "SSL_CERT_FILE=%s", tls_authority());
	turn(key);
	config.url = url;
	config.environment = environment;
	config.key = key;
	api_again();
	explicit_bzero(key, sizeof(key));
	config.key = NULL;
	for (int i = 0; i < 3; i++) {
		outcome.count = 0;
		daytona_get(api, "p1", on_told, NULL);
		expect_done();
		outcome.count = 0;
		daytona_ask_access(api, "p1", 5, on_told_access, NULL);
		expect_done();
		assert_string_equal(outcome.access.token, "T0ken");
	}
}

static void test_nothing_of_the_key_is_left_after_the_end(void **state)
{
#ifdef __SANITIZE_ADDRESS__ // its shadow is too large to search
	skip();
#endif
	for (int is_tls = 0; is_tls < 2; is_tls++) {
		ask_everything(is_tls);
		assert_true(count_everywhere() > 0); // shows that the search works
		daytona_api_destroy(api);
		api = NULL;
		assert_int_equal(count_everywhere(), 0);
	}
}

/* ---- cores ---- */

enum core { CORE_NONE, CORE_WITHOUT, CORE_WITH };

/* Whether the only file of the folder contains the secret; removes the file. */
static enum core look_at_core(const char *folder)
{
	enum core found = CORE_NONE;
	DIR *names = opendir(folder);
	assert_non_null(names);
	for (struct dirent *entry = readdir(names); entry; entry = readdir(names)) {
		struct stat status;
		int fd = openat(dirfd(names), entry->d_name, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
			size_t size = (size_t)status.st_size;
			void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
			assert_true(bytes != MAP_FAILED);
			found = count_in(bytes, (unsigned char *)bytes + size) > 0 ? CORE_WITH
			                                                           : CORE_WITHOUT;
			munmap(bytes, size);
			unlinkat(dirfd(names), entry->d_name, 0);
		}
		fd_close(&fd);
	}
	closedir(names);
	rmdir(folder);
	return found;
}

/*
 * Lets a process with the secret in its memory die by a signal. `has_api`: the secret is an API's
 * key.
 */
static enum core core_of(bool has_api)
{
	int status = 0;
	char folder[] = "/tmp/daytona-core-XXXXXX";
	assert_non_null(mkdtemp(folder));
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		char *secret = mem_alloc(SECRET_SIZE + 1);
		turn(secret);
		config.key = secret;
		int filter = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);
		if (write(filter, "0x33", 4) != 4) { // the usual one: there is no API yet
			_exit(1);
		}
		signal(SIGABRT, SIG_DFL);
		setrlimit(RLIMIT_CORE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
		if (chdir(folder) != 0) {
			_exit(1);
		}
		if (has_api) {
			api_again();
		}
		raise(SIGABRT);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	return look_at_core(folder);
}

static void test_a_core_of_a_process_that_has_the_key_is_without_it(void **state)
{
#ifdef __SANITIZE_ADDRESS__ // its shadow would be in the core
	skip();
#endif
	if (core_of(false) != CORE_WITH) {
		print_message("no process dumps a core into its folder here\n");
		skip();
	}
	assert_int_not_equal(core_of(true), CORE_WITH);
}

/* `sessions list` and `stop` look at the broker's descriptors, from another process of the user. */
static void test_a_process_that_has_the_key_can_still_be_looked_at(void **state)
{
	char name[64];
	assert_int_equal(prctl(PR_GET_DUMPABLE), 1);
	snprintf(name, sizeof(name), "/proc/%d/fd/0", (int)getpid());
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		char target[64];
		_exit(readlink(name, target, sizeof(target)) > 0 ? 0 : 1);
	}
	int status = 1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static int setup(void **state)
{
	api_setup(state);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, api_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nothing_of_the_key_is_left_after_the_end),
		TEST(test_a_core_of_a_process_that_has_the_key_is_without_it),
		TEST(test_a_process_that_has_the_key_can_still_be_looked_at),
	};
	make_secret();
	tls_begin(argc > 1 ? argv[1] : "tests/unit/daytona_tls.py");
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	tls_end();
	return failed;
}
