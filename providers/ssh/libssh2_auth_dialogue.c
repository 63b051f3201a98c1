/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "providers/ssh/libssh2_auth.h"
#include "providers/ssh/libssh2_session.h"

/*
 * keyboard-interactive (RFC 4256). Servers that ask for the password in this way ask one question,
 * whose answer is hidden. The password command answers it once. Every other dialogue needs a user,
 * and the ssh program to ask that user.
 */

/*
 * The prompt with which sshd asks for the account's password: see openssh_askpass.c. Not
 * terminated.
 */
static bool asks_for_password(const LIBSSH2_USERAUTH_KBDINT_PROMPT *prompt)
{
	struct span text = {(const char *)prompt->text, prompt->length};
	if (text.len > 0 && text.data[text.len - 1] == ' ') {
		text.len--;
	}
	return !prompt->echo && (span_equals(text, SPAN_LITERAL("Password:")) ||
					span_equals(text, SPAN_LITERAL("password:")));
}

/* Unanswered questions get an empty answer; the server then refuses. */
static void on_questions(const char *name, int name_len, const char *instruction,
	int instruction_len, int count, const LIBSSH2_USERAUTH_KBDINT_PROMPT *prompts,
	LIBSSH2_USERAUTH_KBDINT_RESPONSE *responses, void **abstract)
{
	struct login_work *work = login_work_of(abstract);
	struct auth *auth = &work->auth;
	if (count == 0) {
		return; // only information
	}
	if (count != 1 || !asks_for_password(&prompts[0]) || !auth->password) {
		auth->has_open_question = true;
		return;
	}
	size_t len = strlen(auth->password);
	responses[0].text = ssh2_session_alloc(work->ssh2, work->session, len);
	if (responses[0].text) {
		memcpy(responses[0].text, auth->password, len);
		responses[0].length = (unsigned int)len;
	}
	mem_wipe_free(auth->password);
	auth->password = NULL;
}

static enum auth_result answer(struct login_work *work)
{
	struct auth *auth = &work->auth;
	auth->has_open_question = false;
	login_bound_call(work);
	int outcome = work->ssh2->userauth_keyboard_interactive_ex(
		work->session, work->target.user, auth_user_len(work), on_questions);
	mem_wipe_free(auth->password);
	auth->password = NULL;
	enum auth_result result = auth_proof_outcome(work, outcome, "the password (asked for)");
	if (result == AUTH_NEXT && auth->has_open_question) {
		auth_note(&auth->unsupported,
			"the server asked for more than the password (keyboard-interactive)");
	}
	return result;
}

enum auth_result auth_try_dialogue(struct login_work *work, enum login_need *out_need)
{
	struct auth *auth = &work->auth;
	if (!auth_may_try(work, "keyboard-interactive")) {
		return AUTH_NEXT;
	}
	if (auth->password) {
		return answer(work);
	}
	if (work->target.password_command && !auth->has_asked_password) {
		auth->has_asked_password = true;
		*out_need = LOGIN_NEEDS_PASSWORD;
		return AUTH_ASK;
	}
	/*
	 * If nothing was refused, this is usually a second factor. A key that nobody can unlock is
	 * reported first, because then nobody could answer these questions either.
	 */
	if ((auth->attempts == 0 && !auth->has_locked) || work->target.has_user) {
		auth_note(&auth->unsupported,
			"the server would ask questions (keyboard-interactive)");
	}
	return AUTH_NEXT;
}
