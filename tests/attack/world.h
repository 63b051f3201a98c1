/* SPDX-License-Identifier: MIT */
#ifndef TESTS_ATTACK_WORLD_H
#define TESTS_ATTACK_WORLD_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * The machine that is attacked: a user with a home, keys, a broker's records, sockets, and a
 * process. The folder lies where every user may look, not in /tmp, unless only that can be written.
 */
struct world {
	char folder[PATH_MAX];
	char program[PATH_MAX]; // a copy of this one, which everybody may execute
	char temporary[64];     // a file in /tmp; world_has_evil calls it "temporary"
	uid_t uid;              // of the user who owns it and whom a cell works for
	gid_t gid;
	int sockets[7]; // listening
	char port[8];   // of the one on 127.0.0.1
	char names[8];  // of a name server there
	pid_t name_server;
};

/* As root the user is another one: who makes and removes it is not always who lives in it. */
void world_make(struct world *world);
void world_remove(const struct world *world);

/* Opens the sockets; as root, and only then, this process may become the user before. */
void world_enter(struct world *world, bool becomes_user);

/* Ends what world_enter has started. */
void world_leave(const struct world *world);

/*
 * Makes a world, runs the suite in a process that has entered it, and removes the world. Returns
 * the status to exit with: the suite's, or 77 (skipped) if it was to become the user without being
 * root.
 */
int world_main(struct world *world, bool becomes_user, int (*run_suite)(void));

/* In the world's folder. */
void world_path(const struct world *world, const char *name, char out[PATH_MAX]);

/* Writes the files that attacks spoil anew. */
void world_restore(const struct world *world);
bool world_has_evil(const struct world *world, const char *name);

#endif
