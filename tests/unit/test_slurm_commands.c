/* SPDX-License-Identifier: MIT */
#include "providers/slurm/commands.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/words.h"
#include "tests/support/facts.h"

enum { LINE_MAX_BYTES = 1024 };

static const char *const environment[] = {"PATH=/bin", "SLURM_CONF=/c", "SLURM_JOB_ID=7",
	"SLURM_NTASKS=8", "SLURMD_NODENAME=n", "SQUEUE_STATES=x", "SBATCH_ACCOUNT=a", NULL};

/*
 * Reads a profile with these keys and values, "KEY", "VALUE", …, NULL; returns the error, or NULL.
 */
static const struct error *read_keys(struct exec_profile *profile, const char *const *keys)
{
	static struct error err;
	struct settings settings;
	const struct provider_context context = {.environment = environment};
	settings_init(&settings);
	for (size_t i = 0; keys[i]; i += 2) {
		settings_add(&settings, keys[i], keys[i + 1], "test");
	}
	bool ok = exec_profile_read(profile, &slurm_platform, "hpc", &settings, &context, &err);
	settings_finish(&settings);
	return ok ? NULL : &err;
}

/* The words of the command in one line. */
static const char *line_of(const struct exec_profile *profile, enum exec_verb verb)
{
	static char line[LINE_MAX_BYTES];
	static const struct exec_values values = {.instance = "12", .proposed = "hpc-1"};
	char **argv = exec_profile_argv(profile, verb, &values, NULL);
	size_t used = 0;
	for (size_t i = 0; argv[i]; i++) {
		used += (size_t)snprintf(
			line + used, sizeof(line) - used, "%s[%s]", i > 0 ? " " : "", argv[i]);
		assert_true(used < sizeof(line));
	}
	words_free(argv);
	return line;
}

static void test_the_commands_name_the_job_or_its_number(void **state)
{
	static const struct {
		enum exec_verb verb;
		const char *line;
	} cases[] = {
		{EXEC_START,
			"[sbatch] [--parsable] [--job-name=hpc-1] [--comment=acp-broker profile "
			"hpc] [--output=/dev/null] [--error=/dev/null] [--input=/dev/null] "
			"[--chdir=/] [--export=NONE] [--no-requeue] [--wrap=exec sleep infinity]"},
		{EXEC_EXEC,
			"[srun] [--jobid=12] [--overlap] [--export=NONE] [--unbuffered] [--quiet] "
			"[--nodes=1] [--ntasks=1] [--relative=0] [--chdir=/]"},
		{EXEC_STOP, "[scancel] [--me] [--name=hpc-1]"},
		{EXEC_DESTROY, "[scancel] [--me] [--name=hpc-1]"},
		{EXEC_LIST, "[squeue] [--me] [--noheader] [--states=all] [--format=%i]"},
		{EXEC_STATE,
			"[squeue] [--me] [--noheader] [--states=all] [--name=hpc-1] [--sort=-i] "
			"[--format=%i %T %r]"},
	};
	static const char *const keys[] = {NULL};
	struct exec_profile profile;
	assert_null(read_keys(&profile, keys));
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		assert_string_equal(line_of(&profile, cases[i].verb), cases[i].line);
	}
	assert_true(exec_profile_uses_name(&profile, EXEC_START));
	assert_int_equal(profile.wait_ms, EXEC_HOUR);
	exec_profile_finish(&profile);
}

static void test_the_keys_come_before_our_own_options(void **state)
{
	static const char *const keys[] = {"partition", "gpu", "account", "lab", "time", "1-12:00",
		"gres", "gpu:a100:2", "sbatch", "--mem=8G", "sbatch", "--comment=a%i",
		"queue-timeout", "5s", NULL};
	struct exec_profile profile;
	assert_null(read_keys(&profile, keys));
	const char *line = line_of(&profile, EXEC_START);
	static const char begin[] =
		"[sbatch] [--partition=gpu] [--account=lab] [--time=1-12:00] [--gres=gpu:a100:2] "
		"[--mem=8G] [--comment=a%i] [--parsable] ";
	assert_int_equal(strncmp(line, begin, sizeof(begin) - 1), 0);
	assert_int_equal(profile.wait_ms, 5 * EXEC_SECOND);
	assert_string_equal(profile.wait_key, "queue-timeout");
	exec_profile_finish(&profile);
}

static void test_no_value_is_another_option_or_a_script(void **state)
{
	static const char *const hostile[] = {"", "--wrap=x", "-x", "a b", "a\nb", "\xc3\xa4"};
	static const char *const options[] = {"", "-p", "--", "x.sh", "--mem 8G", "a=b"};
	static const char *const names[] = {"partition", "account", "time", "gres"};
	struct exec_profile profile;
	for (size_t i = 0; i < ARRAY_LENGTH(names) * ARRAY_LENGTH(hostile); i++) {
		const char *key = names[i / ARRAY_LENGTH(hostile)];
		const char *const keys[] = {key, hostile[i % ARRAY_LENGTH(hostile)], NULL};
		const struct error *err = read_keys(&profile, keys);
		assert_non_null(err);
		assert_int_equal(err->code, ERROR_CONFIG);
		assert_names(err->text, key);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(options); i++) {
		const char *const keys[] = {"sbatch", options[i], NULL};
		const struct error *err = read_keys(&profile, keys);
		assert_non_null(err);
		assert_names(err->text, "sbatch | --mem=8G");
	}
}

static void test_no_option_makes_other_jobs_than_one_here(void **state)
{
	static const char *const refused[] = {"--array=1-8", "--clusters=x", "--clus=x", "--wait",
		"--test-only", "--get-user-env", "--export-file=/x"};
	static const char *const fine[] = {
		"--wait-all-nodes=1", "--mem=8G", "--cluster-constraint=x"};
	struct exec_profile profile;
	for (size_t i = 0; i < ARRAY_LENGTH(refused); i++) {
		const char *const keys[] = {"sbatch", refused[i], NULL};
		const struct error *err = read_keys(&profile, keys);
		assert_non_null(err);
		assert_int_equal(err->code, ERROR_CONFIG);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(fine); i++) {
		const char *const keys[] = {"sbatch", fine[i], NULL};
		assert_null(read_keys(&profile, keys));
		exec_profile_finish(&profile);
	}
}

static void test_variables_of_another_job_are_left_out(void **state)
{
	static const char *const keys[] = {NULL};
	static const char *const kept[] = {"PATH=/bin", "SLURM_CONF=/c", "SBATCH_ACCOUNT=a"};
	struct exec_profile profile;
	assert_null(read_keys(&profile, keys));
	assert_int_equal(words_count(profile.env), ARRAY_LENGTH(kept));
	for (size_t i = 0; i < ARRAY_LENGTH(kept); i++) {
		assert_string_equal(profile.env[i], kept[i]);
	}
	exec_profile_finish(&profile);
}

static void test_the_state_is_that_of_the_job_that_has_not_ended(void **state)
{
	static const struct {
		const char *out;
		int state; // -1: none
		const char *says;
	} cases[] = {
		{"7 RUNNING None\n", EXEC_STATE_RUNNING, "RUNNING"},
		{"7 PENDING Resources\n", EXEC_STATE_WAITING, "PENDING (Resources)"},
		{"7 PENDING ReqNodeNotAvail, UnavailableNodes:n[1-3]\n", EXEC_STATE_WAITING,
			"PENDING (ReqNodeNotAvail, UnavailableNodes:n[1-3])"},
		{"7 COMPLETING TimeLimit\n", EXEC_STATE_WAITING, "COMPLETING (TimeLimit)"},
		{"7 TIMEOUT TimeLimit\n", EXEC_STATE_STOPPED, "TIMEOUT (TimeLimit)"},
		{"7 PREEMPTED None\n", EXEC_STATE_STOPPED, "PREEMPTED"},
		{"7 CANCELLED None\n", EXEC_STATE_STOPPED, "CANCELLED"},
		{"7 NODE_FAIL NodeDown\n", EXEC_STATE_STOPPED, "NODE_FAIL (NodeDown)"},
		{"7 OUT_OF_MEMORY", EXEC_STATE_STOPPED, "OUT_OF_MEMORY"},
		{"7 CANCELLED None\n6 TIMEOUT TimeLimit\n", EXEC_STATE_STOPPED, "CANCELLED"},
		{"7 CANCELLED None\n6 RUNNING None\n", EXEC_STATE_RUNNING, "RUNNING"},
		{"7 PENDING Priority\n6 RUNNING None\n", EXEC_STATE_WAITING, "PENDING (Priority)"},
		{"7 PENDING a\x1b[2Jb\n", EXEC_STATE_WAITING, "PENDING (a [2Jb)"},
		{"", EXEC_STATE_STOPPED, NULL},
		{"\n", -1, ""},
		{"7\n", -1, ""},
		{" RUNNING None\n", -1, ""},
		{"RUNNING None\n", -1, ""},
		{"7 RUN None\n", -1, ""},
		{"7 TIMEOUT x\n6 ASLEEP y\n", -1, ""},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		enum exec_state found = EXEC_STATE_GONE;
		char says[EXEC_SAYS_SIZE] = "";
		bool ok = slurm_platform.read_state(span_of(cases[i].out), &found, says);
		assert_int_equal(ok ? (int)found : -1, cases[i].state);
		if (ok && cases[i].says) {
			assert_string_equal(says, cases[i].says); // exact: Slurm's own words
		}
	}
}

static void test_the_number_is_that_of_the_job_that_has_not_ended(void **state)
{
	static const struct {
		const char *out, *number;
	} cases[] = {
		{"17 RUNNING None\n", "17"},
		{"18 CANCELLED None\n17 RUNNING None\n", "17"},
		{"18 RUNNING None\n17 RUNNING None\n", "18"},
		{"18 RUN None\n", ""},
		{"", ""},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct span found = slurm_platform.read_name(span_of(cases[i].out));
		assert_true(span_is(found, cases[i].number));
	}
}

static void test_a_long_reason_keeps_its_beginning(void **state)
{
	char out[1024] = "7 PENDING ", says[EXEC_SAYS_SIZE] = "";
	enum exec_state found;
	memset(out + strlen(out), 'x', 1000);
	assert_true(slurm_platform.read_state(span_of(out), &found, says));
	assert_int_equal(strncmp(says, "PENDING (xxx", 12), 0);
	assert_int_equal(says[strlen(says) - 1], ')');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_commands_name_the_job_or_its_number),
		cmocka_unit_test(test_the_keys_come_before_our_own_options),
		cmocka_unit_test(test_no_value_is_another_option_or_a_script),
		cmocka_unit_test(test_no_option_makes_other_jobs_than_one_here),
		cmocka_unit_test(test_variables_of_another_job_are_left_out),
		cmocka_unit_test(test_the_state_is_that_of_the_job_that_has_not_ended),
		cmocka_unit_test(test_the_number_is_that_of_the_job_that_has_not_ended),
		cmocka_unit_test(test_a_long_reason_keeps_its_beginning),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
