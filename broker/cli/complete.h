/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_COMPLETE_H
#define BROKER_CLI_COMPLETE_H

/*
 * Answers a shell that completes a command line: acp-broker __complete WORD... The words are those
 * after "acp-broker" up to the cursor; the last may be empty. Prints the candidates for the last
 * word, one per line: the word, a tab, a description. A first line ":files", ":folders" or
 * ":programs" tells the shell to complete those itself. The scripts in broker/completions/ call
 * this.
 */

#define COMPLETE_WORD "__complete"

/* Returns the exit status. `environment` leads to the configuration. */
int complete_main(int argc, char **argv, const char *const *environment);

#endif
