/* SPDX-License-Identifier: MIT */
#include "tests/bench/tools.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/ask.h"
#include "tests/bench/plain.h"
#include "tests/bench/samples.h"

enum {
	LINE_LENGTH = 64,
	FIRST_NUMBER = 10000000, // each written text begins with one
	NUMBER_DIGITS = 8,
	OUTPUT_LIMIT = 64 * 1024,
	WRITE_SIZE = 64 * 1024,
	WARM_UP_PART = 10,
};

/* The data of one operation. */
struct work {
	struct asker *asker;
	size_t size;
	char path[PATH_MAX];    // of its file
	char program[PATH_MAX]; // of this one
	char bytes[32];         // the size, as a word of a command
	char *text;             // size bytes
	char *got;              // size bytes
	char *escaped;          // the text as written in JSON, with the quote at its end
	unsigned number;        // of the text being written
};

/* ---- text ---- */

static void fill_text(char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		text[i] = (char)(i % LINE_LENGTH == LINE_LENGTH - 1 ? '\n' : 'a' + (int)(i % 26));
	}
}

static void escape(char *out, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (text[i] == '\n') {
			*out++ = '\\';
		}
		*out++ = (char)(text[i] == '\n' ? 'n' : text[i]);
	}
	*out++ = '"';
	*out = '\0';
}

/* Makes each written text differ from the one before. */
static void number_text(struct work *work)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%08u", ++work->number);
	memcpy(work->text, number, NUMBER_DIGITS);
	memcpy(work->escaped, number, NUMBER_DIGITS);
}

bool tools_write_text(unsigned long long bytes)
{
	static char text[WRITE_SIZE];

	fill_text(text, sizeof(text));
	for (unsigned long long left = bytes; left > 0;) {
		const size_t part = left < sizeof(text) ? (size_t)left : sizeof(text);
		if (!write_all(STDOUT_FILENO, text, part)) {
			return false;
		}
		left -= part;
	}
	return true;
}

/* ---- files ---- */

static bool read_plainly(struct work *work)
{
	return plain_read(work->path, work->got, work->size);
}

static bool read_asked(struct work *work)
{
	static const char method[] = "fs/read_text_file";
	static const char before[] = "{\"content\":\"";
	char params[PATH_MAX + 16];
	size_t len = 0;

	(void)snprintf(params, sizeof(params), "\"path\":\"%s\"", work->path);
	const char *got = ask(work->asker, method, params, "", &len);
	return is_result(got, len, before, method) &&
	       is_result(got + strlen(before), len - strlen(before), work->escaped, method);
}

static bool write_plainly(struct work *work)
{
	return plain_write(work->path, work->text, work->size);
}

static bool write_asked(struct work *work)
{
	static const char method[] = "fs/write_text_file";
	char params[PATH_MAX + 32];
	size_t len = 0;

	(void)snprintf(params, sizeof(params), "\"path\":\"%s\",\"content\":\"", work->path);
	const char *got = ask(work->asker, method, params, work->escaped, &len);
	return is_result(got, len, "{", method);
}

/* Checks that the disk has the text that was to be written. */
static bool check_file(struct work *work)
{
	if (!plain_read(work->path, work->got, work->size)) {
		return false;
	}
	if (memcmp(work->got, work->text, work->size) != 0) {
		(void)fprintf(stderr, "load_agent: %s differs from what was written\n", work->path);
		return false;
	}
	return true;
}

/* ---- commands ---- */

static bool run_plainly(struct work *work)
{
	static const char *const argv[] = {"true", "-", NULL};

	return plain_run(argv);
}

/* Runs a command to its end; out_id is the terminal's id. */
static bool run_in_terminal(struct work *work, const char *command, char *out_id, size_t id_size)
{
	char params[64];
	size_t len = 0;
	const char *got = ask(work->asker, "terminal/create", command, "", &len);

	if (got == NULL || !text_between(got, len, "\"terminalId\":\"", '"', out_id, id_size)) {
		return false;
	}
	(void)snprintf(params, sizeof(params), "\"terminalId\":\"%s\"", out_id);
	got = ask(work->asker, "terminal/wait_for_exit", params, "", &len);
	return is_result(got, len, "{\"exitCode\":0,", "terminal/wait_for_exit");
}

static bool release_terminal(struct work *work, const char *id)
{
	char params[64];
	size_t len = 0;

	(void)snprintf(params, sizeof(params), "\"terminalId\":\"%s\"", id);
	const char *got = ask(work->asker, "terminal/release", params, "", &len);
	return is_result(got, len, "{", "terminal/release");
}

static bool run_asked(struct work *work)
{
	char id[32];

	return run_in_terminal(work, "\"command\":\"true\",\"args\":[\"-\"]", id, sizeof(id)) &&
	       release_terminal(work, id);
}

static bool output_plainly(struct work *work)
{
	const char *const argv[] = {"sh", "-c", "\"$0\" write \"$1\" | cat >/dev/null",
		work->program, work->bytes, NULL};

	return plain_run(argv);
}

/* Checks that only the end of the output is kept, and that the answer says so. */
static bool is_cut(struct work *work, const char *id)
{
	static const char method[] = "terminal/output";
	char params[64];
	size_t len = 0;

	(void)snprintf(params, sizeof(params), "\"terminalId\":\"%s\"", id);
	const char *got = ask(work->asker, method, params, "", &len);
	if (got == NULL) {
		return false;
	}
	if (len < OUTPUT_LIMIT || len / 2 > OUTPUT_LIMIT ||
		memmem(got, len, "\"truncated\":true", 16) == NULL) {
		(void)fprintf(stderr, "load_agent: %s: %zu bytes came: %.80s…\n", method, len, got);
		return false;
	}
	return true;
}

static bool output_asked(struct work *work)
{
	char command[PATH_MAX + 128];
	char id[32];

	(void)snprintf(command, sizeof(command),
		"\"command\":\"%s\",\"args\":[\"write\",\"%s\"],\"outputByteLimit\":%d",
		work->program, work->bytes, (int)OUTPUT_LIMIT);
	return run_in_terminal(work, command, id, sizeof(id)) && is_cut(work, id) &&
	       release_terminal(work, id);
}

/* ---- measuring ---- */

struct operation {
	const char *name;
	bool (*plain)(struct work *work);
	bool (*asked)(struct work *work);
	bool (*check)(struct work *work); // after each of both; NULL
	bool has_file;
};

static const struct operation operations[] = {
	{"read", read_plainly, read_asked, NULL, true},
	{"write", write_plainly, write_asked, check_file, true},
	{"run", run_plainly, run_asked, NULL, false},
	{"output", output_plainly, output_asked, NULL, false},
};

static void *allocate(size_t size)
{
	void *memory = calloc(size > 0 ? size : 1, 1);

	if (memory == NULL) {
		abort();
	}
	return memory;
}

static bool work_init(struct work *work, const struct operation *operation)
{
	char folder[PATH_MAX / 2];
	const ssize_t len = readlink("/proc/self/exe", work->program, sizeof(work->program) - 1);

	if (len < 0 || getcwd(folder, sizeof(folder)) == NULL) {
		perror("load_agent");
		return false;
	}
	work->program[len] = '\0';
	work->number = FIRST_NUMBER;
	(void)snprintf(work->bytes, sizeof(work->bytes), "%zu", work->size);
	(void)snprintf(work->path, sizeof(work->path), "%s/measured.txt", folder);
	if (!operation->has_file) {
		return true;
	}
	work->text = allocate(work->size);
	work->got = allocate(work->size);
	work->escaped = allocate(2 * work->size + 2);
	fill_text(work->text, work->size);
	escape(work->escaped, work->text, work->size);
	return work->size >= NUMBER_DIGITS && plain_write(work->path, work->text, work->size);
}

static void work_finish(struct work *work)
{
	free(work->text);
	free(work->got);
	free(work->escaped);
}

static bool measure_once(struct work *work, const struct operation *operation,
	bool (*run)(struct work *), uint64_t *out_ns)
{
	if (operation->check) {
		number_text(work);
	}
	const uint64_t before = now_ns();
	if (!run(work)) {
		return false;
	}
	*out_ns = now_ns() - before;
	return !operation->check || operation->check(work);
}

/* Measures both in turns; the first ones only warm up, and their times are overwritten. */
static bool measure(struct work *work, const struct operation *operation, unsigned count,
	uint64_t *plain_ns, uint64_t *asked_ns)
{
	const int warm_up = count > 1 ? (int)(count / WARM_UP_PART) + 1 : 0;

	for (int i = -warm_up; i < (int)count; i++) {
		const int at = i < 0 ? 0 : i;
		if (!measure_once(work, operation, operation->plain, &plain_ns[at]) ||
			(asked_ns &&
				!measure_once(work, operation, operation->asked, &asked_ns[at]))) {
			return false;
		}
	}
	return true;
}

static double median_us(uint64_t *ns, unsigned count)
{
	samples_sort(ns, count);
	return samples_percentile_us(ns, count, 50);
}

static bool measure_all(struct work *work, const struct operation *operation, unsigned count,
	bool is_asked, char *out, size_t out_size)
{
	uint64_t *plain_ns = allocate(count * sizeof(*plain_ns));
	uint64_t *asked_ns = is_asked ? allocate(count * sizeof(*asked_ns)) : NULL;
	const bool fine =
		work_init(work, operation) && measure(work, operation, count, plain_ns, asked_ns);
	if (fine && is_asked) {
		(void)snprintf(out, out_size, "{\"plain_us\":%.3f,\"asked_us\":%.3f}",
			median_us(plain_ns, count), median_us(asked_ns, count));
	} else if (fine) {
		(void)snprintf(out, out_size, "{\"plain_us\":%.3f}", median_us(plain_ns, count));
	}
	work_finish(work);
	free(plain_ns);
	free(asked_ns);
	return fine;
}

bool tools_measure(struct asker *asker, const char *what, char *out, size_t out_size)
{
	char name[16];
	char who[16];
	char size[32];
	char times[16];

	const bool is_whole = sscanf(what, "%15s %31s %15s %15s", name, size, times, who) == 4;
	const unsigned count = is_whole ? (unsigned)strtoul(times, NULL, 10) : 0;
	if (count == 0) {
		(void)fprintf(stderr, "load_agent: tools: cannot read \"%s\"\n", what);
		return false;
	}
	struct work work = {.asker = asker, .size = strtoul(size, NULL, 10)};
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		if (strcmp(operations[i].name, name) == 0) {
			return measure_all(&work, &operations[i], count, strcmp(who, "both") == 0,
				out, out_size);
		}
	}
	(void)fprintf(stderr, "load_agent: tools: there is no \"%s\"\n", name);
	return false;
}
