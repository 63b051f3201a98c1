/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_DAYTONA_SERVER_FIXTURE_H
#define TESTS_UNIT_DAYTONA_SERVER_FIXTURE_H

#include <ev.h>
#include <stddef.h>

/*
 * An HTTP server on the test's own loop. It gives the answers that the test has queued, one per
 * request, in order, and keeps the requests. If a test sends more requests than it has queued
 * answers, it hangs.
 */
enum server_then { SERVER_KEEP, SERVER_CLOSE, SERVER_HANG };

void server_begin(struct ev_loop *loop);
void server_end(void);
int server_port(void);

/* Queues an answer, byte for byte, and says what the server does with the connection afterwards. */
void server_will(const char *bytes, enum server_then then);

/* Queues a complete answer; `headers` are lines with their ends, or "". */
void server_will_answer(int status, const char *headers, const char *body);

/* Queues an answer without a length: `head`, then `size` bytes, which repeat `piece`. */
void server_will_flood(const char *head, const char *piece, size_t size);

size_t server_count(void);                 // number of requests so far
const char *server_request(size_t number); // from 0; head and body as they came
size_t server_connections(void);           // number accepted so far
size_t server_open(void);                  // number that are still open

#endif
