/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_RUNNER_FIXTURE_H
#define TESTS_UNIT_RUNNER_FIXTURE_H

#include <sys/types.h>

#include "base/buf.h"
#include "providers/mux/mux.h"

/*
 * A broker's side of a link to a real runner, without the broker's own code for it. Each function
 * that waits fails the test after a minute.
 */
enum { RUNNER_EVENTS_MAX = 256 };

struct runner_event {
	enum runner_kind kind;
	uint64_t id;
	uint64_t number; // exit code, pid, size, or code of a failure
	uint64_t signal;
	char reason[64];
	char text[8192]; // of a failure; the path of PATH
	struct runner_status_of status;
};

struct test_runner {
	struct mux *mux;
	pid_t pid;    // 0: it was waited for
	int in, out;  // of the channel, as seen from here; -1: closed
	bool is_over; // the channel has ended
	bool is_mute; // writes nothing more to it
	struct runner_event events[RUNNER_EVENTS_MAX];
	size_t event_count;
	char hello[RUNNER_TEXT_MAX + 1];
	char end[RUNNER_TEXT_MAX + 1];
	char status[RUNNER_TEXT_MAX + 1];
	uint64_t last_id;
};

/* The bytes that came on a stream, or that are still to be sent. */
struct test_stream {
	struct mux_stream *stream; // NULL: closed
	struct buf bytes;
	bool is_over;
	bool is_reset;
	bool is_paused; // nothing is consumed
	bool finishes;  // once all bytes are sent
};

void test_runner_start(struct test_runner *runner, const char *hello);

/*
 * Starts a runner that may outlive its channel, as the run of this name; its socket is in the
 * folder.
 */
void test_runner_start_apart(
	struct test_runner *runner, const char *hello, const char *folder, const char *name);

/* Starts a runner whose run has this folder. */
void test_runner_start_run(struct test_runner *runner, const char *hello, const char *folder);

/* Starts another channel of this run; the first line that it says. Answers nothing. */
void test_runner_ask(struct test_runner *runner, const char *folder, const char *name,
	char out_line[RUNNER_TEXT_MAX]);

/*
 * Replaces its channel by a new one. False if the runner is gone or refuses the channel; then there
 * is not a channel. The caller owns the process of the earlier channel.
 */
bool test_runner_attach(struct test_runner *runner, const char *folder, const char *name,
	const char key[RUNNER_KEY_SIZE], uint64_t number);
void test_runner_cut(struct test_runner *runner);   // the channel alone; waits for its process
void test_runner_stop(struct test_runner *runner);  // closes the channel and waits for its end
int test_runner_wait(struct test_runner *runner);   // for its end; returns the wait status
void test_runner_close(struct test_runner *runner); // the channel

/* Writes and reads as much as possible without waiting. */
void test_runner_pump(struct test_runner *runner);

/* Runs one turn; waits at most a minute for an event. */
void test_runner_turn(struct test_runner *runner);

/* Waits for a message to this id; of kind 0: of any kind. */
const struct runner_event *test_runner_await(
	struct test_runner *runner, enum runner_kind kind, uint64_t id);
bool test_runner_has(const struct test_runner *runner, enum runner_kind kind, uint64_t id);

void test_runner_send(struct test_runner *runner, const struct runner_message *message);

/* Whether a process runs here, not counting zombies; waits until it does not. */
bool test_runner_is_there(pid_t pid);
void test_runner_await_gone(pid_t pid);

/* Opens a stream of the test's. */
struct runner_stream test_stream_open(struct test_runner *runner, struct test_stream *stream,
	enum mux_direction direction, enum mux_class class, uint64_t window);
void test_stream_put(struct test_stream *stream, struct span bytes, bool finishes);
void test_stream_await_end(struct test_runner *runner, struct test_stream *stream);
void test_stream_finish(struct test_stream *stream);

/* A process with its streams. */
struct test_exec {
	uint64_t id;
	struct test_stream in, out, err;
};
void test_exec_start(struct test_runner *runner, struct test_exec *exec, const char *const *argv,
	const char *const *env, const char *cwd);
void test_exec_shell(struct test_runner *runner, struct test_exec *exec, const char *script);
void test_exec_finish(struct test_exec *exec);
/* Waits until the process and all of its output have ended. */
const struct runner_event *test_exec_await(struct test_runner *runner, struct test_exec *exec);

#endif
