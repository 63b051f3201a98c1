/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/hex.h"
#include "providers/remote/remote_impl.h"

/*
 * Another stream to a run that has lost its stream. The broker has sent the key in the HELLO of the
 * first stream, and nowhere else. From then on it only proves that it knows the key
 * (providers/mux/wire.h).
 */

static const char attach_text[] =
#include "providers/remote/attach.sh.inc"
	;

bool remote_attach_hello(const struct remote *remote, struct buf *text, struct error *err)
{
	if (!remote->request.outlives || remote->is_ready) {
		return true;
	}
	/* The key of this run, which we send to nobody else. */
	char key[2 * RUNNER_KEY_SIZE + 1];
	hex_write(key, remote->attach.key, RUNNER_KEY_SIZE);
	bool is_whole =
		buf_append_format(text, err, "orphan-ms=%lld\nkey=", remote->request.orphan_ms) &&
		buf_append(text, span_of(key), err) && buf_append(text, SPAN_LITERAL("\n"), err);
	explicit_bzero(key, sizeof(key));
	return is_whole;
}

bool remote_attach_script(const struct remote *remote, struct buf *out, struct error *err)
{
	return buf_append_format(out, err,
		       "%sacp_token=%s; acp_name=acp-runner.%s; acp_folder=", SCRIPT_SET_NEWLINE,
		       remote->request.token, remote->start.image.build) &&
	       script_quote_append(out, span_of(remote->attach.folder), err) &&
	       buf_append(out, SPAN_LITERAL("; eval "), err) &&
	       script_quote_append(out, span_of(attach_text), err) &&
	       buf_append(out, SPAN_LITERAL("\n"), err);
}

void remote_attach_on_question(struct remote *remote, const char *nonce)
{
	struct remote_attach *attach = &remote->attach;
	struct error err;
	if (strlen(nonce) != RUNNER_NONCE_SIZE ||
		!runner_attach_answer(&remote->start.unsent, attach->key, span_of(nonce),
			++attach->number, &err)) {
		remote_attach_on_gone(remote, "the program there is not a runner");
		return;
	}
	remote->start.is_over = true;
	remote_start_flush(remote);
	remote_begin_link(remote);
}

void remote_attach_on_gone(struct remote *remote, const char *why)
{
	struct error err;
	error_set_reason(&err, ERROR_UNAVAILABLE, "LINK_LOST",
		"%s: what ran there is gone since the connection was lost: %s",
		remote->request.name, why);
	remote_lose(remote, &err);
}
