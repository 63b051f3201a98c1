/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_CHAT_COMMAND_H
#define BROKER_CLI_CHAT_COMMAND_H

#include "broker/cli/exec.h"

/* `acp-broker chat` (broker/chat); parameters and result as for exec_run. */
bool chat_command_run(
	const struct exec_means *means, int *out_status, struct error *err) ATTR_NODISCARD;

#endif
