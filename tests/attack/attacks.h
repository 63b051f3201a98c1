/* SPDX-License-Identifier: MIT */
#ifndef TESTS_ATTACK_ATTACKS_H
#define TESTS_ATTACK_ATTACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tests/attack/world.h"

/*
 * The attacks, as lines for sh(1). In the environment are
 *   HOME      the user's home, with keys and rc files     STATE     the broker's records
 *   PUBLIC    a folder that anybody may write             TEMPORARY a file in /tmp
 *   WORK      the folder that the cell may write          VICTIM    a process outside
 *   PORT      a listening port of 127.0.0.1               NAMES     that of a name server there
 *   ABSTRACT  the name of an abstract socket              TRICK     tricks.h: $TRICK NAME ARGUMENT
 *   RUN       a folder below /run                         OWN       for the trick "program"
 * An attack has succeeded when it exits with 0 and, where it has `spoiled`, that file of this
 * machine's, relative to the world's folder, contains EVIL.
 */
struct attack {
	const char *name;    // a sentence: what must not happen
	const char *script;  // or NULL: the trick "program", by /proc/self/exe of whoever starts it
	const char *spoiled; // or NULL
	bool may_lack;       // may fail outside as well: for lack of rights, or of a kernel feature
};
extern const struct attack attacks[];
extern const size_t attack_count;

/* Returns these variables; the caller frees them with words_free. */
char **attack_environment(const struct world *world, pid_t victim);

#endif
