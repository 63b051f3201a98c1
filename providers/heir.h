/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_HEIR_H
#define PROVIDERS_HEIR_H

#include "base/process.h"

/*
 * The heir of a broker: if the broker is killed, the spawner starts this program once more
 * (spawner_leave_will), and it ends what the broker has left running elsewhere, if it can log in
 * without asking anybody. It gets the options of the broker, and the profiles to look at. No secret
 * is kept for it: its environment has only variables that name files and sockets. It logs where the
 * broker did, if that is a file.
 */
struct heir;

/*
 * Begins the heir's command line, once for each profile: HEIR_WORD NAME. The broker's own arguments
 * follow.
 */
#define HEIR_WORD "acp-broker-heir"

/*
 * `arguments` are the broker's own, without the program, and `folder` is where it was started:
 * relative names in them begin there. All is borrowed; a NULL folder is "/".
 */
struct heir *heir_create(struct spawner *spawner, const char *const *environment,
	const char *const *arguments, const char *folder);
void heir_destroy(struct heir *heir); // NULL is fine; what the spawner knows stays as it is

/*
 * Call it before processes of this profile begin to run elsewhere that go on without the broker.
 * `variable` is a variable of the environment that the heir needs for the profile; NULL: none.
 * Another call for the same profile changes nothing; nor does any with a NULL heir.
 */
void heir_name(struct heir *heir, const char *profile, const char *variable);

#endif
