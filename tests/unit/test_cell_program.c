/* SPDX-License-Identifier: MIT */
#include "providers/local/cell/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/libc.h"

static int interruptions;
static bool is_shorter; // the file, than its size was

/* In libc's place: it is also interrupted, or at the end of the file. */
ssize_t sendfile(int to, int from, off_t *offset, size_t count)
{
	static char bytes[65536];
	if (interruptions > 0) {
		interruptions--;
		errno = EINTR;
		return -1;
	}
	errno = 0;
	ssize_t taken =
		is_shorter ? 0 : read(from, bytes, count < sizeof(bytes) ? count : sizeof(bytes));
	return taken > 0 ? write(to, bytes, (size_t)taken) : taken;
}

static int set_up(void **state)
{
	interruptions = 0;
	is_shorter = false;
	return 0;
}

static void test_an_interrupted_copy_goes_on(void **state)
{
	struct cell_program program;
	struct error err;
	struct stat own, copy;
	interruptions = 2;
	assert_true(cell_program_open(&program, &err));
	assert_true(cell_program_fill(&program, &err));
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(file, &own), 0);
	close(file);
	assert_int_equal(fstat(program.fd, &copy), 0);
	assert_int_equal(own.st_size, copy.st_size);
	cell_program_finish(&program);
}

static void test_a_copy_that_is_cut_fails(void **state)
{
	struct cell_program program;
	struct error err;
	is_shorter = true;
	assert_true(cell_program_open(&program, &err));
	assert_false(cell_program_fill(&program, &err));
	assert_non_null(strstr(err.text, libc_error_text(EIO)));
	cell_program_finish(&program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_an_interrupted_copy_goes_on, set_up),
		cmocka_unit_test_setup(test_a_copy_that_is_cut_fails, set_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
