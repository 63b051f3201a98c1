/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_KEYS_H
#define PROVIDERS_LOCAL_CELL_KEYS_H

#include "base/settings.h"
#include "providers/local/cell/cell.h"
#include "providers/local/cell_network.h"
#include "providers/provider.h"

/*
 * The keys that programs in a sandbox's cell can use but not read: `key` in a profile
 * (keys/profile_keys.h). The values come from the broker's environment. While the cell lives, a
 * process outside of it holds them (keys/holder.h); no process in the cell has them.
 */
struct cell_keys;

/*
 * Reads the profile's keys and their values. Fails with ERROR_CONFIG. *out is NULL if the profile
 * has no keys.
 */
bool cell_keys_create(const struct provider_context *context, const struct settings *settings,
	struct cell_keys **out, struct error *err) ATTR_NODISCARD;
void cell_keys_destroy(struct cell_keys *self); // NULL is fine; ends every use of the keys

/* The following functions do nothing if `self` is NULL. */

void cell_keys_plan(const struct cell_keys *self, struct cell_plan *plan);

/* Whether a text contains the value of a key; *out_name is then the key's variable. */
bool cell_keys_are_in(const struct cell_keys *self, struct span text, const char **out_name);

/*
 * Removes the keys' variables, and every other variable with the same value. The sandbox warns
 * about these other variables.
 */
void cell_keys_drop(const struct cell_keys *self, char ***environment, struct sandbox *sandbox);

/*
 * Works like cell_network_serve; the cell must be ready. Afterwards the broker no longer has the
 * values.
 */
bool cell_keys_start(struct cell_keys *self, const struct cell_network_config *config,
	struct error *err) ATTR_NODISCARD;

/*
 * Call this after the start: sets the variables that hold the placeholders, and those that name the
 * addresses where programs use them.
 */
void cell_keys_set_variables(const struct cell_keys *self, char ***environment);

/* "NAME for https://HOST" for each key; NULL-terminated, borrowed. NULL: there are no keys. */
const char *const *cell_keys_names(const struct cell_keys *self);

#endif
