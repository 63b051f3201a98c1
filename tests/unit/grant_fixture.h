/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_GRANT_FIXTURE_H
#define TESTS_UNIT_GRANT_FIXTURE_H

#include "tests/unit/relay_fixture.h"

#define OPTIONS_ALWAYS                                                                             \
	"[{'optionId':'allow','name':'Allow','kind':'allow_once'},"                                \
	"{'optionId':'allow-always','name':'Always allow in this session','kind':'allow_always'}," \
	"{'optionId':'reject','name':'Reject','kind':'reject_once'},"                              \
	"{'optionId':'reject-always','name':'Always reject in this session',"                      \
	"'kind':'reject_always'}]"
#define OPTIONS_ONCE                                                                               \
	"[{'optionId':'allow','name':'Allow','kind':'allow_once'},"                                \
	"{'optionId':'reject','name':'Reject','kind':'reject_once'}]"
#define WRITE_REQUEST                                                                              \
	"'method':'fs/write_text_file','params':{'sessionId':'s','path':'/w/f','content':'new'}"

#define POLICY(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A session "s" in /w, and a policy. */
static inline void begin_with_policy(struct fixture *fixture, const char *const *lines)
{
	stage_policy(&fixture->stage, lines);
	begin_with_session(fixture);
}

#endif
