/* SPDX-License-Identifier: MIT */
#include "tests/conformance/subjects.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "providers/local/local.h"
#include "tests/conformance/boxed.h"
#include "tests/conformance/celled.h"
#include "tests/conformance/clouded.h"
#include "tests/conformance/connected.h"
#include "tests/conformance/piped.h"
#include "tests/conformance/scripted.h"
#include "tests/support/fake/fake.h"

static struct provider *create_local(const struct provider_context *context, const char *folder)
{
	return local_provider_create(context);
}

static struct provider *create_scripted(const struct provider_context *context, const char *folder)
{
	return scripted_provider_create(context);
}

/* As awkward as possible: late, in small pieces, with other names and a single root. */
static struct provider *create_fake(const struct provider_context *context, const char *folder)
{
	struct provider *provider = fake_provider_create(context);
	struct fake_behaviour *behaviour = fake_behaviour(provider);
	snprintf(behaviour->runtime_root, sizeof(behaviour->runtime_root), "%s/runtime", folder);
	behaviour->roots_max = 1;
	behaviour->delay_ms = 3;
	behaviour->read_chunk = 4096;
	behaviour->isolated = true;
	return provider;
}

/*
 * Like a server nearby: fast, with any number of roots, each in another place, below folders whose
 * names have blanks and letters of other alphabets.
 */
static struct provider *create_remapped(const struct provider_context *context, const char *folder)
{
	static const char *const names[] = {"sr\xc3\xbc", "\xe2\x9b\xb0 a'b", "% ~"};
	struct provider *provider = fake_provider_create(context);
	struct fake_behaviour *behaviour = fake_behaviour(provider);
	struct buf path;
	buf_init(&path, sizeof(behaviour->runtime_root));
	assert_true(buf_append(&path, span_of(folder), NULL));
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		assert_true(buf_append_format(&path, NULL, "/%s", names[i]));
		snprintf(behaviour->runtime_root, sizeof(behaviour->runtime_root), "%.*s",
			(int)path.len, buf_span(&path).data);
		assert_true(mkdir(behaviour->runtime_root, 0755) == 0 || errno == EEXIST);
	}
	buf_finish(&path);
	return provider;
}

const struct subject subjects[] = {
	{"local", "local", create_local, NULL, false, false},
	{"copy", "local", create_local, "copy", false, true},
	{"cell", "local", celled_provider_create, NULL, false, false},
	{"fake", "fake", create_fake, NULL, false, false},
	{"scripted", "ssh", create_scripted, NULL, false, false},
	{"piped", "ssh", piped_provider_create, NULL, true, false},
	{"piped-apart", "ssh", piped_provider_create_apart, NULL, true, false},
	{"ssh", "ssh", connected_libssh2_create, NULL, true, false},
	{"ssh-openssh", "ssh", connected_openssh_create, NULL, true, false},
	{"piped-runner", "ssh", piped_provider_create_runner, NULL, true, false},
	{"ssh-runner", "ssh", connected_libssh2_runner_create, NULL, true, false},
	{"ssh-openssh-runner", "ssh", connected_openssh_runner_create, NULL, true, false},
	{"exec", "exec", boxed_provider_create, NULL, true, false},
	{"slurm", "slurm", boxed_provider_create_slurm, NULL, true, false},
	{"daytona", "daytona", clouded_provider_create, NULL, true, false},
	{"daytona-runner", "daytona", clouded_provider_create_runner, NULL, true, false},
	{"remapped", "fake", create_remapped, NULL, false, false},
};
const size_t subject_count = ARRAY_LENGTH(subjects);
