/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_DIR_TRANSPORT_H
#define TESTS_UNIT_DIR_TRANSPORT_H

#include "sync/transport.h"

/*
 * A transport to a directory of this machine, which is the runtime: what the real
 * ones do with git and a sandbox is done here by the functions for local directories. A test
 * gets in between by the hooks.
 */
struct dir_transport_hooks {
	void (*before_deliver)(void *data); // on the loop
	void *data;
	int fail_collects, fail_delivers; // how many of the next ones fail
	const char *deliver_reason;       // of a delivery that fails; NULL: none
	bool is_lasting;                  // what a delivery could not do it never can
	int delivers;                     // how many were asked for
	bool holds;                       // what is asked for waits for dir_transport_release
	struct transport *held;
	const char *const *left; // paths that the next collects leave out, to NULL; or NULL
	bool commits_left;       // as by the next collects
};
extern struct dir_transport_hooks dir_transport_hooks;

transport_create dir_transport_create;

/* What is held goes on; the next may be held again. */
void dir_transport_release(void);

#endif
