/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SUSPENSION_H
#define PROVIDERS_SUSPENSION_H

#include "base/list.h"
#include "providers/impl.h"

/*
 * Suspends a sandbox process by process, for platforms that cannot suspend it as a whole. Asks each
 * process with exec_spec.suspends, waits for all answers, and lets all run again if one cannot be
 * frozen. Embedded in a sandbox. Loop thread.
 */
struct suspension_asker {
	sandbox_done *done; // NULL: nobody waits for it
	void *data;
};

struct suspension {
	struct sandbox *sandbox;
	struct list members; // struct suspension_member
	enum {
		SUSPENSION_RUNNING,
		SUSPENSION_FREEZING,
		SUSPENSION_FROZEN,
		SUSPENSION_THAWING,
	} state;
	size_t unanswered;
	bool is_taken_back;   // a resume came before all were frozen
	char by_signals[256]; // why a process (the last one) needed signals; "": none did
	struct suspension_asker suspends, resumes;
	struct error err; // the first error of a freeze
};

struct suspension_member {
	struct list link;              // suspension.members
	struct suspension *suspension; // NULL: it has not joined
	/*
	 * Freezes the process or lets it run. False: no answer follows, because there is nothing to
	 * do.
	 */
	bool (*order)(struct suspension_member *member, bool freezes);
	bool is_asked; // it has been asked and has not answered yet
};

void suspension_init(struct suspension *suspension, struct sandbox *sandbox);

/* Forgets the members; raises nothing more. */
void suspension_finish(struct suspension *suspension);

/* A member that joins while the others are frozen keeps running. */
void suspension_join(struct suspension *suspension, struct suspension_member *member);

/* The member has ended and answers no more. Fine for one that has not joined. */
void suspension_leave(struct suspension_member *member);

/* Call it before the answer: the process was frozen by signals, and why. NULL does nothing. */
void suspension_note_signals(struct suspension_member *member, const char *why);

/* The answer to an order; with an error the process keeps running. */
void suspension_answer(struct suspension_member *member, const struct error *err);

/* Implement sandbox_suspend and sandbox_resume. */
void suspension_suspend(struct suspension *suspension, sandbox_done *done, void *data);
void suspension_resume(struct suspension *suspension, sandbox_done *done, void *data);

/* Implements sandbox_suspended_by_signals. */
const char *suspension_by_signals(const struct suspension *suspension);

#endif
