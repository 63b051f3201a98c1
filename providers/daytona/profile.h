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
 * What a profile says of its sandbox. Plain data over a copy of the settings, which the texts
 * point into; defaults are filled in. The API's URL, the key and the region are those of the
 * configuration, else of the environment, else of the active profile of Daytona's CLI. The
 * configuration's key is what `api-key-command` prints, which whoever needs it asks for
 * (providers/daytona/opening.h). The CLI's profile is looked at where there is no such command, the
 * environment has no key and `api-key-env` is not set. Its URL and its key go together: the key is
 * sent to no other URL.
 */
enum daytona_end { DAYTONA_END_DELETE, DAYTONA_END_STOP, DAYTONA_END_ARCHIVE };

struct daytona_profile {
	struct settings settings; // owned
	char *name;               // owned
	const char *api_url, *key_env, *organization;
	const char *key; // borrowed from the environment, `cli` or `printed`; NULL: there is none
	const char *key_command; // prints it; NULL: none does
	char *printed;           // owned, wiped; the key that it has printed; or NULL
	const char *api_url_from, *key_from, *target_from; // where each is from, for people
	struct daytona_cli_profile cli;                    // owned
	char *cli_from;                                    // owned; what names it
	const char *target, *snapshot, *image, *user, *sandbox_class;
	int cpu, memory_gib, disk_gib;
	int auto_stop_min, auto_archive_min, auto_delete_min; // as in struct daytona_create
	int ttl_min;                                          // the same
	const char *ssh_host;                                 // NULL: as the service says
	int ssh_port;                                         // 0: the same
	const char *ssh_user; // with {token}, {id}, {name} or {key} in it
	const char *host_key; // NULL: trusted on first use
	const char *ready_state;
	const char *runtime_root;
	enum daytona_end end;
	bool is_synced; // what is done in it comes here; else it is there alone
	int token_min;
	long long key_command_timeout_ms, api_timeout_ms, create_timeout_ms, stop_timeout_ms;
	long long connect_timeout_ms, auth_timeout_ms;
	long long grace_ms, channel_timeout_ms, login_timeout_ms;
};

extern const struct setting_key daytona_keys[];
extern const size_t daytona_key_count;

/*
 * ERROR_CONFIG where keys do not go together; then there is nothing to finish. Calls nobody. The
 * environment is borrowed for as long as the profile, and may be NULL.
 */
bool daytona_profile_read(struct daytona_profile *profile, const char *name,
	const struct settings *settings, const char *const *environment,
	struct error *err) ATTR_NODISCARD;
void daytona_profile_finish(struct daytona_profile *profile); // zeroed is fine

/* False where no command prints the key, or it has been asked already. */
bool daytona_profile_command(const struct daytona_profile *profile, struct daytona_shared *shared,
	struct daytona_key_command *out_command);

/* What the command has printed is the profile's key; copied. */
void daytona_profile_take_key(struct daytona_profile *profile, const char *key);

/* The profile's key; NULL with ERROR_CONFIG that names what to set. Borrowed. */
const char *daytona_profile_key(
	const struct daytona_profile *profile, struct error *err) ATTR_NODISCARD;

/* Who the profile's key says that we are; without a key, nobody. */
void daytona_profile_account(
	const struct daytona_profile *profile, struct daytona_account *out_account);

/* The API as the profile says, once that has its key. */
struct daytona_api *daytona_profile_api(const struct daytona_profile *profile,
	struct daytona_shared *shared, struct error *err) ATTR_NODISCARD;

#endif
