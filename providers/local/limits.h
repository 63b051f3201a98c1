/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_LIMITS_H
#define PROVIDERS_LOCAL_LIMITS_H

#include "base/limit_group.h"
#include "base/process_limit.h"
#include "providers/impl.h"

/*
 * The keys of this backend that say how much an agent, its terminals and its setup may use, and
 * what this machine makes of them.
 */
#define LOCAL_LIMIT_KEYS                                                                           \
	{.name = "memory",                                                                         \
		.type = SETTING_BYTES,                                                             \
		.min = 1 << 20,                                                                    \
		.max = 1LL << 50,                                                                  \
		.help = "memory of all together"},                                                 \
		{.name = "cpu",                                                                    \
			.type = SETTING_COUNT,                                                     \
			.min = 1,                                                                  \
			.max = 4096,                                                               \
			.help = "processors' worth of time for all together"},                     \
		{.name = "processes",                                                              \
			.type = SETTING_COUNT,                                                     \
			.min = 1,                                                                  \
			.max = 4194304,                                                            \
			.help = "processes and threads"},                                          \
		{.name = "open-files",                                                             \
			.type = SETTING_COUNT,                                                     \
			.min = 32,                                                                 \
			.max = 1 << 30,                                                            \
			.help = "open files of each process"},                                     \
		{.name = "file-size",                                                              \
			.type = SETTING_BYTES,                                                     \
			.min = 1,                                                                  \
			.max = 1LL << 50,                                                          \
			.help = "size to which a process may write a file"},                       \
	{                                                                                          \
		.name = "cpu-time", .type = SETTING_DURATION, .min = 1000,                         \
		.max = 24LL * 24 * 60 * 60 * 1000, .help = "processor time of each process"        \
	}

struct local_limits {
	struct limit_group group;     // of all of them; open where one is to be had
	uint64_t processes;           // together; of those without a group that limits them
	bool is_any;                  // one of the keys is set
	struct process_limits each;   // of each process
	char *said[LIMIT_KIND_COUNT]; // owned; for sandbox_limit
};

extern const struct error_reason local_limit_reason; // of what is required and not enforced

/*
 * Reads checked settings for a sandbox that is not ready yet, and tells it what was set and what
 * cannot be enforced here (sandbox_warn). With `required` the latter is an error, and there is
 * nothing to finish.
 */
bool local_limits_read(struct local_limits *limits, struct sandbox *sandbox,
	const struct settings *settings, struct error *err) ATTR_NODISCARD;
void local_limits_finish(struct local_limits *limits);

/* The sentences that local_limits_read would add for a sandbox, or its error. */
bool local_limits_check(
	const struct settings *settings, char ***warnings, struct error *err) ATTR_NODISCARD;

/* What is started from now on is in a cell. */
void local_limits_enter_cell(struct local_limits *limits);

#endif
