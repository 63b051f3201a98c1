/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_DAYTONA_SERVER_FIXTURE_H
#define TESTS_UNIT_DAYTONA_SERVER_FIXTURE_H

#include <ev.h>
#include <stddef.h>

/*
 * An HTTP server on the test's own loop that answers what it was told to, one answer a request, in
 * their order, and keeps what it was asked. A test that asks more often than it said hangs there.
 */
enum server_then { SERVER_KEEP, SERVER_CLOSE, SERVER_HANG };

void server_begin(struct ev_loop *loop);
void server_end(void);
int server_port(void);

/* The next answer, byte for byte, and what happens to the connection after it. */
void server_will(const char *bytes, enum server_then then);

/* A whole answer; `headers` are lines with their ends, or "". */
void server_will_answer(int status, const char *headers, const char *body);

/* `size` bytes of `piece` again and again after a status and no length. */
void server_will_flood(const char *head, const char *piece, size_t size);

size_t server_count(void);                 // requests so far
const char *server_request(size_t number); // from 0; head and body as they came
size_t server_connections(void);           // accepted so far
size_t server_open(void);                  // of those, that still stand

#endif
