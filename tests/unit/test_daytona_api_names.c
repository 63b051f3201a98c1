/* SPDX-License-Identifier: MIT */
#include "tests/unit/daytona_api_fixture.h"

#include <netdb.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fd.h"

/*
 * A name that nobody resolves. The program exports this getaddrinfo (meson.build), and libcurl
 * finds it instead of the system's.
 */
static sem_t asked, allowed, left;

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the system's are reserved */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
	struct addrinfo **out_addresses)
{
	sem_post(&asked);
	sem_wait(&allowed);
	sem_post(&left);
	return EAI_NONAME;
}

static int setup(void **state)
{
	api_setup(state);
	config.url = "https://nobody-knows.test/api";
	api_again();
	return 0;
}

/* The resolving thread runs on alone; it ends before the program does. */
static void let_go(int threads)
{
	for (int i = 0; i < threads; i++) {
		sem_post(&allowed);
		sem_wait(&left);
	}
}

static void wait_asked(void)
{
	long long end_ms = clock_now_ms() + 60000;
	while (sem_trywait(&asked) != 0 && clock_now_ms() < end_ms) {
		loop_for_ms(1);
	}
	assert_true(clock_now_ms() < end_ms);
}

static void test_a_name_that_is_being_resolved_holds_up_neither_loop_nor_end(void **state)
{
	ask();
	wait_asked();
	daytona_api_destroy(api); // if it waited for the thread, it would wait for ever
	api = NULL;
	assert_int_equal(outcome.count, 0);
	let_go(1);
}

static void test_a_name_that_is_not_resolved_in_time_is_a_deadline(void **state)
{
	config.timeout_ms = 150;
	api_again();
	ask();
	wait_asked();
	expect_failed("TIMEOUT_EXCEEDED", "GET /sandbox/p1 at nobody-knows.test");
	let_go(1);
}

static void test_a_name_that_is_not_known_is_told(void **state)
{
	config.pause_ms = 120000; // too long to try again
	api_again();
	sem_post(&allowed);
	ask();
	expect_failed("DAYTONA_UNAVAILABLE", "nobody-knows.test");
	sem_wait(&left);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, api_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_name_that_is_being_resolved_holds_up_neither_loop_nor_end),
		TEST(test_a_name_that_is_not_resolved_in_time_is_a_deadline),
		TEST(test_a_name_that_is_not_known_is_told),
	};
	sem_init(&asked, 0, 0);
	sem_init(&allowed, 0, 0);
	sem_init(&left, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
