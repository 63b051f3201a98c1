/* SPDX-License-Identifier: MIT */
#include "sync/rsync/mirror.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { DEEP = 6, NAME = 200 };

static void test_what_is_rescued_is_where_it_is_said_to_be(void **state)
{
	char folder[PATH_MAX] = "/tmp/test-mirror-XXXXXX", name[NAME + 2] = "/";
	char *folders[DEEP + 1];
	struct mirror mirror;
	struct error err;
	bool is_new;
	assert_non_null(mkdtemp(folder));
	folders[0] = strdup(folder);
	memset(name + 1, 'd', NAME);
	name[NAME + 1] = '\0';
	for (int i = 1; i <= DEEP; i++) {
		strncat(folder, name, sizeof(folder) - strlen(folder) - 1);
		assert_int_equal(mkdir(folder, 0700), 0);
		folders[i] = strdup(folder);
	}
	mirror_init(&mirror, folder, "name");
	assert_true(mirror_open(&mirror, "/bin/true", &is_new, &err));
	assert_true(mirror_empty(&mirror, "got", &err));
	char *rescued = mirror_rescue(&mirror, "got", &err);
	assert_non_null(rescued);
	assert_int_equal(rmdir(rescued), 0);
	free(rescued);
	assert_null(mirror_rescue(&mirror, "got", &err)); // it does not exist any more
	assert_int_equal(err.code, ERROR_SYSTEM);
	unlinkat(mirror.fd, "shell", 0);
	unlinkat(mirror.fd, "mirror", AT_REMOVEDIR);
	rmdir(mirror.folder);
	*strrchr(mirror.folder, '/') = '\0';
	rmdir(mirror.folder);
	mirror_finish(&mirror);
	for (int i = DEEP; i >= 0; i--) {
		assert_int_equal(rmdir(folders[i]), 0);
		free(folders[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_rescued_is_where_it_is_said_to_be),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
