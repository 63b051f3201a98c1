/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_RUNNER_RUNNER_H
#define PROVIDERS_RUNNER_RUNNER_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/confine.h"
#include "base/guard.h"
#include "base/list.h"
#include "providers/mux/mux.h"
#include "providers/runner/worker.h"

/*
 * The program that runs in a sandbox, with the rights of its user (providers/runner/image.h). It
 * knows the link, processes, files and connections. It knows no carrier, no agent and no ACP. Only
 * the broker uses it. This header is for the files of this folder.
 *
 *    keeper ── runner ── spawner ── guard ── process
 *
 * The keeper (main.c) is the process that the carrier started. It holds no descriptor of the
 * channel. It continues a runner that was stopped, and ends the processes of a runner that was
 * killed.
 *
 * A runner that outlives its channel is not a child of the process that the carrier starts:
 *
 *     waiter      keeper ── runner ── …
 *
 * The carrier starts the waiter. The waiter holds no descriptor of the channel either, and ends
 * when the runner gives the channel up. For a new channel the carrier starts a new waiter, which
 * passes its descriptors to the runner (attach.c). The runner accepts them only if the other end
 * knows the key (channel.c).
 */
enum {
	RUNNER_RUNS_MAX = 256,
	RUNNER_REQUESTS_MAX = 4096,
	RUNNER_CONTENTS_MAX = 4, // requests whose content is in memory at once
	RUNNER_CONNECTIONS_MAX = 256,
	RUNNER_HELLO_MS = 60000,  // until the broker's HELLO
	RUNNER_GRACE_MS = 600000, // without a byte, unless the broker's HELLO gives another time
	RUNNER_ATTACHES_MAX = 4,  // new channels that have not yet shown the proof
	RUNNER_ATTACH_MS = 30000, // deadline for the proof
};

/* An event that the loop waits for. The list is built again for each turn. */
struct watch {
	void (*on_ready)(void *data, short events); // NULL: only wakes the loop
	void *data;
};

/* The state of a runner that outlives its channel (channel.c). */
struct channel_state {
	const char *name; // of the run; NULL: it ends with its channel
	int folder;       // the socket is there
	int listener;     // -1: none
	char key[RUNNER_KEY_SIZE];
	bool has_key;
	bool is_silent; // it is there, but no byte came from the broker for too long
	uint64_t last_attach;
	struct list attaches; // of struct attach
	size_t attach_count;
	uint64_t orphan_us;        // how long the runner lives on after an unannounced end
	bool is_suspend_announced; // the broker's machine suspends: its end of the channel is none
	uint64_t until_us;         // when it ends if it still has no channel
};

/* The folder of the run (alive.c). */
struct alive {
	const char *folder; // NULL: none
	int fd;             // the FIFO for orders; -1: none
	char line[64];      // the bytes of an order that have come so far
	size_t len;         // larger than the line: the order is too long
	bool is_unneeded;   // the broker knows that no process was left
};

struct runner {
	struct mux *mux;
	int in; // of the channel; -1: there is none
	int out;
	int waiter;       // the socket to the process that the carrier started; -1: none
	const char *home; // for HELLO; may be NULL
	struct channel_state channel;
	struct alive alive;
	int signal_fd;
	int spawner_socket;
	pid_t spawner;
	uint64_t grace_us;
	const char *why; // reason for ending; NULL: go on
	bool was_asked;  // the broker requested the end

	struct list runs; // of struct run
	size_t run_count;
	struct list requests; // of struct request, in order of arrival
	size_t request_count;
	size_t content_count;    // requests with content in memory
	struct list connections; // of struct connection
	size_t connection_count;
	struct confine *roots;
	struct worker *worker;

	struct pollfd *polls; // owned, as are the watches; for this turn
	struct watch *watches;
	size_t watch_count;
	size_t watch_capacity;
};

uint64_t runner_now_us(void);

/* Watches a descriptor during the next turn. */
void runner_watch(struct runner *runner, int fd, short events,
	void (*on_ready)(void *data, short events), void *data);

/* Sends a message; ends the runner if the broker does not read its messages. */
void runner_tell(struct runner *runner, const struct runner_message *message);
void runner_tell_failure(struct runner *runner, uint64_t id, const struct error *err);

/* Runs the loop; returns when the runner must end. */
void runner_loop(struct runner *runner);

/* HELLO, once in each channel. */
void runner_say_hello(struct runner *runner);

bool runner_read_number(struct span digits, uint64_t *out);

/* Replaces descriptors 0 to 2 by /dev/null. */
void runner_drop_standard(void);

/* ---- channel.c: life beyond the channel ---- */

/* `name` is NULL if the runner ends with its channel. */
bool channel_open(struct runner *runner, const char *name, struct error *err) ATTR_NODISCARD;
void channel_finish(struct runner *runner);
/* Reads the key and orphan-ms from the broker's HELLO, if it has them. */
void channel_take_hello(struct runner *runner, struct span text);
/*
 * Call it when the channel has ended or cannot be written to: ends the runner, or lets it go on
 * without a channel.
 */
void channel_lose(struct runner *runner);
/* Whether a broker was heard over the channel within its last heartbeats. */
bool channel_is_used(const struct runner *runner);
void channel_watch(struct runner *runner);
uint64_t channel_due_us(const struct runner *runner);
void channel_step(struct runner *runner); // ends what has reached its deadline

/* ---- alive.c: the folder of the run, for a later connection ---- */

/*
 * The keeper holds the run's folder while it has this descriptor, and the runner inherits it. -1 if
 * that fails: then do not start a runner, because others would think that it has ended.
 */
int alive_hold(const char *folder);
/* Waits for the order to end from now on. `folder` is borrowed; NULL: there is none. */
bool alive_open(struct runner *runner, const char *folder, struct error *err) ATTR_NODISCARD;
void alive_watch(struct runner *runner);
/*
 * After the end of all processes but `left` ones: removes the folder if the broker needs no proof
 * of the end.
 */
void alive_finish(struct runner *runner, size_t left);
void alive_tell_left(const char *folder); // some processes could not be ended; NULL is fine
/* Makes the folder of a run. False: nothing was made. */
bool alive_make(const char *folder) ATTR_NODISCARD;
/*
 * For the folder of another run. They do nothing, and nobody holds it, if another user owns it.
 * alive_order_end sends the order "over".
 */
bool alive_is_held(const char *folder);
void alive_order_end(const char *folder);
bool alive_has_left(const char *folder); // some of its processes could not be ended
void alive_remove(const char *folder);

/*
 * Asks the runner of another folder whether a broker uses it; otherwise it ends. `word` names the
 * question. Call it again while it answers ALIVE_SILENT; after alive_ask_end others can ask.
 */
struct alive_question {
	int held;          // -1: not asked yet
	bool has_turn;     // nobody else asks
	long long turn_ms; // until then it waits for somebody else's answer; 0: not begun
	char line[64];     // the bytes of an answer that have come so far
	size_t len;
};
enum alive_answer {
	ALIVE_SILENT,
	ALIVE_USED,
	ALIVE_ENDED,   // nobody holds the folder
	ALIVE_UNKNOWN, // it cannot be asked
};
enum alive_answer alive_ask(struct alive_question *question, const char *folder, const char *word);
void alive_ask_end(struct alive_question *question, const char *folder);

/* ---- begin.c, place.c: what scripts do elsewhere ---- */

/*
 * Does the work of providers/remote/start.sh in a container that shows this program: reads which
 * earlier runs to end, ends them, makes the folder of the run of this token and prints the answers.
 * False: nothing may be started. Otherwise `out_folder` is the run's folder; "": it has none.
 */
bool begin_run(const char *token, char *out_folder, size_t size) ATTR_NODISCARD;

/*
 * The program that makes the folder of a workspace, with the arguments and the answers of
 * providers/ssh/remote/root_add.sh. Returns its exit status.
 */
int place_root(char **words);

/* The program of a waiter (attach.c). Returns its exit status. */
int attach_run(const char *name);
void attach_wait(int socket); // until the other end of the socket is closed

/* ---- run.c: processes ---- */

void run_start(struct runner *runner, const struct runner_message *message);
void run_order(struct runner *runner, const struct runner_message *message);
void runs_watch(struct runner *runner); // also frees finished ones
void runs_end(struct runner *runner);
bool runs_are_over(const struct runner *runner);
/* Reads the spawner's reports of killed guards. False: the spawner has ended. */
bool runs_read_losses(struct runner *runner);

/* ---- terminal.c ---- */

/*
 * Returns our side of a new terminal, which is non-blocking, or -1. *out_theirs is the other side,
 * for a process. Our side reports EIO once no process has the other one open.
 */
int terminal_open(
	const struct runner_size *size, int *out_theirs, struct error *err) ATTR_NODISCARD;
/* The kernel tells the terminal's foreground by SIGWINCH. */
void terminal_resize(int own, const struct runner_size *size);
bool terminal_size_is_valid(const struct runner_size *size);

/* ---- connect.c: connections to programs here ---- */

void connection_start(struct runner *runner, const struct runner_message *message);
void connections_watch(struct runner *runner); // also frees finished ones
void connections_end(struct runner *runner);

/* ---- request.c: files ---- */

void request_start(struct runner *runner, const struct runner_message *message);
void request_cancel(struct runner *runner, uint64_t id);
void requests_step(struct runner *runner); // gives free places to waiting requests
void requests_end(struct runner *runner);  // drops requests that no thread has begun

/*
 * Locks the program's own file while the descriptor is open, also in children, and removes unused
 * programs beside it.
 */
int program_hold(void);

/* Writes the process's build id to `text` in hexadecimal; "" if it has none. */
enum { BUILD_ID_SIZE = 41 };
void build_id_read(char text[BUILD_ID_SIZE]);

/*
 * Ends every process below the caller. The caller must be a subreaper with one thread. It must have
 * closed its sockets to the spawner and the guards, so that these first end the processes
 * themselves. Returns how many are left.
 */
size_t family_end(void);

#endif
