/* SPDX-License-Identifier: MIT */
#ifndef BROKER_METHODS_USAGE_REPORT_H
#define BROKER_METHODS_USAGE_REPORT_H

struct call;
struct relay;

/*
 * _broker/usage: the broker's counters, in all or for one session, and its memory use.
 * docs/schemas/usage.json describes the params and the result.
 */
void usage_report_call(struct relay *relay, const struct call *call);

#endif
