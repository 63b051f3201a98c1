/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SLURM_COMMANDS_H
#define PROVIDERS_SLURM_COMMANDS_H

#include "providers/exec/profile.h"

/*
 * The keys of `backend = slurm`, and Slurm's commands for them, which a profile of `backend = exec`
 * would name itself.
 *
 * An instance is a batch job that only sleeps and so holds its allocation. Its name in Slurm is the
 * proposed name (%n); all commands find it by that name, and srun by the number of the job (%i).
 * The runner is a step of the job, so the end of srun ends the runner. The folders of workspaces
 * are below the user's home, which the nodes of a cluster share, so they outlive a job. A job
 * that has ended counts as stopped, and the next one goes on in the same folders.
 */
enum { SLURM_OWN_KEYS = 6, SLURM_KEYS = SLURM_OWN_KEYS + EXEC_COMMON_COUNT };
extern const struct setting_key slurm_keys[SLURM_KEYS];
extern const struct exec_platform slurm_platform;

#endif
