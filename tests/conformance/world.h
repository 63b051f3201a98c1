/* SPDX-License-Identifier: MIT */
#ifndef TESTS_CONFORMANCE_WORLD_H
#define TESTS_CONFORMANCE_WORLD_H

/* cmocka needs these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ev.h>
#include <limits.h>
#include <stdbool.h>

#include "base/buf.h"
#include "providers/provider.h"

/*
 * The surroundings of a conformance case: one ready sandbox with one root, and helpers that run the
 * loop until something has happened. Cases do not know where the sandbox is: they only use
 * sandbox_exec and file operations.
 */
struct skipped_case {
	const char *name; // NULL: the end of the list
	const char *why;  // it says nothing about this provider
};

struct subject {
	const char *name;
	const char *backend;
	struct provider *(*create)(const struct provider_context *context, const char *folder);
	const char *isolation; // a key of the profile; may be NULL
	/* Its processes have a mark in their environment, but no guard that reaps them. */
	bool is_marked;
	bool tells_folder;                  // adds PWD to the environment of its processes
	const struct skipped_case *skipped; // NULL: all cases run
};

struct world {
	const struct subject *subject;
	struct ev_loop *loop;
	struct provider_context context;
	struct provider *provider;
	struct settings settings;
	struct sandbox *sandbox;
	char folder[PATH_MAX];     // on this machine, removed at the end
	char local_root[PATH_MAX]; // in `folder`
	const char *root;          // the same folder in the sandbox
	int fd_count;              // descriptors that were open before the case
	bool is_under_valgrind;
};

enum { DEADLINE_MS = 30000 };

/* How many objects to make at once: fewer if each needs several processes. */
int world_many(const struct world *world, int count);

/* cmocka's set-up and tear-down of a case; the state is the world. */
int world_set_up(void **state);
int world_tear_down(void **state);

/* Runs the loop until *flag; fails the case after DEADLINE_MS. */
void world_run_until(const struct world *world, const bool *flag);
void world_run_for(const struct world *world, int ms);

/* A path below the root; valid until the fourth call after it. */
const char *world_path(const struct world *world, const char *name);

/* ---- processes ---- */

enum { TOLD_MAX = 8 };

/* Reads a descriptor to its end: counts and hashes all bytes, and keeps the first ones. */
struct sink {
	struct ev_loop *loop;
	ev_io io;
	int fd; // -1: at its end, or never opened
	bool at_end;
	unsigned long long total;
	unsigned long long hash;
	struct buf text; // the first SINK_TEXT_MAX bytes
};
enum { SINK_TEXT_MAX = 256 * 1024 };

void sink_open(struct sink *sink, struct ev_loop *loop, int fd); // takes fd over
void sink_close(struct sink *sink);
const char *sink_text(struct sink *sink); // terminated

/* One process, and its events in order: s, f, x, e or l(ost). */
struct run {
	const struct world *world;
	struct exec *exec;
	char told[TOLD_MAX];
	char destroy_at; // destroys the process in the handler of this event
	bool has_started;
	bool has_failed;
	bool has_exited;
	bool has_emptied;
	struct process_status status;
	struct error err;
	int in; // the process's stdin; -1 once it is closed
	struct sink out;
	struct sink errors;
};

/* Starts the process, and reads its stdout and stderr; `spec` has the rest. */
void run_start(struct run *run, const struct world *world, const struct exec_spec *spec);
void run_start_shell(struct run *run, const struct world *world, const char *script);
/* The same without reading; run_read begins to read. */
void run_start_unread(struct run *run, const struct world *world, const struct exec_spec *spec);
void run_read(struct run *run);
void run_expect(
	const struct run *run, const char *told); // waits for these events, and fails for others
void run_destroy(struct run *run);

/*
 * Runs a shell script in the root, expects status 0, and returns its output without the last
 * newline; valid until the next call.
 */
const char *world_shell(const struct world *world, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * While it runs, the name swap alternates between the folder real and a link to the target. Returns
 * once the process does this.
 */
void run_swapper(struct run *run, const struct world *world, const char *target);

/* Whether a process of the sandbox is alive; waits a little for its end. */
bool world_is_alive(const struct world *world, long pid);
void world_expect_gone(const struct world *world, long pid);

/* ---- files ---- */

/* The outcome of one file operation, after waiting for it. */
struct outcome {
	bool is_done;
	bool is_ok;
	struct error err;
	struct buf content;  // of a read
	struct stat status;  // of a stat
	char path[PATH_MAX]; // of a resolve
};

void outcome_finish(struct outcome *outcome);
void file_read_wait(
	const struct world *world, const char *path, size_t max_bytes, struct outcome *out);
void file_write_wait(
	const struct world *world, const char *path, struct span content, struct outcome *out);
void file_stat_wait(const struct world *world, const char *path, struct outcome *out);
void file_resolve_wait(const struct world *world, const char *path, struct outcome *out);

/* sandbox_done and file_read_done with a struct outcome, for cases that do not wait at once. */
void outcome_on_done(void *data, const struct error *err);
void outcome_on_read(void *data, struct buf *content, const struct error *err);

/* Reads a file and expects this content. */
void expect_content(const struct world *world, const char *path, const char *content);
void expect_written(const struct world *world, const char *path, const char *content);

/* Expects the error, and these words in its text. */
void expect_refused(const struct outcome *outcome, const char *words); // SECURITY_VIOLATION
void expect_error(const struct outcome *outcome, enum error_code code, const char *words);

/* ---- the table ---- */

struct world_case {
	const char *name; // a sentence
	void (*run)(struct world *world);
};

struct world_table {
	const struct world_case *cases;
	size_t count;
	void (*begin)(struct world *world); // before each case; may be NULL
	void (*end)(struct world *world);   // after each case, even if it failed; may be NULL
};

extern const struct world_table exec_cases;
extern const struct world_table kill_cases;
extern const struct world_table file_cases;
extern const struct world_table confine_cases;
extern const struct world_table life_cases;
extern const struct world_table suspend_cases;
extern const struct world_table terminal_cases;
extern const struct world_table toolhost_file_cases;
extern const struct world_table policy_cases;

/*
 * The begin and end of cases with a ToolHost on the world's sandbox
 * (tests/support/toolhost/fixture.h).
 */
void tools_begin(struct world *world);
void tools_end(struct world *world);

#endif
