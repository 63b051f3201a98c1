/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SUSPENSION_H
#define PROVIDERS_SUSPENSION_H

#include "base/list.h"
#include "providers/impl.h"

/*
 * Suspends a sandbox process by process, for providers whose platform cannot do it as a whole: asks
 * each process that was started with exec_spec.suspends, waits for all answers, and lets all go on
 * again where one cannot be frozen. Embedded in a sandbox. Loop thread.
 */
struct suspension_asker {
	sandbox_done *done; // NULL: nobody asks
	void *data;
};

struct suspension {
	struct sandbox *sandbox;
	struct list members; // of struct suspension_member
	enum {
		SUSPENSION_RUNNING,
		SUSPENSION_FREEZING,
		SUSPENSION_FROZEN,
		SUSPENSION_THAWING,
	} state;
	size_t unanswered;
	bool is_taken_back;   // a resume came before it was frozen
	char by_signals[256]; // why one of them, the last, was frozen by signals; "" where none was
	struct suspension_asker suspends, resumes;
	struct error err; // the first, of a freeze
};

struct suspension_member {
	struct list link;              // suspension.members
	struct suspension *suspension; // NULL: of none
	/* Freezes the process, or lets it go on. False: no answer follows, there is nothing to do.
	 */
	bool (*order)(struct suspension_member *member, bool freezes);
	bool is_asked; // and has not answered
};

void suspension_init(struct suspension *suspension, struct sandbox *sandbox);

/* Forgets the members; raises nothing more. */
void suspension_finish(struct suspension *suspension);

/* One that joins while the others are frozen runs. */
void suspension_join(struct suspension *suspension, struct suspension_member *member);

/* It has ended, and answers nothing more. One that is in none is fine. */
void suspension_leave(struct suspension_member *member);

/* Before the answer: it was frozen by signals, and why. Nothing for NULL. */
void suspension_note_signals(struct suspension_member *member, const char *why);

/* The answer to an order; with an error it goes on. */
void suspension_answer(struct suspension_member *member, const struct error *err);

/* As sandbox_suspend and sandbox_resume. */
void suspension_suspend(struct suspension *suspension, sandbox_done *done, void *data);
void suspension_resume(struct suspension *suspension, sandbox_done *done, void *data);

/* As sandbox_suspended_by_signals. */
const char *suspension_by_signals(const struct suspension *suspension);

#endif
