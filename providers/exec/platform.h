/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_PLATFORM_H
#define PROVIDERS_EXEC_PLATFORM_H

#include "providers/exec/profile.h"
#include "providers/impl.h"

/*
 * For providers whose sandboxes are instances of a platform with a command line. Such a provider
 * defines its keys and commands (struct exec_platform), and puts these calls into its struct
 * provider_impl. The files of this folder do the rest: notes, locks, the runner, sweeps. `backend =
 * exec` is one such provider.
 */
struct sandbox *exec_provider_prepare(struct provider *provider,
	const struct sandbox_request *request, const struct sandbox_listener *listener, void *data,
	struct error *err);
bool exec_provider_describe(struct provider *provider, const struct settings *settings,
	const struct provider_describe_listener *listener, void *data, struct error *err);
bool exec_provider_inventory(struct provider *provider, const struct sandbox_request *request,
	enum inventory_act act, const char *name, const struct inventory_listener *listener,
	void *data, struct error *err);
struct provider_sweep *exec_provider_sweep(struct provider *provider,
	const struct sandbox_request *request, const char *const *kept, provider_swept *done,
	void *data, struct error *err);
void exec_provider_sweep_cancel(struct provider_sweep *sweep);
void exec_provider_destroy(struct provider *provider);

#define EXEC_PROVIDER_CALLS                                                                        \
	.destroy = exec_provider_destroy, .prepare = exec_provider_prepare,                        \
	.describe = exec_provider_describe, .inventory = exec_provider_inventory,                  \
	.sweep = exec_provider_sweep, .sweep_cancel = exec_provider_sweep_cancel

/* The reasons of the errors that the files of this folder set. */
#define EXEC_REASONS                                                                               \
	{"EXEC_COMMAND_FAILED", true,                                                              \
		"run the profile's command in a terminal; the message has its status and what it " \
		"said"},                                                                           \
		{"EXEC_NAME_INVALID", false,                                                       \
			"have start print the instance's name, and nothing else, as its first "    \
			"line"},                                                                   \
		{"EXEC_NO_RUNNER", false,                                                          \
			"use an instance of Linux on x86_64 with a folder in which programs may "  \
			"be executed; the message says what was missing"},                         \
		{"EXEC_NOT_STARTED", true,                                                         \
			"ask the platform why it ended; the message has the platform's words"},    \
	{                                                                                          \
		"EXEC_MADE_OTHERWISE", false,                                                      \
			"let the platform enforce what the message names, or remove it from the "  \
			"profile"                                                                  \
	}

/* For provider_impl.check: checks the settings alone, and runs no command. */
bool exec_platform_check(const struct exec_platform *platform, const struct settings *settings,
	struct error *err) ATTR_NODISCARD;

/* `impl` and `platform` are static; the context is borrowed. */
struct provider *exec_platform_provider_create(const struct provider_context *context,
	const struct provider_impl *impl, const struct exec_platform *platform);

#endif
