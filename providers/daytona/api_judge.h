/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_API_JUDGE_H
#define PROVIDERS_DAYTONA_API_JUDGE_H

#include "providers/daytona/api.h"
#include "providers/daytona/http.h"

/* Decides what the end of a try means, by the rules of api.h. Without state and loop. */

enum daytona_verdict {
	DAYTONA_VERDICT_DONE,  // there is an answer to read
	DAYTONA_VERDICT_AGAIN, // after a pause; the error is reported if no time is left for
	                       // it
	DAYTONA_VERDICT_FAILED
};

struct daytona_try {
	const char *what;  // "POST /sandbox/s1/start"
	const char *host;  // the service's host
	const char *key;   // must never appear in a text
	bool is_creation;  // a 404 does not concern a sandbox
	bool may_be_twice; // doing it twice does no harm
	int tries;         // including this one
};

/* Sets err unless the verdict is DONE. */
enum daytona_verdict daytona_judge(
	const struct daytona_try *tried, const struct http_answer *answer, struct error *err);

/* Whether a failed call may have taken effect: the answer was lost, or does not say. */
bool daytona_may_be_done(const struct http_answer *answer);

/*
 * How long to wait after this number of tries (1 or more). The first pause doubles with each try,
 * up to 16 times its length. We wait a random part of it, between half and all (`random` is any
 * number), but at least as long as the service asked for.
 */
long long daytona_pause_ms(
	long long first_ms, int tries, unsigned int random, const struct http_answer *answer);

/*
 * DAYTONA_UNAVAILABLE for an unusable answer; `why` says what is wrong with it. Quotes its first
 * bytes unless it may contain a secret.
 */
bool daytona_set_unreadable(struct error *err, const struct daytona_try *tried,
	const struct http_answer *answer, bool is_secret, const char *why);

#endif
