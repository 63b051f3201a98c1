/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_API_JUDGE_H
#define PROVIDERS_DAYTONA_API_JUDGE_H

#include "providers/daytona/api.h"
#include "providers/daytona/http.h"

/* What the end of a try means. No state, no loop: the rules of api.h and nothing else. */

enum daytona_verdict {
	DAYTONA_VERDICT_DONE,  // an answer to read
	DAYTONA_VERDICT_AGAIN, // after a pause; the error is what is told when there is no time for
	                       // it
	DAYTONA_VERDICT_FAILED
};

struct daytona_try {
	const char *what;  // "POST /sandbox/s1/start"
	const char *host;  // of the service
	const char *key;   // never to be repeated
	bool is_creation;  // 404 is of something else than a sandbox
	bool may_be_twice; // to do it again does no harm
	int tries;         // this one included
};

/* Sets err unless it is done. */
enum daytona_verdict daytona_judge(
	const struct daytona_try *tried, const struct http_answer *answer, struct error *err);

/* Whether what failed may be done all the same: the answer was lost, or does not say. */
bool daytona_may_be_done(const struct http_answer *answer);

/*
 * How long to wait after so many tries, 1 or more: doubled each time to 16 times the first
 * pause, of that a random part between the half and the whole (`random` is any number), and
 * not less than what the service asked for.
 */
long long daytona_pause_ms(
	long long first_ms, int tries, unsigned int random, const struct http_answer *answer);

/* DAYTONA_UNAVAILABLE: the answer is none; `why` is what was wrong with it. Its first bytes are
 * repeated unless it may hold a secret. */
bool daytona_set_unreadable(struct error *err, const struct daytona_try *tried,
	const struct http_answer *answer, bool is_secret, const char *why);

#endif
