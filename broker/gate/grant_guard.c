/* SPDX-License-Identifier: MIT */
#include "broker/gate/grant_guard.h"

#include <string.h>

#include "broker/session/serving.h"

/*
 * guard-paths: a write of such a file into the user's own directory asks the user, whatever the
 * mode and the rules allow. A write into the agent's own sandbox reaches the directory by a sync,
 * which asks by itself (sync/guard_paths.h).
 */
static const char rule[] = "guard-paths";
static const char rule_pinned[] = "guard-paths: confine pins it";

bool grant_guards_write(const struct peer *peer, enum policy_operation operation)
{
	/*
	 * Either the broker serves the user's own files, or the editor serves them to an agent with
	 * other files.
	 */
	return operation == POLICY_WRITE && relay_uses_toolhost(peer) == relay_shares_files(peer);
}

/* The path below a root; NULL if it is not below it. */
static const char *below(const char *path, const char *root)
{
	size_t len = strlen(root);
	while (len > 0 && root[len - 1] == '/') {
		len--;
	}
	return strncmp(path, root, len) == 0 && path[len] == '/' ? path + len + 1 : NULL;
}

/*
 * A path outside of every root is checked from its top, because it may be another name of one
 * inside.
 */
static bool is_guarded(
	const struct guard_paths *guard, const char *path, const struct session *session)
{
	bool is_inside = false;
	for (char **root = session ? session->roots : NULL; root && *root; root++) {
		const char *rest = below(path, *root);
		is_inside = is_inside || rest;
		if (rest && guard_paths_have(guard, *root, rest, false)) {
			return true;
		}
	}
	return !is_inside && guard_paths_have(guard, "", path, false);
}

/* Nobody may write a file for an agent that its confinement keeps from it. */
static bool is_pinned(const struct peer *peer, const struct subject *subject)
{
	const struct sandbox *sandbox = agent_sandbox(peer->agent);
	return sandbox && subject->operation == POLICY_WRITE && subject->paths &&
	       sandbox_is_pinned(sandbox, subject->paths[0]);
}

void grant_guard_decide(const struct peer *peer, const struct session *session,
	const struct subject *subject, struct grant_decision *decision)
{
	const struct guard_paths *guard = peer->relay->config.profile->sync.guard_paths;
	if (is_pinned(peer, subject)) {
		decision->verdict.decision = POLICY_REJECT_ONCE;
		decision->verdict.rule = rule_pinned;
		decision->source = GRANT_BY_MODE;
		return;
	}
	if (!guard || !grant_guards_write(peer, subject->operation) || !subject->paths ||
		!grant_decision_allows(decision->verdict.decision) ||
		(!is_guarded(guard, subject->paths[0], session) &&
			(!subject->asked || !is_guarded(guard, subject->asked[0], session)))) {
		return;
	}
	enum policy_decision remembered = memory_find(session ? session->memory : NULL, subject);
	if (remembered == POLICY_ALLOW_ALWAYS) {
		return;
	}
	decision->verdict.decision = remembered;
	decision->verdict.rule =
		remembered == POLICY_PENDING ? rule : "remembered: always reject (guard-paths)";
	decision->source = remembered == POLICY_PENDING ? GRANT_BY_MODE : GRANT_BY_MEMORY;
}
