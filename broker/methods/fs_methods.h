/* SPDX-License-Identifier: MIT */
#ifndef BROKER_METHODS_FS_METHODS_H
#define BROKER_METHODS_FS_METHODS_H

#include "broker/session/hop.h"

/*
 * Read and change files of a session's sandbox for a program (docs/schemas/fs.json). Like an agent,
 * the program can only use files below the sandbox's roots. The next sync copies changes to the
 * workspace here.
 */
void fs_methods_list(struct relay *relay, const struct call *call);
void fs_methods_stat(struct relay *relay, const struct call *call);
void fs_methods_read(struct relay *relay, const struct call *call);
void fs_methods_write(struct relay *relay, const struct call *call);

#endif
