/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_LISTING_RECORDS_IMPL_H
#define BROKER_RELAY_LISTING_RECORDS_IMPL_H

#include "broker/ledger/record.h"
#include "broker/relay/listing_records.h"

/*
 * What listing_records.c (the scan of the records) and listing_records_page.c (which page they
 * are added to) share; nobody else includes this.
 */

/* Of one list: from its first page to its last. */
struct listing_records {
	struct list link; // listings_of, unless a request has it
	char *id;         // owned; raw; of the request for a page that goes to an agent, or NULL
	char *cursor;     // owned; of the page that may be asked for next, or NULL
	char *cwd;        // owned; the filter of the list, raw; may be NULL
	char *name,
		*real; // owned; the filter, and without its links; both NULL where there is none
	struct record *records; // owned; those whose sessions may be added
	size_t count;
	uint64_t *seen; // owned; a hash of each session that was listed
	size_t seen_count;
	bool is_full; // more were listed than can be told apart: nothing is added
};

/* Of struct listing_records, whose page no agent has in hand: a part of the relay. */
struct list *listings_of(struct relay *relay);

/* The request is for a further page of a list. */
void listing_records_go_on(struct relay *relay, const struct call *call);

#endif
