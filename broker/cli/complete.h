/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_COMPLETE_H
#define BROKER_CLI_COMPLETE_H

/*
 * What a shell asks while the user types a command line: acp-broker __complete WORD... with the
 * words after "acp-broker" up to the cursor, the last of which may be empty. Prints what may stand
 * for the last one, a line each: the word, a tab, and what it is; a first line ":files",
 * ":folders" or ":programs" leaves it to the shell. The scripts in broker/completions/ ask so.
 */

#define COMPLETE_WORD "__complete"

/* The exit status; `environment` says where the configuration is. */
int complete_main(int argc, char **argv, const char *const *environment);

#endif
