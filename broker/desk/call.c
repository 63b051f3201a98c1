/* SPDX-License-Identifier: MIT */
#include "broker/desk/call.h"

#include "base/log.h"
#include "broker/desk/parcel.h"

struct parcel *call_set_aside(const struct call *call, const struct json_places *places)
{
	struct parcel *parcel = parcel_create(call->from, call->frame, places);
	parcel_set_method(parcel, call->method);
	return parcel;
}

bool call_open(struct call *call, struct parcel *parcel)
{
	struct error err;
	call->frame = parcel_open(parcel, &call->from);
	call->edits = parcel_edits(parcel);
	call->method = parcel_method(parcel);
	if (!message_read(&call->message, call->frame, &err)) {
		log_failure(LOG_LEVEL_ERROR, &err,
			"a message that was set aside cannot be read again: %s", err.text);
		return false;
	}
	return true;
}
