/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_DIR_TRANSPORT_H
#define TESTS_UNIT_DIR_TRANSPORT_H

#include "sync/transport.h"

/*
 * A transport whose runtime is a directory of this machine. It uses the functions for local
 * directories instead of git and a sandbox. With the hooks a test can act in between.
 */
struct dir_transport_hooks {
	void (*before_deliver)(void *data); // on the loop
	void *data;
	int fail_collects, fail_delivers; // how many of the next ones fail
	const char *deliver_reason;       // of a delivery that fails; NULL: none
	bool is_lasting;                  // what a delivery could not do it never can
	int delivers;                     // how many were asked for
	bool holds;                       // operations wait for dir_transport_release
	struct transport *held;
	const char *const *left; // paths that the next collects leave out, to NULL; or NULL
	bool commits_left;       // as by the next collects
};
extern struct dir_transport_hooks dir_transport_hooks;

transport_create dir_transport_create;

/* Lets the held operation go on; the next one may be held again. */
void dir_transport_release(void);

#endif
