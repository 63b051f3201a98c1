/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "providers/daytona/box_impl.h"
#include "providers/daytona/wanted.h"

/*
 * An existing sandbox may have been made under other settings of the profile. Everything that the
 * platform can still change is changed to the profile's settings, one call after the other. The
 * network must match; other differences are only reported.
 */

static void fit_next(struct daytona_box *box);

enum { NETWORK_TEXT_SIZE = 320 };

/* Descriptions for the log, and for calls that fail. */
static const struct {
	enum daytona_unfit bit;
	const char *what;
	bool is_needed;
} fits[] = {
	{DAYTONA_UNFIT_NETWORK, "its network", true},
	{DAYTONA_UNFIT_INGRESS, "public-ingress", true},
	{DAYTONA_UNFIT_AUTO_STOP, "auto-stop", false},
	{DAYTONA_UNFIT_AUTO_ARCHIVE, "auto-archive", false},
	{DAYTONA_UNFIT_AUTO_DELETE, "auto-delete", false},
	{DAYTONA_UNFIT_TTL, "ttl", false},
};

static void warn(struct daytona_box *box, const char *text)
{
	if (box->config.on_warning) {
		box->config.on_warning(box->config.data, text);
	}
}

/* ---- the network ---- */

/* The platform refused the change or has another value: the value in force counts. */
static void tell_network(struct daytona_box *box, const struct daytona_sandbox *seen)
{
	const struct daytona_create *wanted = box->config.wanted;
	char there[NETWORK_TEXT_SIZE], asked[NETWORK_TEXT_SIZE];
	struct error err;
	daytona_network_describe(&(struct daytona_network){.blocks_network = seen->blocks_network,
					 .network_allow_list = seen->network_allow_list,
					 .domain_allow_list = seen->domain_allow_list},
		there, sizeof(there));
	daytona_network_describe(&(struct daytona_network){.blocks_network = wanted->blocks_network,
					 .network_allow_list = wanted->network_allow_list,
					 .domain_allow_list = wanted->domain_allow_list},
		asked, sizeof(asked));
	bool was_refused = box->refusal.code != ERROR_NONE;
	error_set_reason(&err, ERROR_DENIED, "NETWORK_NOT_ENFORCED",
		"sandbox %s: its network differs from the profile: it is %s, not "
		"%s%s%s",
		box->name, there, asked, was_refused ? "; " : "",
		was_refused ? box->refusal.text : "");
	if (box->config.network_is_required) {
		daytona_box_end(box, &err);
	} else {
		warn(box, err.text);
		fit_next(box);
	}
}

static void on_read_back(void *data, const struct daytona_sandbox *seen, const struct error *err)
{
	struct daytona_box *box = data;
	box->call = NULL;
	if (err) {
		struct error copy = *err;
		error_prefix(&copy, "sandbox %s: reading its network settings back", box->name);
		daytona_box_end(box, &copy);
	} else if (daytona_wanted_unfit(box->config.wanted, seen) & DAYTONA_UNFIT_NETWORK) {
		tell_network(box, seen);
	} else {
		log_info("sandbox %s: its network now matches the profile", box->name);
		fit_next(box);
	}
}

/*
 * The answer to the change proves nothing, because the platform may have applied only a part of it.
 */
static void on_network_set(void *data, const struct error *err)
{
	struct daytona_box *box = data;
	box->call = NULL;
	if (err && !error_has_reason(err, "DAYTONA_REJECTED")) {
		struct error copy = *err;
		error_prefix(&copy, "sandbox %s: its network differs from the profile", box->name);
		daytona_box_end(box, &copy);
		return;
	}
	box->refusal = err ? *err : (struct error){0};
	box->call = daytona_get(box->config.api, box->id, on_read_back, box);
}

/* An unwanted list is sent as "", which clears it; a list that is not sent would stay. */
static struct daytona_call *set_network(struct daytona_box *box)
{
	const struct daytona_create *wanted = box->config.wanted;
	const char *cidrs = wanted->network_allow_list;
	const char *hosts = wanted->domain_allow_list;
	struct daytona_network network = {.blocks_network = wanted->blocks_network,
		.network_allow_list = cidrs                    ? cidrs
	                              : wanted->blocks_network ? NULL
	                                                       : "",
		.domain_allow_list = hosts ? hosts : ""};
	return daytona_set_network(box->config.api, box->id, &network, on_network_set, box);
}

/* ---- all settings ---- */

static void on_fitted(void *data, const struct error *err)
{
	struct daytona_box *box = data;
	struct error copy;
	size_t at = 0;
	while (fits[at].bit != box->fitting) {
		at++;
	}
	box->call = NULL;
	if (!err) {
		log_info("sandbox %s: %s now matches the profile", box->name, fits[at].what);
		box->auto_stop_min = box->fitting == DAYTONA_UNFIT_AUTO_STOP
		                             ? box->config.wanted->auto_stop_min
		                             : box->auto_stop_min;
		fit_next(box);
		return;
	}
	copy = *err;
	error_prefix(&copy, "sandbox %s: %s differs from the profile", box->name, fits[at].what);
	if (fits[at].is_needed) {
		daytona_box_end(box, &copy);
		return;
	}
	warn(box, copy.text);
	fit_next(box);
}

static struct daytona_call *set_interval(
	struct daytona_box *box, enum daytona_interval interval, int minutes)
{
	return daytona_set_interval(box->config.api, box->id, interval, minutes, on_fitted, box);
}

static struct daytona_call *fit(struct daytona_box *box, enum daytona_unfit what)
{
	const struct daytona_create *wanted = box->config.wanted;
	switch (what) {
	case DAYTONA_UNFIT_NETWORK:
		return set_network(box);
	case DAYTONA_UNFIT_INGRESS:
		return daytona_set_public(
			box->config.api, box->id, wanted->is_public, on_fitted, box);
	case DAYTONA_UNFIT_AUTO_STOP:
		return set_interval(box, DAYTONA_AUTO_STOP, wanted->auto_stop_min);
	case DAYTONA_UNFIT_AUTO_ARCHIVE:
		return set_interval(box, DAYTONA_AUTO_ARCHIVE, wanted->auto_archive_min);
	case DAYTONA_UNFIT_TTL:
		return set_interval(box, DAYTONA_TTL, wanted->ttl_min);
	default:
		return set_interval(box, DAYTONA_AUTO_DELETE, wanted->auto_delete_min);
	}
}

static void fit_next(struct daytona_box *box)
{
	for (size_t i = 0; i < ARRAY_LENGTH(fits); i++) {
		if (box->unfit & (unsigned int)fits[i].bit) {
			box->unfit &= ~(unsigned int)fits[i].bit;
			box->fitting = fits[i].bit;
			box->call = fit(box, fits[i].bit);
			return;
		}
	}
	daytona_box_end(box, NULL);
}

static void on_fixed(void *data, const char *key, const char *there, const char *wanted)
{
	struct daytona_box *box = data;
	char text[512];
	text_format(text, sizeof(text),
		"%s = %s differs from sandbox %s, which was made with %s; this cannot be changed: "
		"acp-broker sandboxes delete %s lets the next session make another",
		key, wanted, box->name, *there ? there : "another", box->name);
	warn(box, text);
}

void daytona_box_fit(struct daytona_box *box, const struct daytona_sandbox *seen)
{
	box->auto_stop_min = seen->auto_stop_min;
	if (!box->config.wanted) {
		daytona_box_end(box, NULL);
		return;
	}
	daytona_wanted_fixed(box->config.wanted, seen, on_fixed, box);
	box->unfit = daytona_wanted_unfit(box->config.wanted, seen);
	/*
	 * A platform that does not support ttl ignores it in a create and refuses this call. On a
	 * sandbox that exists, the call would start the time again.
	 */
	if (box->is_made && box->config.wanted->ttl_min > 0) {
		box->unfit |= DAYTONA_UNFIT_TTL;
	}
	fit_next(box);
}
