/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/conformance/conformance.h"
#include "providers/local/local.h"
#include "providers/local/cell/inside.h"
#include "tests/conformance/celled.h"
#include "tests/conformance/clouded.h"
#include "tests/conformance/connected.h"
#include "tests/conformance/contained.h"
#include "tests/conformance/subjects.h"
#include "tests/conformance/world.h"

/*
 * One table of cases, run against the provider named on the command line:
 * conformance local ["PATTERN OF CASES"]
 * First those that acp-broker test-provider runs as well, then those that need this world.
 */
static const struct world_table *const tables[] = {&life_cases, &exec_cases, &kill_cases,
	&suspend_cases, &file_cases, &confine_cases, &terminal_cases, &toolhost_file_cases,
	&policy_cases};

static const struct subject *find_subject(const char *name)
{
	for (size_t i = 0; i < subject_count; i++) {
		if (strcmp(subjects[i].name, name) == 0) {
			return &subjects[i];
		}
	}
	return NULL;
}

/* The cmocka state of the test; a case only sees the world. */
struct running_case {
	struct world *world;
	const struct world_table *table; // NULL: one of conformance_cases
	const struct world_case *world_case;
	const struct conformance_case *shared;
	bool has_passed;
};

static bool has_failed; // an earlier case has failed

/*
 * A failed case leaves pointers into its stack frame, which no longer exists. So nothing can be
 * destroyed, and nothing else can run beside it. The guards end the processes.
 */
static _Noreturn void end_failed(void)
{
	connected_finish();
	clouded_finish();
	contained_finish();
	fflush(stdout);
	_exit(1);
}

static int set_up(void **state)
{
	struct running_case *running = *state;
	void *world = running->world;
	if (has_failed) {
		fprintf(stderr, "the cases after the failed one are not run\n");
		end_failed();
	}
	int status = world_set_up(&world);
	if (status == 0 && running->table && running->table->begin) {
		running->table->begin(running->world);
	}
	return status;
}

/*
 * As a subreaper we inherit hundreds of processes that have ended, and every look at /proc would
 * visit them.
 */
static void reap_strangers(const struct subject *subject)
{
	while (subject->is_marked && waitpid(-1, NULL, WNOHANG) > 0) {
	}
}

static int tear_down(void **state)
{
	struct running_case *running = *state;
	void *world = running->world;
	has_failed = !running->has_passed;
	if (has_failed) {
		return 0;
	}
	if (running->table && running->table->end) {
		running->table->end(running->world);
	}
	int status = world_tear_down(&world);
	reap_strangers(running->world->subject);
	return status;
}

static bool wait_shared(void *data, const bool *flag, struct error *err)
{
	world_run_until(data, flag);
	return true;
}

static void run_shared(struct world *world, const struct conformance_case *shared)
{
	struct error err;
	struct conformance_place place = {.loop = world->loop,
		.sandbox = world->sandbox,
		.root = world->root,
		.wait = wait_shared,
		.data = world};
	if (!shared->run(&place, &err)) {
		fail_msg("%s", err.text);
	}
}

static void run_case(void **state)
{
	struct running_case *running = *state;
	if (running->shared) {
		run_shared(running->world, running->shared);
	} else {
		running->world_case->run(running->world);
	}
	running->has_passed = true;
}

static struct CMUnitTest test_of(const char *name, struct running_case *running)
{
	return (struct CMUnitTest){.name = name,
		.test_func = run_case,
		.setup_func = set_up,
		.teardown_func = tear_down,
		.initial_state = running};
}

static bool is_skipped(const struct subject *subject, const char *name)
{
	const struct skipped_case *skipped = subject->skipped;
	for (; skipped && skipped->name; skipped++) {
		if (strcmp(skipped->name, name) == 0) {
			printf("not run: %s: %s\n", name, skipped->why);
			return true;
		}
	}
	return false;
}

static size_t list_tests(struct world *world, struct CMUnitTest *tests, struct running_case *cases)
{
	size_t count = 0;
	for (size_t i = 0; i < conformance_case_count; i++, count++) {
		const struct conformance_case *shared = &conformance_cases[i];
		cases[count] = (struct running_case){.world = world, .shared = shared};
		tests[count] = test_of(shared->text, &cases[count]);
	}
	for (size_t t = 0; t < ARRAY_LENGTH(tables); t++) {
		for (size_t i = 0; i < tables[t]->count; i++) {
			const struct world_case *world_case = &tables[t]->cases[i];
			if (is_skipped(world->subject, world_case->name)) {
				continue;
			}
			cases[count] = (struct running_case){
				.world = world, .table = tables[t], .world_case = world_case};
			tests[count] = test_of(world_case->name, &cases[count]);
			count++;
		}
	}
	return count;
}

static int run_all(struct world *world)
{
	size_t count = conformance_case_count;
	for (size_t t = 0; t < ARRAY_LENGTH(tables); t++) {
		count += tables[t]->count;
	}
	struct CMUnitTest *tests = mem_alloc_zero(count * sizeof(*tests));
	struct running_case *cases = mem_alloc_zero(count * sizeof(*cases));
	count = list_tests(world, tests, cases);
	/*
	 * Sets up and tears down once, so that descriptors that stay open for good, such as the
	 * pool's, do not count as a leak of a case.
	 */
	void *warm = world;
	world_set_up(&warm);
	world_tear_down(&warm);
	int failed = _cmocka_run_group_tests(world->subject->name, tests, count, NULL, NULL);
	free(cases);
	free(tests);
	return failed;
}

/*
 * As a subreaper we are the parent of all processes that were left behind. Those that end with
 * their connection need a moment.
 */
static int children_left(bool ends_later)
{
	enum { PAUSE_US = 10000, PAUSES = 1000 };
	int dead = 0;
	pid_t pid;
	for (int i = 0; (pid = waitpid(-1, NULL, WNOHANG)) >= 0; i++) {
		dead += pid > 0;
		if (pid == 0 && (!ends_later || i == PAUSES)) {
			break;
		}
		usleep(PAUSE_US);
	}
	if (pid == 0 || errno != ECHILD || (dead > 0 && !ends_later)) {
		fprintf(stderr, "processes were left behind\n");
		return 1;
	}
	return 0;
}

enum { EXIT_SKIPPED = 77 }; // for meson

/* State that a careless parent may leave to the program; no process of a sandbox may inherit it. */
static struct spawner *create_spawner(void)
{
	static const int signals[] = {SIGINT, SIGQUIT, SIGHUP, SIGCHLD};
	struct error err;
	sigset_t blocked;
	sigset_t before;
	sigemptyset(&blocked);
	for (size_t i = 0; i < ARRAY_LENGTH(signals); i++) {
		signal(signals[i], SIG_IGN);
	}
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	struct spawner *spawner = spawner_create(&err);
	sigprocmask(SIG_SETMASK, &before, NULL);
	for (size_t i = 0; i < ARRAY_LENGTH(signals); i++) {
		signal(signals[i], SIG_DFL);
	}
	return spawner;
}

int main(int argc, char **argv)
{
	if (cell_is_asked(argc, argv)) {
		cell_run();
	}
	if (argc > 1 && strncmp(argv[1], "cell", 4) == 0 && !celled_enter()) {
		return 2;
	}
	struct spawner *spawner = create_spawner();
	signal(SIGPIPE,
		SIG_IGN); // as in every program that uses a provider, but no process may inherit it
	const struct subject *subject = argc == 2 || argc == 3 ? find_subject(argv[1]) : NULL;
	if (!spawner || !subject) {
		fprintf(stderr, "usage: conformance PROVIDER [PATTERN]\n");
		return 2;
	}
	if (strcmp(subject->backend, "daytona") == 0 && !clouded_can_start()) {
		fprintf(stderr, "%s: its npm packages are not installed: run npm ci there\n",
			CLOUDED_FOLDER);
		return getenv("ACP_INTEROP_REQUIRED") ? 1 : EXIT_SKIPPED;
	}
	const char *lacking = strcmp(subject->backend, "container") == 0 ? contained_start() : NULL;
	if (lacking) {
		fprintf(stderr, "%s\n", lacking);
		contained_finish();
		return EXIT_SKIPPED;
	}
	if (argc == 3) {
		cmocka_set_test_filter(argv[2]);
	}
	struct world world = {.subject = subject, .loop = ev_loop_new(EVFLAG_AUTO)};
	const char *preload = getenv("LD_PRELOAD");
	world.is_under_valgrind = preload && strstr(preload, "vgpreload");
	spawner_attach(spawner, world.loop);
	world.context = (struct provider_context){.loop = world.loop,
		.spawner = spawner,
		.pool = pool_create(world.loop),
		.environment = (const char *const *)environ};
	int failed = run_all(&world);
	if (failed != 0) {
		end_failed();
	}
	connected_finish();
	clouded_finish();
	contained_finish();
	pool_destroy((struct pool *)world.context.pool);
	spawner_destroy(spawner);
	ev_loop_destroy(world.loop);
	return children_left(subject->is_marked) != 0;
}
