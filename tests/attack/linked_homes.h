/* SPDX-License-Identifier: MIT */
#ifndef TESTS_ATTACK_LINKED_HOMES_H
#define TESTS_ATTACK_LINKED_HOMES_H

/*
 * Makes a separate machine in the namespaces of a child, where /home is a link to /var/home, and
 * makes the files of a cell there. `folder` is a folder to mount on.
 */
enum linked_homes {
	LINKED_HOMES_HIDDEN,  // no name leads to the file of another user
	LINKED_HOMES_SHOWN,   // one does
	LINKED_HOMES_FAILED,  // stderr says why
	LINKED_HOMES_UNKNOWN, // no such machine can be made here
};
enum linked_homes linked_homes(const char *folder);

#endif
