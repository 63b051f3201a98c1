/* SPDX-License-Identifier: MIT */
#ifndef TESTS_ATTACK_TRICKS_H
#define TESTS_ATTACK_TRICKS_H

/*
 * Attacks that a shell cannot make, by name, with an argument: the program of the suite runs itself
 * with them. Returns an exit status.
 */
enum trick_status {
	TRICK_DONE = 0,    // the attack has succeeded
	TRICK_REFUSED = 1, // EPERM, EACCES, or the target does not exist
	TRICK_FAILED = 2,  // another error, named on stderr; it proves nothing about confinement
	TRICK_LACKS = 77,  // this kernel has no such thing
};
int trick_run(const char *name, const char *argument);

#endif
