/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_PROFILE_H
#define PROVIDERS_DAYTONA_PROFILE_H

#include "base/settings.h"
#include "providers/daytona/account.h"
#include "providers/daytona/api.h"
#include "providers/daytona/cli_profile.h"
#include "providers/provider.h"

struct daytona_key_command;
struct daytona_shared;

/*
 * The settings of a profile for its sandbox, with defaults filled in. Plain data; the texts point
 * into its own copy of the settings. The API's URL, the key and the region come from the
 * configuration, else from the environment, else from the active profile of Daytona's CLI. If the
 * configuration has `api-key-command`, that command prints the key; callers that need the key run
 * it (providers/daytona/opening.h). The CLI's profile is used if there is no such command, the
 * environment has no key and `api-key-env` is not set. Its URL and key belong together: we send
 * this key to no other URL.
 */
enum daytona_end { DAYTONA_END_DELETE, DAYTONA_END_STOP, DAYTONA_END_ARCHIVE };

struct daytona_profile {
	struct settings settings; // owned
	char *name;               // owned
	const char *api_url, *key_env, *organization;
	const char *key;         // borrowed from the environment, `cli` or `printed`; NULL: none
	const char *key_command; // prints the key; NULL: none
	char *printed;           // owned, wiped; the key from the command; or NULL
	const char *api_url_from, *key_from, *target_from; // where each comes from, for people
	struct daytona_cli_profile cli;                    // owned
	char *cli_from;                                    // owned; names it
	const char *target, *snapshot, *image, *user, *sandbox_class;
	int cpu, memory_gib, disk_gib;
	int auto_stop_min, auto_archive_min, auto_delete_min; // as in struct daytona_create
	int ttl_min;                                          // as in struct daytona_create
	const char *ssh_host;                                 // NULL: the service says it
	int ssh_port;                                         // 0: the service says it
	const char *ssh_user; // may contain {token}, {id}, {name} or {key}
	const char *host_key; // NULL: the first key is trusted
	const char *ready_state;
	const char *runtime_root;
	enum daytona_end end;
	bool is_synced; // its files are synced; otherwise they exist only there
	int token_min;
	long long key_command_timeout_ms, api_timeout_ms, create_timeout_ms, stop_timeout_ms;
	long long connect_timeout_ms, auth_timeout_ms;
	long long grace_ms, orphan_ms, channel_timeout_ms, login_timeout_ms;
	bool wants_runner;
	bool outlives; // with the runner: processes go on when the connection is lost
};

extern const struct setting_key daytona_keys[];
extern const size_t daytona_key_count;

/*
 * Fails with ERROR_CONFIG if keys do not fit together; then there is nothing to finish. Makes no
 * request and runs no command. The environment is borrowed as long as the profile exists; may be
 * NULL.
 */
bool daytona_profile_read(struct daytona_profile *profile, const char *name,
	const struct settings *settings, const char *const *environment,
	struct error *err) ATTR_NODISCARD;
void daytona_profile_finish(struct daytona_profile *profile); // zeroed is fine

/* Whether a command must still be asked for the key. */
bool daytona_profile_command(const struct daytona_profile *profile, struct daytona_shared *shared,
	struct daytona_key_command *out_command);

/* Sets the key that the command has printed; copied. */
void daytona_profile_take_key(struct daytona_profile *profile, const char *key);

/* The profile's key; NULL with ERROR_CONFIG, which names the setting to add. Borrowed. */
const char *daytona_profile_key(
	const struct daytona_profile *profile, struct error *err) ATTR_NODISCARD;

/* The account of the profile's key; without a key, one that equals no other. */
void daytona_profile_account(
	const struct daytona_profile *profile, struct daytona_account *out_account);

/* Creates the API of the profile, which must have its key. */
struct daytona_api *daytona_profile_api(const struct daytona_profile *profile,
	struct daytona_shared *shared, struct error *err) ATTR_NODISCARD;

#endif
