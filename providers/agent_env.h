/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_AGENT_ENV_H
#define PROVIDERS_AGENT_ENV_H

/*
 * Under this key a provider sees, among the settings of a profile, each `env` of the [agent "NAME"]
 * section that the profile uses. No configuration file has a key of this name.
 */
#define SETTING_AGENT_ENV "agent-env"

#endif
