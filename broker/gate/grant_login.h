/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_LOGIN_H
#define BROKER_GATE_GRANT_LOGIN_H

#include "base/login_url.h"
#include "broker/session/hop.h"

/*
 * The way back of a login in the browser. A program in a sandbox elsewhere has shown the address of
 * a login page, which sends the browser back to a port of this machine, where nobody listens. The
 * broker asks the user once whether it may open that port for this login, whatever policy says: no
 * rule and no mode opens a port here. After a yes the port leads to the same port of the sandbox's
 * loopback. It is closed a moment after the page was answered, or after login-callback-timeout.
 *
 * The agent and its programs choose the port and when to show it, so they can be lying. Therefore
 * the number of questions is limited, and a port that the user has refused stays refused until the
 * agent ends. A question that nobody has answered may be asked again.
 */
enum {
	GRANT_LOGIN_PORTS_MAX = 16, // that are open, asked about or refused, for each agent
	GRANT_LOGIN_AT_ONCE = 3,    // questions and notices; then one more each GRANT_LOGIN_EVERY_S
	GRANT_LOGIN_EVERY_S = 60,
	GRANT_LOGIN_HINTS_MAX = 8, // lines of the log about logins outside of sessions
	GRANT_LOGIN_MORE_S = 5,    // after the first answer, for a page that the answer leads to
};

/* Whether such an address would matter for the agent: the user may be asked or told. */
bool grant_login_is_watched(const struct peer *peer);

/*
 * The agent has shown the address of a login page in this session; NULL: it is not known in which.
 * Without any session the log says what to do. Does nothing if a question about the port is open,
 * or if the port is open, leads there by the profile, or was refused.
 */
void grant_login_offer(
	struct peer *peer, const struct session *session, const struct login_url *login);

/*
 * The session was cancelled or closed: withdraws its questions, closes its ports, and resets their
 * connections.
 */
void grant_login_cancel(struct relay *relay, const char *session_id);

/*
 * The agent has ended: the same for all of its ports, and no refusal holds any longer. Its
 * questions stay open: the caller must drop them before an answer can come.
 */
void grant_login_drop(struct peer *peer);

#endif
