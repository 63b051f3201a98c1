/* SPDX-License-Identifier: MIT */
#include "providers/suspension.h"

#include <assert.h>

#include "base/text.h"

/* ---- for the caller of a provider ---- */

static void refuse(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	struct error err;
	error_set_reason(&err, ERROR_UNAVAILABLE, "PAUSE_UNSUPPORTED",
		"suspending the sandbox: this one cannot be suspended");
	sandbox_raise_later(sandbox, done, data, &err);
}

void sandbox_suspend(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	if (sandbox_capabilities(sandbox)->can_suspend) {
		sandbox->impl->suspend(sandbox, done, data);
	} else {
		refuse(sandbox, done, data);
	}
}

void sandbox_resume(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	if (sandbox_capabilities(sandbox)->can_suspend) {
		sandbox->impl->resume(sandbox, done, data);
	} else {
		refuse(sandbox, done, data);
	}
}

const char *sandbox_suspended_by_signals(const struct sandbox *sandbox)
{
	return sandbox->impl->by_signals ? sandbox->impl->by_signals(sandbox) : NULL;
}

const char *suspension_by_signals(const struct suspension *suspension)
{
	return suspension->by_signals[0] ? suspension->by_signals : NULL;
}

/* ---- members ---- */

void suspension_init(struct suspension *suspension, struct sandbox *sandbox)
{
	*suspension = (struct suspension){.sandbox = sandbox};
	list_init(&suspension->members);
}

static void forget(struct suspension_member *member)
{
	list_remove(&member->link);
	member->suspension = NULL;
	member->is_asked = false;
}

void suspension_finish(struct suspension *suspension)
{
	LIST_FOR_EACH(member, &suspension->members, struct suspension_member, link) {
		forget(member);
	}
}

void suspension_join(struct suspension *suspension, struct suspension_member *member)
{
	assert(!member->suspension);
	member->suspension = suspension;
	member->is_asked = false;
	list_append(&suspension->members, &member->link);
}

/* ---- steps ---- */

static void tell(
	struct suspension *suspension, struct suspension_asker *asker, const struct error *err)
{
	struct suspension_asker told = *asker;
	*asker = (struct suspension_asker){0};
	if (told.done) {
		sandbox_raise_later(suspension->sandbox, told.done, told.data, err);
	}
}

static void order_all(struct suspension *suspension, bool freezes);

static void settle(struct suspension *suspension)
{
	if (suspension->unanswered > 0) {
		return;
	}
	if (suspension->state == SUSPENSION_FREEZING) {
		if (suspension->err.code == ERROR_NONE && suspension->is_taken_back) {
			error_set_reason(&suspension->err, ERROR_UNAVAILABLE, "PAUSE_INTERRUPTED",
				"suspending the sandbox: a resume was requested before all of it "
				"was frozen");
		}
		if (suspension->err.code != ERROR_NONE) {
			suspension->state = SUSPENSION_THAWING;
			order_all(suspension, false);
			return;
		}
		suspension->state = SUSPENSION_FROZEN;
		tell(suspension, &suspension->suspends, NULL);
	} else if (suspension->state == SUSPENSION_THAWING) {
		suspension->state = SUSPENSION_RUNNING;
		tell(suspension, &suspension->suspends, &suspension->err);
		tell(suspension, &suspension->resumes, NULL);
	}
}

static void order_all(struct suspension *suspension, bool freezes)
{
	LIST_FOR_EACH(member, &suspension->members, struct suspension_member, link) {
		member->is_asked = member->order(member, freezes);
		suspension->unanswered += member->is_asked ? 1 : 0;
	}
	settle(suspension);
}

void suspension_note_signals(struct suspension_member *member, const char *why)
{
	struct suspension *suspension = member->suspension;
	if (suspension && why) {
		text_format(suspension->by_signals, sizeof(suspension->by_signals), "%s", why);
	}
}

void suspension_answer(struct suspension_member *member, const struct error *err)
{
	struct suspension *suspension = member->suspension;
	if (!suspension || !member->is_asked) {
		return;
	}
	member->is_asked = false;
	suspension->unanswered--;
	if (err && suspension->state == SUSPENSION_FREEZING && suspension->err.code == ERROR_NONE) {
		suspension->err = *err;
		error_prefix(&suspension->err, "suspending the sandbox");
	}
	settle(suspension);
}

void suspension_leave(struct suspension_member *member)
{
	struct suspension *suspension = member->suspension;
	if (suspension) {
		bool was_asked = member->is_asked;
		forget(member);
		suspension->unanswered -= was_asked ? 1 : 0;
		if (was_asked) {
			settle(suspension);
		}
	}
}

void suspension_suspend(struct suspension *suspension, sandbox_done *done, void *data)
{
	struct error err;
	if (suspension->state == SUSPENSION_FROZEN) {
		sandbox_raise_later(suspension->sandbox, done, data, NULL);
		return;
	}
	if (suspension->state != SUSPENSION_RUNNING) {
		error_set_reason(&err, ERROR_UNAVAILABLE, "PAUSE_INTERRUPTED",
			"suspending the sandbox: another suspend or a resume is under way");
		sandbox_raise_later(suspension->sandbox, done, data, &err);
		return;
	}
	suspension->suspends = (struct suspension_asker){done, data};
	suspension->state = SUSPENSION_FREEZING;
	suspension->is_taken_back = false;
	suspension->by_signals[0] = '\0';
	suspension->err = (struct error){0};
	order_all(suspension, true);
}

void suspension_resume(struct suspension *suspension, sandbox_done *done, void *data)
{
	struct error err;
	if (done) { // the last caller is still waiting
		error_set_reason(&err, ERROR_UNAVAILABLE, "PAUSE_INTERRUPTED",
			"resuming the sandbox: another resume was requested meanwhile");
		tell(suspension, &suspension->resumes, &err);
		suspension->resumes = (struct suspension_asker){done, data};
	}
	if (suspension->state == SUSPENSION_RUNNING) {
		tell(suspension, &suspension->resumes, NULL);
	} else if (suspension->state == SUSPENSION_FREEZING) {
		suspension->is_taken_back = true;
	} else if (suspension->state == SUSPENSION_FROZEN) {
		suspension->state = SUSPENSION_THAWING;
		order_all(suspension, false);
	}
}
