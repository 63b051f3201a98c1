/* SPDX-License-Identifier: MIT */
#ifndef BROKER_METHODS_USAGE_REPORT_H
#define BROKER_METHODS_USAGE_REPORT_H

struct call;
struct relay;

/*
 * _broker/usage: what the broker has counted, of all or of one session, and its memory.
 * docs/schemas/usage.json has the params and the result.
 */
void usage_report_call(struct relay *relay, const struct call *call);

#endif
