/* SPDX-License-Identifier: MIT */
#include "providers/daytona/opening.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/soon.h"

struct daytona_opening {
	struct daytona_shared *shared;
	struct daytona_profile *profile;
	daytona_opened *done;
	void *data;
	struct daytona_key_wait *wait; // for the command's key; or NULL
	struct daytona_api *api;       // owned; without a command: until `soon`
	struct soon soon;
};

void daytona_opening_cancel(struct daytona_opening *opening)
{
	if (opening) {
		daytona_key_cancel(opening->wait);
		soon_stop(&opening->soon);
		daytona_api_destroy(opening->api);
		free(opening);
	}
}

static void end(struct daytona_opening *opening, struct daytona_api *api, const struct error *err)
{
	daytona_opened *done = opening->done;
	void *data = opening->data;
	opening->api = NULL;
	daytona_opening_cancel(opening);
	done(data, api, err);
}

static void on_soon(struct soon *soon)
{
	struct daytona_opening *opening = CONTAINER_OF(soon, struct daytona_opening, soon);
	end(opening, opening->api, NULL);
}

static void on_key(void *data, const char *key, const struct error *failure)
{
	struct daytona_opening *opening = data;
	struct error err;
	opening->wait = NULL;
	if (failure) {
		err = *failure;
		end(opening, NULL, &err);
		return;
	}
	daytona_profile_take_key(opening->profile, key);
	struct daytona_api *api = daytona_profile_api(opening->profile, opening->shared, &err);
	end(opening, api, api ? NULL : &err);
}

struct daytona_opening *daytona_opening_start(struct daytona_shared *shared,
	struct daytona_profile *profile, daytona_opened *done, void *data, struct error *err)
{
	struct daytona_opening *opening = mem_alloc_zero(sizeof(*opening));
	struct daytona_key_command command;
	opening->shared = shared;
	opening->profile = profile;
	opening->done = done;
	opening->data = data;
	soon_init(&opening->soon, shared->context->loop, on_soon);
	if (daytona_profile_command(profile, shared, &command)) {
		opening->wait = daytona_key_ask(&command, NULL, on_key, opening);
		return opening;
	}
	opening->api = daytona_profile_api(profile, shared, err);
	if (!opening->api) {
		daytona_opening_cancel(opening);
		return NULL;
	}
	soon_start(&opening->soon);
	return opening;
}
