/* SPDX-License-Identifier: MIT */
#ifndef TESTS_ATTACK_WORLD_H
#define TESTS_ATTACK_WORLD_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * The machine that the attacks are against: a user with a home, keys, a broker's records, sockets,
 * and a process. Its folder is at a place that every user can read, and in /tmp only if no other
 * place is writable.
 */
struct world {
	char folder[PATH_MAX];
	char program[PATH_MAX]; // a copy of this one, which everybody may execute
	char temporary[64];     // a file in /tmp; world_has_evil calls it "temporary"
	uid_t uid;              // of the user who owns it and whom a cell works for
	gid_t gid;
	char run[64];    // a folder below /run; "": none can be made
	char own[48];    // the program that runs, which starts all others: device:inode
	int sockets[10]; // listening, except for [8]
	char port[8];    // of the one on 127.0.0.1
	char names[8];   // of a name server there
	pid_t name_server;
};

/*
 * If we are root, the world's user is another one, so the process that makes and removes the world
 * may not be the one that runs in it.
 */
void world_make(struct world *world);
void world_remove(const struct world *world);

/* Opens the sockets. Only if we are root, this process may become the world's user before that. */
void world_enter(struct world *world, bool becomes_user);

/* Ends what world_enter has started. */
void world_leave(const struct world *world);

/*
 * Makes a world, runs the suite in a process that has entered it, and removes the world. Returns
 * the status to exit with: the suite's, or 77 (skipped) if the process should become the user but
 * is not root.
 */
int world_main(struct world *world, bool becomes_user, int (*run_suite)(void));

/* In the world's folder. */
void world_path(const struct world *world, const char *name, char out[PATH_MAX]);

/* Writes again the files that attacks spoil. */
void world_restore(const struct world *world);
bool world_has_evil(const struct world *world, const char *name);

#endif
