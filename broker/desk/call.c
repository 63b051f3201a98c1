/* SPDX-License-Identifier: MIT */
#include "broker/desk/call.h"

#include "base/log.h"
#include "broker/desk/parcel.h"

bool call_open(struct call *call, struct parcel *parcel)
{
	struct error err;
	call->frame = parcel_open(parcel, &call->from);
	call->edits = parcel_edits(parcel);
	if (!message_read(&call->message, call->frame, &err)) {
		log_error("a message set aside cannot be read again: %s", err.text);
		return false;
	}
	return true;
}
