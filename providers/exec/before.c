/* SPDX-License-Identifier: MIT */
#include "providers/exec/before.h"

#include "base/buf.h"
#include "providers/script_line.h"

static const char before_text[] =
#include "providers/exec/before.sh.inc"
	;

bool exec_before_append(const struct exec_before *before, struct buf *out, struct error *err)
{
	if (before->program) {
		/* So that it answers in time even if what is left there does not end. */
		long long wait_ms = before->timeout_ms / 3 * 2;
		return buf_append_format(out, err, "wait %lld\n", wait_ms) &&
		       ssh_runs_append_lines(before->runs, before->place, out, err) &&
		       buf_append(out, (struct span){"", 1}, err); // the NUL
	}
	return buf_append(out, SPAN_LITERAL("acp_earlier() { :; }; acp_copy="), err) &&
	       script_quote_append(out, span_of(before->copy), err) &&
	       buf_append(out, SPAN_LITERAL("; "), err) &&
	       ssh_runs_append_function(before->runs, before->place, "acp_earlier", out, err) &&
	       buf_append(out, SPAN_LITERAL(" eval "), err) &&
	       script_quote_append(out, span_of(before_text), err) &&
	       buf_append(out, (struct span){";", 2}, err); // with the NUL
}
