/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_LISTING_RECORDS_IMPL_H
#define BROKER_RELAY_LISTING_RECORDS_IMPL_H

#include "broker/ledger/record.h"
#include "broker/relay/listing_records.h"

/*
 * Shared by listing_records.c (the scan of the records) and listing_records_page.c (the page that
 * they are added to); nobody else includes this.
 */

/* One list, from its first page to its last. */
struct listing_records {
	struct list link;       // in listings_of, unless a request has it
	char *id;               // owned, raw; of the request for a page that an agent has; or NULL
	char *cursor;           // owned; of the page that may be asked for next, or NULL
	char *cwd;              // owned, raw; the list's filter; may be NULL
	char *name, *real;      // owned; the filter as given, and without links; may be NULL
	struct record *records; // owned; records whose sessions may be added
	size_t count;
	uint64_t *seen; // owned; a hash of each listed session
	size_t seen_count;
	bool is_full; // too many sessions were listed to tell apart: nothing is added
};

/* The lists that wait for the editor to ask for a further page; a part of the relay. */
struct list *listings_of(struct relay *relay);

/* The request asks for a further page of a list. */
void listing_records_go_on(struct relay *relay, const struct call *call);

#endif
