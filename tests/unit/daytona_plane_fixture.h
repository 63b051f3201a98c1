/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_DAYTONA_PLANE_FIXTURE_H
#define TESTS_UNIT_DAYTONA_PLANE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "providers/daytona/box.h"

/*
 * Implements the calls of providers/daytona/api.h without a service: its sandboxes have the states
 * that a test sets, and count the calls. Linked before the library.
 */
enum { PLANE_MAX = 40 };

struct plane_box {
	char name[DAYTONA_NAME_SIZE];
	bool exists;
	const char *state, *desired;
	const char *later;   // the state from the second request on; NULL: the same
	const char *reason;  // errorReason
	const char *started; // the state after a start; NULL: "started"
	bool is_recoverable, is_foreign, is_network_open, has_odd_labels;
	const char *act_reason; // acts fail with it; NULL: they do not
	int delete_status; // a delete fails with DAYTONA_UNAUTHORIZED and this status; 0: it works
	/*
	 * The error of a create, and the state in which the sandbox exists afterwards
	 * (create_state), if it does.
	 */
	const char *create_reason;
	enum error_code create_code;
	int create_fails;         // this many creates do; 0: each one
	const char *create_state; // NULL: there is none
	int created_after;        // number of looks until then; 0: at once
	const char *after_create; // of a successful create, at the next look; NULL: "started"
	struct daytona_sandbox settings; // of the sandbox: minutes, image and the like
	const char *network_reason;      // setting the network fails with this reason
	bool keeps_network;              // setting it succeeds, but changes nothing
	const char *set_reason;          // setting an interval or the ingress fails with this error
	int intervals[4], publics;       // how often they were set
	int gets, creates, starts, stops, archives, deletes, recovers, networks;
	int accesses; // requests for tokens; none is given
};

struct plane {
	struct ev_loop *loop;
	const char *owner; // the label of every box that is not foreign; NULL: "me"
	struct plane_box boxes[PLANE_MAX];
	size_t count;
	bool hangs;         // no call is answered
	bool may_be_done;   // a call that failed may have been done
	const char *listed; // the only name in a list; NULL: none
	int lists;
	int status; // of the last act
};

extern struct plane plane;

struct plane_box *plane_add(const char *name, const char *state); // NULL state: it is not there

/* A sandbox, and the outcome of the order on it. */
struct told {
	struct daytona_box *box;
	const struct plane_box *plane;
	bool is_over;
	bool is_ok;
	struct error err;
	int warnings;
	char warning[512]; // the first
};

/* Its listeners: data is one of those. */
void told_done(void *data, const struct error *err);
void told_warning(void *data, const char *text);

/* Runs the plane's loop until the order has ended. */
void told_wait(const struct told *told);

#endif
