/* SPDX-License-Identifier: MIT */
/*
 * Measures one route and prints one JSON object:
 *
 *     load_client start -- COMMAND [ARG...]
 *     load_client open -- COMMAND [ARG...]
 *     load_client echo SHAPE COUNT -- COMMAND [ARG...]
 *     load_client stream SHAPE COUNT -- COMMAND [ARG...]
 *     load_client crowd SHAPE COUNT SESSIONS -- COMMAND [ARG...]
 *
 * COMMAND is the load agent, or a relay that starts it. Every byte that comes
 * back is compared with what must come, and a difference is a failure: what
 * loses, changes or reorders messages has no speed.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/route.h"
#include "tests/bench/samples.h"
#include "tests/bench/shape.h"

enum { DEADLINE_SECONDS = 120, READ_SIZE = 64 * 1024, WARM_UP_PART = 10 };

struct job {
	const char *shape;
	unsigned count;    // measured
	unsigned warm_up;  // before that
	unsigned sessions; // that are open, and echo in turns
	struct route route;
};

struct sample {
	uint64_t wall_ns;
	uint64_t cpu_ns; // of the route's first process
};

static struct sample sample_now(const struct route *route)
{
	return (struct sample){.wall_ns = now_ns(), .cpu_ns = route_cpu_ns(route)};
}

/* What must come next: `left` numbered lines, and then the answer. */
struct expected {
	struct line *line;
	size_t at; // in the line, or in the answer once no line is left
	unsigned number;
	unsigned left;
	char answer[128];
};

static bool is_different(const char *got, const char *wanted, size_t len, unsigned number)
{
	if (memcmp(got, wanted, len) == 0) {
		return false;
	}
	size_t same = 0;
	while (got[same] == wanted[same]) {
		same++;
	}
	const int shown = (int)(len - same < 80 ? len - same : 80);
	(void)fprintf(stderr, "load_client: message %u differs: got \"%.*s\", wanted \"%.*s\"\n",
		number - LINE_FIRST_NUMBER, shown, got + same, shown, wanted + same);
	return true;
}

static bool expected_take(struct expected *expected, const char *data, size_t len)
{
	while (len > 0) {
		const bool in_line = expected->left > 0;
		const char *wanted = in_line ? expected->line->data : expected->answer;
		const size_t size = in_line ? expected->line->len : strlen(expected->answer);
		size_t part = size - expected->at;
		part = part < len ? part : len;
		if (part == 0) {
			(void)fprintf(stderr, "load_client: more came than was sent\n");
			return false;
		}
		if (is_different(data, wanted + expected->at, part, expected->number)) {
			return false;
		}
		data += part;
		len -= part;
		expected->at += part;
		if (in_line && expected->at == size) {
			expected->at = 0;
			expected->left--;
			line_set_number(expected->line, ++expected->number);
		}
	}
	return true;
}

static bool expected_is_complete(const struct expected *expected)
{
	return expected->left == 0 && expected->at == strlen(expected->answer);
}

/* Reads until everything that is expected has come, and checks that nothing else comes. */
static bool expected_read(struct expected *expected, int fd)
{
	static char data[READ_SIZE];

	while (!expected_is_complete(expected)) {
		const ssize_t got = read(fd, data, sizeof(data));
		if (got <= 0) {
			(void)fprintf(stderr, "load_client: the output ended before message %u\n",
				expected->number - LINE_FIRST_NUMBER);
			return false;
		}
		if (!expected_take(expected, data, (size_t)got)) {
			return false;
		}
	}
	return true;
}

/* Sends a prompt that streams `count` updates, and waits for its answer. */
static bool run_prompt(struct job *job, struct line *line, unsigned count)
{
	char prompt[512];
	struct expected expected = {.line = line, .number = LINE_FIRST_NUMBER, .left = count};
	const unsigned id = ++job->route.last_id;

	const int len = snprintf(prompt, sizeof(prompt),
		"{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"session/prompt\",\"params\":"
		"{\"sessionId\":\"%s\",\"prompt\":[{\"type\":\"text\",\"text\":\"stream %s "
		"%u\"}]}}\n",
		id, job->route.session, job->shape, count);
	(void)snprintf(expected.answer, sizeof(expected.answer),
		"{\"jsonrpc\":\"2.0\",\"id\":%u,\"result\":{\"stopReason\":\"end_turn\"}}\n", id);
	line_set_number(line, LINE_FIRST_NUMBER);
	return write_all(job->route.in, prompt, (size_t)len) &&
	       expected_read(&expected, job->route.out);
}

static bool measure_stream(struct job *job)
{
	struct line line;

	if (!line_init(&line, job->shape, LINE_UPDATE, job->route.session)) {
		(void)fprintf(stderr, "load_client: no shape \"%s\"\n", job->shape);
		return false;
	}
	bool fine = run_prompt(job, &line, job->warm_up);
	const struct sample before = sample_now(&job->route);
	fine = fine && run_prompt(job, &line, job->count);
	const struct sample after = sample_now(&job->route);
	const double seconds = (double)(after.wall_ns - before.wall_ns) / 1e9;
	const double bytes = (double)line.len * job->count;
	line_finish(&line);
	if (fine) {
		(void)printf("{\"messages\": %u, \"seconds\": %.6f, \"mib_per_s\": %.3f, "
			     "\"messages_per_s\": %.1f, \"cpu_us\": %.3f}\n",
			job->count, seconds, bytes / seconds / 1048576, job->count / seconds,
			(double)(after.cpu_ns - before.cpu_ns) / 1e3 / job->count);
	}
	return fine;
}

static bool echo_once(struct job *job, struct line *request, struct line *answer, unsigned number)
{
	struct expected expected = {.line = answer, .number = number, .left = 1};

	line_set_number(request, number);
	line_set_number(answer, number);
	return write_all(job->route.in, request->data, request->len) &&
	       expected_read(&expected, job->route.out);
}

/* The messages that one session sends and gets. */
struct pair {
	struct line request;
	struct line answer;
};

static void pairs_free(struct pair *pairs, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		line_finish(&pairs[i].request);
		line_finish(&pairs[i].answer);
	}
	free(pairs);
}

static void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (memory == NULL) {
		abort();
	}
	return memory;
}

/*
 * Makes the lines of all sessions; the first session is already open. NULL: the reason is on
 * stderr.
 */
static struct pair *pairs_make(struct job *job)
{
	struct pair *pairs = allocate(job->sessions, sizeof(*pairs));

	for (unsigned i = 0; i < job->sessions; i++) {
		if (i > 0 && !route_open_session(&job->route)) {
			pairs_free(pairs, i);
			return NULL;
		}
		if (!line_init(&pairs[i].request, job->shape, LINE_REQUEST, job->route.session) ||
			!line_init(&pairs[i].answer, job->shape, LINE_ANSWER, job->route.session)) {
			(void)fprintf(stderr, "load_client: no shape \"%s\"\n", job->shape);
			pairs_free(pairs, i);
			return NULL;
		}
	}
	return pairs;
}

/* Makes round trips one after the other, with the sessions in turn; the first ones only warm up. */
static bool echo_all(struct job *job, struct pair *pairs, uint64_t *out_ns)
{
	for (unsigned i = 0; i < job->warm_up + job->count; i++) {
		struct pair *pair = &pairs[i % job->sessions];
		const uint64_t before = now_ns();
		if (!echo_once(job, &pair->request, &pair->answer, LINE_FIRST_NUMBER + i)) {
			return false;
		}
		if (i >= job->warm_up) {
			out_ns[i - job->warm_up] = now_ns() - before;
		}
	}
	return true;
}

static bool measure_echo(struct job *job)
{
	struct pair *pairs = pairs_make(job);

	if (pairs == NULL) {
		return false;
	}
	uint64_t *ns = allocate(job->count, sizeof(*ns));
	const uint64_t cpu_before = route_cpu_ns(&job->route);
	const bool fine = echo_all(job, pairs, ns);
	const uint64_t cpu = route_cpu_ns(&job->route) - cpu_before;
	if (fine) {
		samples_sort(ns, job->count);
		(void)printf("{\"messages\": %u, \"p50_us\": %.3f, \"p99_us\": %.3f, "
			     "\"cpu_us\": %.3f}\n",
			job->count, samples_percentile_us(ns, job->count, 50),
			samples_percentile_us(ns, job->count, 99),
			(double)cpu / 1e3 / (job->warm_up + job->count));
	}
	free(ns);
	pairs_free(pairs, job->sessions);
	return fine;
}

/* Prints how long the start took: to the answer of `initialize`, or to a session. */
static bool measure_start(struct job *job)
{
	(void)printf("{\"start_ms\": %.3f}\n", (double)(now_ns() - job->route.started_ns) / 1e6);
	return true;
}

static const struct mode {
	const char *name;
	int words; // after the name
	bool has_session;
	bool (*measure)(struct job *job);
} modes[] = {
	{"start", 0, false, measure_start},
	{"open", 0, true, measure_start},
	{"echo", 2, true, measure_echo},
	{"stream", 2, true, measure_stream},
	{"crowd", 3, true, measure_echo},
};

static bool run(const struct mode *mode, struct job *job, char **command)
{
	if (!route_start(&job->route, command)) {
		return false;
	}
	const bool fine = route_initialize(&job->route) &&
	                  (!mode->has_session || route_open_session(&job->route)) &&
	                  mode->measure(job);
	return route_stop(&job->route) && fine;
}

static void on_deadline(int signal_number)
{
	static const char text[] = "load_client: nothing came for too long\n";

	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(1);
}

int main(int argc, char **argv)
{
	struct job job = {0};

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGALRM, on_deadline);
	(void)alarm(DEADLINE_SECONDS);
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		const struct mode *mode = &modes[i];
		const int command = mode->words + 3;
		if (strcmp(mode->name, argv[1]) != 0 || argc <= command ||
			strcmp(argv[command - 1], "--") != 0) {
			continue;
		}
		job.shape = argv[2];
		job.count = (unsigned)strtoul(argv[3], NULL, 10);
		job.warm_up = job.count / WARM_UP_PART + 1;
		job.sessions = mode->words > 2 ? (unsigned)strtoul(argv[4], NULL, 10) : 1;
		if (job.sessions == 0) {
			continue;
		}
		return run(mode, &job, argv + command) ? 0 : 1;
	}
	(void)fprintf(stderr, "load_client: usage: load_client start|open|echo|stream|crowd "
			      "[SHAPE COUNT [SESSIONS]] -- COMMAND [ARG...]\n");
	return 2;
}
