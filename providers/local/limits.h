/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_LIMITS_H
#define PROVIDERS_LOCAL_LIMITS_H

#include "base/limit_group.h"
#include "base/process_limit.h"
#include "providers/impl.h"

/*
 * The keys of this backend that limit an agent, its terminals and its setup, and how this machine
 * enforces them.
 */
#define LOCAL_LIMIT_KEYS                                                                           \
	{.name = "memory",                                                                         \
		.type = SETTING_BYTES,                                                             \
		.min = 1 << 20,                                                                    \
		.max = 1LL << 50,                                                                  \
		.help = "memory of all processes together"},                                       \
		{.name = "cpu",                                                                    \
			.type = SETTING_COUNT,                                                     \
			.min = 1,                                                                  \
			.max = 4096,                                                               \
			.help = "processor time of all processes together, in processors"},        \
		{.name = "processes",                                                              \
			.type = SETTING_COUNT,                                                     \
			.min = 1,                                                                  \
			.max = 4194304,                                                            \
			.help = "number of processes and threads"},                                \
		{.name = "open-files",                                                             \
			.type = SETTING_COUNT,                                                     \
			.min = 32,                                                                 \
			.max = 1 << 30,                                                            \
			.help = "open files of each process"},                                     \
		{.name = "file-size",                                                              \
			.type = SETTING_BYTES,                                                     \
			.min = 1,                                                                  \
			.max = 1LL << 50,                                                          \
			.help = "largest size to which a process may write a file"},               \
	{                                                                                          \
		.name = "cpu-time", .type = SETTING_DURATION, .min = 1000,                         \
		.max = 24LL * 24 * 60 * 60 * 1000, .help = "processor time of each process"        \
	}

struct local_limits {
	struct limit_group group;     // of all processes; open if this machine can have one
	uint64_t processes;           // of all processes together, if no group limits them
	bool is_any;                  // at least one key is set
	struct process_limits each;   // of each process
	char *said[LIMIT_KIND_COUNT]; // owned; for sandbox_limit
};

extern const struct error_reason
	local_limit_reason; // for a limit that is required but cannot be enforced

/*
 * Reads checked settings for a sandbox that is not ready yet. Tells the sandbox what was set, and
 * warns (sandbox_warn) about what cannot be enforced here. With `required`, a limit that cannot be
 * enforced is an error, and there is nothing to finish.
 */
bool local_limits_read(struct local_limits *limits, struct sandbox *sandbox,
	const struct settings *settings, struct error *err) ATTR_NODISCARD;
void local_limits_finish(struct local_limits *limits);

/* Returns the sentences that local_limits_read would add for a sandbox, or fails like it. */
bool local_limits_check(
	const struct settings *settings, char ***warnings, struct error *err) ATTR_NODISCARD;

/* Everything that starts from now on is in a cell. */
void local_limits_enter_cell(struct local_limits *limits);

#endif
