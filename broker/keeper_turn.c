/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "broker/keeper_impl.h"

/* What the agent has under way, told to who brings a workspace back by hand (broker/turn_lock.h).
 */

/* False: somebody does so just now. A lock that cannot be had otherwise holds up no prompt. */
static bool take(struct keep *keep, const struct turn_text *text, struct error *err)
{
	const struct keeper_config *config = &keep->keeper->config;
	struct error why;
	if (turn_lock_take(&keep->turn, config->state_folder, keep->record.id, text, &why)) {
		return true;
	}
	if (why.reason) {
		return error_set_reason(err, why.code, why.reason, "%s", why.text);
	}
	log_warning("%s: %s: it can be rolled back while the agent works", keep->record.local_root,
		why.text);
	return true;
}

bool keeper_note_turn(struct keeper *keeper, const struct turn_text *text, struct error *err)
{
	bool ok = true;
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		if (!text) {
			turn_lock_let_go(&keep->turn);
		} else if (ok && keep->workspace) {
			ok = take(keep, text, err);
		}
	}
	return ok;
}
