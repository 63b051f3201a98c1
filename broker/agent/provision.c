/* SPDX-License-Identifier: MIT */
#include "broker/agent/provision.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/random.h"
#include "base/soon.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/script_run.h"

enum {
	COPY_MS = 60000,
	ANSWER_MAX = 65536,
	KEY_SIZE = 17,
	FIXED_WORDS = 6,
	PLACE_MAX = 2 * FILE_PATH_MAX
};

static const char copy_script[] =
#include "broker/agent/remote/provision.sh.inc"
#include "broker/agent/remote/copy.sh.inc" // which uses its functions
	;
static const char setup_script[] =
#include "broker/agent/remote/provision.sh.inc"
#include "broker/agent/remote/setup.sh.inc"
	;

/* Reads a file on the pool. */
struct reading {
	struct pool_job job;
	struct provision *provision;
	char *source; // owned
	struct buf content;
	bool failed;
	struct error err;
};

struct provision {
	struct provision_config config;
	size_t next;             // index of the file; after the last file, of the line
	struct reading *reading; // owned by the pool's job; may be NULL
	struct buf content;      // of the present file
	struct script_run *run;  // owned; may be NULL
	size_t heard;            // bytes of the answer that were read
	size_t line;             // number of the running line, from 1
	struct soon later;       // reports a result that is known at once
	struct error err;        // ERROR_NONE: success
	sandbox_done *done;
	void *data;
};

static void next_step(struct provision *provision);

static void put_key(char key[KEY_SIZE], const char *const *texts)
{
	uint64_t hash = HASH_START;
	for (; *texts; texts++) {
		hash = hash_text(hash, *texts);
	}
	snprintf(key, KEY_SIZE, "%016" PRIx64, hash);
}

/* ---- the end ---- */

static void on_later(struct soon *soon)
{
	struct provision *provision = CONTAINER_OF(soon, struct provision, later);
	struct error err = provision->err;
	provision->done(provision->data, err.code == ERROR_NONE ? NULL : &err);
}

/* Calls done from the loop, not from inside another call. */
static void finish(struct provision *provision, const struct error *err)
{
	if (err) {
		provision->err = *err;
	}
	soon_start(&provision->later);
}

static size_t file_count(const struct provision *provision)
{
	return provision->config.setup ? 0 : provision->config.profile->copy_count;
}

static const struct copy_file *file_in_hand(const struct provision *provision)
{
	const struct profile *profile = provision->config.profile;
	return provision->next < file_count(provision) ? &profile->copy[provision->next] : NULL;
}

static const char *const *lines_of(const struct provision *provision)
{
	const struct provision_config *config = &provision->config;
	return config->setup ? config->setup->lines : (const char *const *)config->profile->setup;
}

static size_t line_count(const struct provision *provision)
{
	return words_count((char *const *)lines_of(provision));
}

/* Of a line, from 1: for people. A workspace's line may have any bytes, but its name is plain. */
static const char *line_name(const struct provision *provision, size_t line)
{
	const struct sandbox_setup *setup = provision->config.setup;
	return setup ? setup->names[line - 1] : lines_of(provision)[line - 1];
}

static const char *source_of(const struct provision *provision)
{
	return provision->config.setup ? provision->config.setup->source : "setup";
}

/* Prefixes the error with the file or the line. */
static void fail(struct provision *provision, struct error *err, const char *words)
{
	const struct copy_file *file = file_in_hand(provision);
	const char *reason = err->reason ? err->reason : "SETUP_FAILED";
	error_set_reason(err, err->code, reason, "%s%s%s%s", err->text, *words ? " (" : "", words,
		*words ? ")" : "");
	if (file) {
		error_prefix(err, "copying %s to %s", file->source, file->target);
	} else if (provision->line > 0) {
		error_prefix(err, "%s, line %zu (%s)", source_of(provision), provision->line,
			line_name(provision, provision->line));
	} else {
		error_prefix(err, "%s", source_of(provision));
	}
	finish(provision, err);
}

/* ---- answers ---- */

static void tell(struct provision *provision, const char *what, const char *detail)
{
	const struct provision_config *config = &provision->config;
	const struct copy_file *file = file_in_hand(provision);
	if (strcmp(what, "line") == 0) {
		size_t count = line_count(provision);
		size_t line = (size_t)strtoul(detail, NULL, 10);
		provision->line = line <= count ? line : 0;
		if (provision->line > 0) {
			log_info("%s: %s, line %zu of %zu: %s", config->subject,
				source_of(provision), line, count, line_name(provision, line));
		}
	} else if (strcmp(what, "wait") == 0) {
		log_info("%s: %s: another broker runs it (%s)", config->subject,
			source_of(provision), detail);
	} else if (strcmp(what, "copied") == 0 && file) {
		log_info("%s: copied %s to %s", config->subject, file->source, file->target);
	}
}

/* Takes both words of a pair, starting after the last one. */
static bool take_pair(struct provision *provision, struct span output, const char **out_what,
	const char **out_detail)
{
	struct span rest = {output.data + provision->heard, output.len - provision->heard};
	*out_what = span_take_text(&rest);
	*out_detail = *out_what ? span_take_text(&rest) : NULL;
	if (!*out_detail) {
		return false;
	}
	provision->heard = output.len - rest.len;
	return true;
}

static void on_output(void *data, struct span output, const char *words)
{
	struct provision *provision = data;
	size_t before = provision->heard;
	const char *what, *detail;
	while (take_pair(provision, output, &what, &detail)) {
		if (strcmp(what, "done") == 0 || strcmp(what, "failed") == 0) {
			provision->heard = before; // for on_end
			return;
		}
		tell(provision, what, detail);
		before = provision->heard;
	}
}

static void on_end(void *data, struct buf *output, const char *words, const struct error *err)
{
	struct provision *provision = data;
	struct error failure = {0};
	const char *what, *detail;
	if (err) {
		failure = *err;
	} else if (!take_pair(provision, buf_span(output), &what, &detail)) {
		error_set(&failure, ERROR_UNAVAILABLE, "the sandbox's answer was incomplete");
	} else if (strcmp(what, "done") != 0) {
		error_set_reason(&failure, ERROR_CONFIG, "SETUP_FAILED", "%s", detail);
	}
	char last_words[512];
	text_format(last_words, sizeof(last_words), "%s", words);
	script_run_destroy(provision->run);
	provision->run = NULL;
	buf_wipe(&provision->content);
	if (failure.code != ERROR_NONE) {
		fail(provision, &failure, last_words);
		return;
	}
	provision->next++;
	next_step(provision);
}

/* The variable that the lines of a devcontainer.json may use (container/devcontainer_text.h). */
static char **setup_environment(const struct provision_config *config, const char *const *base)
{
	struct buf variable;
	char **env = words_copy(base);
	buf_init(&variable, PLACE_MAX);
	if (buf_append_format(&variable, NULL, "containerWorkspaceFolder=%s", config->directory)) {
		char *text = mem_strndup(buf_span(&variable));
		words_append(&env, text);
		free(text);
	}
	buf_finish(&variable);
	return env;
}

static void run_script(struct provision *provision, const char *const *argv, struct span input,
	long long deadline_ms)
{
	static const struct script_listener listener = {.on_output = on_output, .on_end = on_end};
	struct error err;
	const struct provision_config *config = &provision->config;
	const char *const *base = sandbox_agent_environment(config->sandbox);
	char **env = config->setup ? setup_environment(config, base)
	                           : config_profile_environment(config->profile, base);
	struct script_order order = {.argv = argv,
		.env = (const char *const *)env,
		.input = input,
		.is_limited = input.len == 0, // limits apply to setup, not to our own copies
		.output_max = ANSWER_MAX,
		.deadline_ms = deadline_ms};
	provision->heard = 0;
	provision->run =
		script_run_start(config->loop, config->sandbox, &order, &listener, provision, &err);
	words_free(env);
	if (!provision->run) {
		fail(provision, &err, "");
	}
}

/* ---- files ---- */

static bool read_source(struct reading *reading, int fd)
{
	struct error *err = &reading->err;
	struct stat status;
	if (fd < 0 || fstat(fd, &status) != 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "opening the file");
	}
	if (!S_ISREG(status.st_mode)) {
		return error_set(err, ERROR_CONFIG, "it is not a regular file");
	}
	for (;;) {
		char *at = buf_reserve(&reading->content, COPY_FILE_MAX / 16, err);
		ssize_t count = at ? read(fd, at, COPY_FILE_MAX / 16) : 0;
		if (!at) {
			return error_set(err, ERROR_CONFIG,
				"it is larger than the allowed %d bytes", COPY_FILE_MAX);
		}
		if (count < 0) {
			int errnum = errno;
			return error_set_errno(err, errnum, "reading the file");
		}
		if (count == 0) {
			return true;
		}
		buf_commit(&reading->content, (size_t)count);
	}
}

static void on_run(struct pool_job *job)
{
	struct reading *reading = CONTAINER_OF(job, struct reading, job);
	ATTR_CLEANUP(fd_cleanup)
	int fd = open(reading->source, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	reading->failed = !read_source(reading, fd);
}

static void reading_drop(struct pool_job *job)
{
	struct reading *reading = CONTAINER_OF(job, struct reading, job);
	buf_wipe(&reading->content);
	free(reading->source);
	free(reading);
}

static void send_file(struct provision *provision)
{
	const struct copy_file *file = file_in_hand(provision);
	char size[32], token[33], key[KEY_SIZE];
	random_fill_hex(token, sizeof(token) - 1);
	snprintf(size, sizeof(size), "%zu", provision->content.len);
	put_key(key, (const char *const[]){file->target, NULL});
	const char *const argv[] = {
		"sh", "-c", copy_script, "acp-broker-copy", file->target, size, token, key, NULL};
	run_script(provision, argv, buf_span(&provision->content), COPY_MS);
}

static void on_read(struct pool_job *job)
{
	struct reading *reading = CONTAINER_OF(job, struct reading, job);
	struct provision *provision = reading->provision;
	struct error err = reading->err;
	bool failed = reading->failed;
	provision->reading = NULL;
	buf_move(&provision->content, &reading->content);
	reading_drop(job);
	if (failed) {
		fail(provision, &err, "");
	} else {
		send_file(provision);
	}
}

static void read_file(struct provision *provision)
{
	struct error err;
	struct reading *reading = mem_alloc_zero(sizeof(*reading));
	reading->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_read, .drop = reading_drop};
	reading->provision = provision;
	reading->source = mem_strdup(file_in_hand(provision)->source);
	reading->failed = true; // if the pool ends before it runs this
	error_set(&reading->err, ERROR_UNAVAILABLE, "the broker is ending");
	buf_init(&reading->content, COPY_FILE_MAX + COPY_FILE_MAX / 16);
	buf_init(&provision->content, COPY_FILE_MAX + COPY_FILE_MAX / 16);
	if (!pool_submit(provision->config.pool, &reading->job, &err)) {
		reading_drop(&reading->job);
		fail(provision, &err, "");
		return;
	}
	provision->reading = reading;
}

/* ---- lines ---- */

static void run_setup(struct provision *provision)
{
	const struct provision_config *config = &provision->config;
	const char *const *lines = lines_of(provision);
	const char *directory = config->setup ? config->directory : ".";
	char **texts = NULL;
	char key[KEY_SIZE];
	if (config->setup) {
		words_append(&texts, directory);
	}
	words_append_all(&texts, lines);
	put_key(key, (const char *const *)texts);
	words_free(texts);
	const char *const begin[FIXED_WORDS + 1] = {
		"sh", "-c", setup_script, "acp-broker-setup", key, directory, NULL};
	char **argv = NULL;
	words_append_all(&argv, begin);
	words_append_all(&argv, lines);
	run_script(provision, (const char *const *)argv, (struct span){NULL, 0},
		config->profile->setup_timeout_ms);
	words_free(argv);
}

static void next_step(struct provision *provision)
{
	if (provision->next < file_count(provision)) {
		read_file(provision);
	} else if (provision->next == file_count(provision) && line_count(provision) > 0) {
		run_setup(provision);
	} else {
		finish(provision, NULL);
	}
}

/* ---- public functions ---- */

bool provision_is_needed(const struct profile *profile)
{
	return profile->copy_count > 0 || words_count(profile->setup) > 0;
}

struct provision *provision_start(
	const struct provision_config *config, sandbox_done *done, void *data)
{
	struct provision *provision = mem_alloc_zero(sizeof(*provision));
	provision->config = *config;
	provision->done = done;
	provision->data = data;
	soon_init(&provision->later, provision->config.loop, on_later);
	next_step(provision);
	return provision;
}

void provision_destroy(struct provision *provision)
{
	if (!provision) {
		return;
	}
	soon_stop(&provision->later);
	script_run_destroy(provision->run);
	if (provision->reading) {
		pool_leave(&provision->reading->job);
	}
	buf_wipe(&provision->content);
	free(provision);
}
