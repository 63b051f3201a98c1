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
#include "tests/conformance/contained.h"
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

/* Each sandbox is a container, with processes of its own. */
#define LOOKS_FROM_ANOTHER                                                                         \
	"it looks for a process of one sandbox from another one, which does not see it; "          \
	"integration-containers looks from this machine"
static const struct skipped_case in_containers[] = {
	{"closing ends what runs", LOOKS_FROM_ANOTHER},
	{"suspend: closing ends what is frozen", LOOKS_FROM_ANOTHER},
	{NULL, NULL},
};

const struct subject subjects[] = {
	{"local", "local", create_local, NULL, false, false, NULL},
	{"copy", "local", create_local, "copy", false, true, NULL},
	{"cell", "local", celled_provider_create, NULL, false, false, NULL},
	{"fake", "fake", create_fake, NULL, false, false, NULL},
	{"scripted", "ssh", create_scripted, NULL, false, false, NULL},
	{"piped", "ssh", piped_provider_create, NULL, true, false, NULL},
	{"piped-apart", "ssh", piped_provider_create_apart, NULL, true, false, NULL},
	{"ssh", "ssh", connected_libssh2_create, NULL, true, false, NULL},
	{"ssh-openssh", "ssh", connected_openssh_create, NULL, true, false, NULL},
	{"piped-runner", "ssh", piped_provider_create_runner, NULL, true, false, NULL},
	{"ssh-runner", "ssh", connected_libssh2_runner_create, NULL, true, false, NULL},
	{"ssh-openssh-runner", "ssh", connected_openssh_runner_create, NULL, true, false, NULL},
	{"exec", "exec", boxed_provider_create, NULL, true, false, NULL},
	{"slurm", "slurm", boxed_provider_create_slurm, NULL, true, false, NULL},
	{"container", "container", contained_provider_create, NULL, true, false, in_containers},
	{"container-same-path", "container", contained_provider_create_mounted, NULL, true, false,
		in_containers},
	{"daytona", "daytona", clouded_provider_create, NULL, true, false, NULL},
	{"daytona-runner", "daytona", clouded_provider_create_runner, NULL, true, false, NULL},
	{"remapped", "fake", create_remapped, NULL, false, false, NULL},
};
const size_t subject_count = ARRAY_LENGTH(subjects);
