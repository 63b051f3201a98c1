/* SPDX-License-Identifier: MIT */
#include "providers/slurm/commands.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/text.h"
#include "base/words.h"

enum { WORD_MAX = 512, QUOTED_MAX = 96, REASON_MAX = 200 };

enum { KEY_PARTITION, KEY_ACCOUNT, KEY_TIME, KEY_GRES, KEY_SBATCH, KEY_QUEUE_TIMEOUT };

const struct setting_key slurm_keys[SLURM_KEYS] = {
	[KEY_PARTITION] = {.name = "partition",
		.type = SETTING_TEXT,
		.help = "the partition of the job; by default the cluster's own"},
	[KEY_ACCOUNT] = {.name = "account",
		.type = SETTING_TEXT,
		.help = "the account that the job is charged to"},
	[KEY_TIME] = {.name = "time",
		.type = SETTING_TEXT,
		.help = "the time limit of the job, such as 2:00:00 or 1-12"},
	[KEY_GRES] = {.name = "gres",
		.type = SETTING_TEXT,
		.help = "generic resources of the job, such as gpu:1"},
	[KEY_SBATCH] = {.name = "sbatch",
		.type = SETTING_LIST,
		.help = "a further option of sbatch, such as --mem=8G"},
	[KEY_QUEUE_TIMEOUT] = {.name = "queue-timeout",
		.type = SETTING_DURATION,
		.fallback = "1h",
		.min = EXEC_SECOND,
		.max = 7 * EXEC_DAY,
		.help = "for a job in the queue, until it runs"},
	EXEC_COMMON_KEYS,
};

static const char *value_of(const struct settings *settings, int key)
{
	return settings_get(settings, slurm_keys[key].name);
}

/* ---- the options of sbatch ---- */

/* A word of printable characters without blanks: a value, or with "--" in front an option. */
static bool check_word(int key, const char *word, bool is_option, struct error *err)
{
	char quoted[QUOTED_MAX];
	bool is_plain = *word && strlen(word) <= WORD_MAX;
	for (const char *at = word; *at; at++) {
		is_plain = is_plain && (unsigned char)*at > ' ' && (unsigned char)*at < 0x7f;
	}
	if (is_plain && (is_option ? strncmp(word, "--", 2) == 0 && word[2] : word[0] != '-')) {
		return true;
	}
	return error_set(err, ERROR_CONFIG, "%s: expected %s without blanks, got %s",
		slurm_keys[key].name,
		is_option ? "a long option with its value, such as --mem=8G," : "a value of sbatch",
		setting_quote(quoted, sizeof(quoted), word));
}

/*
 * Options after which one job, on the cluster that we ask, would no longer be what sbatch has
 * started. sbatch also takes the beginning of a name.
 */
static bool check_option(const char *word, struct error *err)
{
	static const char *const refused[] = {
		"array", "clusters", "export-file", "get-user-env", "test-only", "wait"};
	size_t len = strcspn(word + 2, "=");
	for (size_t i = 0; i < ARRAY_LENGTH(refused); i++) {
		if (strncmp(word + 2, refused[i], len) == 0) {
			return error_set(err, ERROR_CONFIG,
				"sbatch: %.*s is not possible: the broker needs one job, whose "
				"number sbatch prints at once (such as --mem=8G is possible)",
				(int)len + 2, word);
		}
	}
	return true;
}

static bool add_options(char ***words, const struct settings *settings, struct error *err)
{
	static const struct {
		int key;
		const char *name;
	} options[] = {{KEY_PARTITION, "--partition="}, {KEY_ACCOUNT, "--account="},
		{KEY_TIME, "--time="}, {KEY_GRES, "--gres="}};
	for (size_t i = 0; i < ARRAY_LENGTH(options); i++) {
		const char *value = value_of(settings, options[i].key);
		if (value && !check_word(options[i].key, value, false, err)) {
			return false;
		}
		if (value) {
			exec_add_literal(words, options[i].name, value);
		}
	}
	char **more = words_of_settings(settings, slurm_keys[KEY_SBATCH].name);
	bool is_ok = true;
	for (char **word = more; is_ok && word && *word; word++) {
		is_ok = check_word(KEY_SBATCH, *word, true, err) && check_option(*word, err);
		if (is_ok) {
			exec_add_literal(words, "", *word);
		}
	}
	words_free(more);
	return is_ok;
}

/* ---- the commands ---- */

/*
 * The user's options come first: of two equal options the last one counts. The job is not put into
 * the queue again after a failure of its node, because nothing of the session would be in it.
 */
static bool add_start(
	struct exec_profile *profile, const struct settings *settings, struct error *err)
{
	static const char *const ours[] = {"--parsable", "--job-name=%n",
		"--comment=acp-broker profile %p", "--output=/dev/null", "--error=/dev/null",
		"--input=/dev/null", "--chdir=/", "--export=NONE", "--no-requeue",
		"--wrap=exec sleep infinity", NULL};
	char ***words = &profile->words[EXEC_START];
	words_append(words, "sbatch");
	if (!add_options(words, settings, err)) {
		return false;
	}
	words_append_all(words, ours);
	return true;
}

/*
 * Without --unbuffered, Slurm keeps what the runner prints until it prints a newline. With several
 * nodes, each link must come to the same one, because it ends what an earlier one has left there.
 */
static void add_others(struct exec_profile *profile)
{
	static const char *const step[] = {"srun", "--jobid=%i", "--overlap", "--export=NONE",
		"--unbuffered", "--quiet", "--nodes=1", "--ntasks=1", "--relative=0", "--chdir=/",
		NULL};
	static const char *const cancel[] = {"scancel", "--me", "--name=%n", NULL};
	static const char *const list[] = {
		"squeue", "--me", "--noheader", "--states=all", "--format=%%i", NULL};
	static const char *const state[] = {"squeue", "--me", "--noheader", "--states=all",
		"--name=%n", "--sort=-i", "--format=%%i %%T %%r", NULL};
	words_append_all(&profile->words[EXEC_EXEC], step);
	words_append_all(&profile->words[EXEC_STOP], cancel);
	words_append_all(&profile->words[EXEC_DESTROY], cancel);
	words_append_all(&profile->words[EXEC_LIST], list);
	words_append_all(&profile->words[EXEC_STATE], state);
}

/*
 * Slurm's commands take options from variables, too. Where the broker itself runs in a job, these
 * describe that job, and would for example bind a step of ours to its processors. Those that say
 * which cluster it is stay, and so do the user's defaults for sbatch (SBATCH_*), except those that
 * check_option refuses.
 */
static void clean_environment(char ***env)
{
	static const char *const kept[] = {"SLURM_CONF=", "SLURM_CONF_SERVER=", "SLURM_JWT="};
	static const char *const dropped[] = {"SLURM_", "SLURMD_", "SRUN_", "SQUEUE_", "SCANCEL_",
		"SBATCH_ARRAY_INX=", "SBATCH_CLUSTERS=", "SBATCH_GET_USER_ENV=", "SBATCH_WAIT="};
	char **clean = mem_alloc_zero(sizeof(*clean));
	for (char **entry = *env; *entry; entry++) {
		bool is_kept = false, is_dropped = false;
		for (size_t i = 0; i < ARRAY_LENGTH(kept); i++) {
			is_kept = is_kept || strncmp(*entry, kept[i], strlen(kept[i])) == 0;
		}
		for (size_t i = 0; i < ARRAY_LENGTH(dropped); i++) {
			is_dropped =
				is_dropped || strncmp(*entry, dropped[i], strlen(dropped[i])) == 0;
		}
		if (is_kept || !is_dropped) {
			words_append(&clean, *entry);
		}
	}
	words_free(*env);
	*env = clean;
}

static bool read_commands(struct exec_profile *profile, const struct settings *settings,
	const struct provider_context *context, struct error *err)
{
	profile->wait_key = slurm_keys[KEY_QUEUE_TIMEOUT].name;
	profile->wait_ms = settings_number(settings, &slurm_keys[KEY_QUEUE_TIMEOUT]);
	clean_environment(&profile->env);
	add_others(profile);
	return add_start(profile, settings, err);
}

/* ---- what squeue prints ---- */

static const struct {
	const char *word;
	enum exec_state state;
} states[] = {
	{"RUNNING", EXEC_STATE_RUNNING},
	{"PENDING", EXEC_STATE_WAITING},
	{"CONFIGURING", EXEC_STATE_WAITING},
	{"COMPLETING", EXEC_STATE_WAITING}, // processes of the job are still there
	{"SUSPENDED", EXEC_STATE_WAITING},
	{"STOPPED", EXEC_STATE_WAITING}, // by a signal, and it keeps its processors
	{"SIGNALING", EXEC_STATE_WAITING},
	{"RESIZING", EXEC_STATE_WAITING},
	{"STAGE_OUT", EXEC_STATE_WAITING},
	{"REQUEUED", EXEC_STATE_WAITING},
	{"REQUEUE_HOLD", EXEC_STATE_WAITING},
	{"REQUEUE_FED", EXEC_STATE_WAITING},
	{"RESV_DEL_HOLD", EXEC_STATE_WAITING},
	{"POWER_UP_NODE", EXEC_STATE_WAITING},
	{"UPDATE_DB", EXEC_STATE_WAITING},
	{"EXPEDITING", EXEC_STATE_WAITING},
	{"SPECIAL_EXIT", EXEC_STATE_WAITING},
	{"COMPLETED", EXEC_STATE_STOPPED},
	{"CANCELLED", EXEC_STATE_STOPPED},
	{"FAILED", EXEC_STATE_STOPPED},
	{"TIMEOUT", EXEC_STATE_STOPPED},
	{"PREEMPTED", EXEC_STATE_STOPPED},
	{"NODE_FAIL", EXEC_STATE_STOPPED},
	{"OUT_OF_MEMORY", EXEC_STATE_STOPPED},
	{"BOOT_FAIL", EXEC_STATE_STOPPED},
	{"LAUNCH_FAILED", EXEC_STATE_STOPPED},
	{"RECONFIG_FAIL", EXEC_STATE_STOPPED},
	{"DEADLINE", EXEC_STATE_STOPPED},
	{"REVOKED", EXEC_STATE_STOPPED},
};

struct job_line {
	struct span number;
	enum exec_state state;
	char says[EXEC_SAYS_SIZE]; // "STATE (REASON)", or "STATE" if Slurm has no reason
};

/* Takes the text up to the next blank, and the blank. */
static struct span take_word(struct span *line)
{
	const char *blank = line->len > 0 ? memchr(line->data, ' ', line->len) : NULL;
	struct span word = {line->data, blank ? (size_t)(blank - line->data) : line->len};
	size_t taken = word.len + (blank != NULL);
	*line = (struct span){line->data + taken, line->len - taken};
	return word;
}

/* A line "NUMBER STATE REASON". */
static bool read_line(struct span line, struct job_line *out_job)
{
	char shown[REASON_MAX + 1] = "";
	out_job->number = take_word(&line);
	struct span state = take_word(&line);
	struct span reason = {line.data, line.len < REASON_MAX ? line.len : REASON_MAX};
	io_keep_words(shown, REASON_MAX, reason);
	bool has_reason = shown[0] && strcmp(shown, "None") != 0;
	for (size_t i = 0; i < ARRAY_LENGTH(states); i++) {
		if (span_is(state, states[i].word)) {
			out_job->state = states[i].state;
			text_format(out_job->says, EXEC_SAYS_SIZE, has_reason ? "%s (%s)" : "%s",
				states[i].word, shown);
			return out_job->number.len > 0;
		}
	}
	return false;
}

/*
 * Jobs of one name, the latest first: an earlier one stays in the list for some minutes. If one of
 * them has not ended, it decides; otherwise it is the latest. False: a line cannot be read.
 * *out_job is unchanged if there is no line.
 */
static bool find_job(struct span out, struct job_line *out_job)
{
	for (bool is_first = true; out.len > 0; is_first = false) {
		struct job_line job;
		const char *newline = memchr(out.data, '\n', out.len);
		size_t len = newline ? (size_t)(newline - out.data) : out.len;
		if (!read_line((struct span){out.data, len}, &job)) {
			return false;
		}
		if (is_first || job.state != EXEC_STATE_STOPPED) {
			*out_job = job;
		}
		if (job.state != EXEC_STATE_STOPPED) {
			return true;
		}
		len += newline != NULL;
		out.data += len;
		out.len -= len;
	}
	return true;
}

/* If Slurm has forgotten all jobs of the name, it is as if the job had ended. */
static bool read_state(struct span out, enum exec_state *out_state, char says[EXEC_SAYS_SIZE])
{
	struct job_line job = {
		.state = EXEC_STATE_STOPPED, .says = "Slurm no longer knows the job"};
	if (!find_job(out, &job)) {
		return false;
	}
	*out_state = job.state;
	memcpy(says, job.says, sizeof(job.says));
	return true;
}

static struct span read_name(struct span out)
{
	struct job_line job = {.number = {"", 0}};
	return find_job(out, &job) ? job.number : (struct span){"", 0};
}

const struct exec_platform slurm_platform = {
	.name = "slurm",
	.read = read_commands,
	.read_state = read_state,
	.read_name = read_name,
	.keeps_files = true,
};
