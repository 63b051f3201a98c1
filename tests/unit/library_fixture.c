/* SPDX-License-Identifier: MIT */
#include "tests/unit/library_fixture.h"

#include "base/library.h"

const char *library_fixture_soname;

/* NOLINTBEGIN(bugprone-reserved-identifier): these are the linker's names */
bool __real_library_open(struct library_use *use, struct error *err);
bool __wrap_library_open(struct library_use *use, struct error *err);

bool __wrap_library_open(struct library_use *use, struct error *err)
{
	static struct library other;
	other = *use->library;
	other.sonames[0] = library_fixture_soname;
	other.sonames[1] = NULL;
	use->library = &other;
	return __real_library_open(use, err);
}
/* NOLINTEND(bugprone-reserved-identifier) */
