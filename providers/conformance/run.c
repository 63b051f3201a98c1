/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/text.h"
#include "providers/conformance/conformance.h"
#include "providers/script_run.h"

enum { OUTPUT_MAX = 8 << 20 };

struct run {
	const struct conformance_spec *spec;
	struct conformance_result *result;
	struct script_run *script; // owned
	bool was_killed;
	bool is_over;
	struct error err; // ERROR_NONE: it has ended without an error
};

static void on_output(void *data, struct span output, const char *words)
{
	struct run *run = data;
	const char *wanted = run->spec->kill_after;
	if (wanted && !run->was_killed && memmem(output.data, output.len, wanted, strlen(wanted))) {
		run->was_killed = true;
		script_run_kill(run->script);
	}
}

static void on_end(void *data, struct buf *output, const char *words, const struct error *err)
{
	struct run *run = data;
	run->is_over = true;
	if (err) {
		run->err = *err;
		return;
	}
	buf_move(&run->result->out, output);
	run->result->status = script_run_status(run->script);
}

static const struct script_listener script_listener = {.on_output = on_output, .on_end = on_end};

bool conformance_run(struct conformance_place *place, const struct conformance_spec *spec,
	struct conformance_result *out, struct error *err)
{
	struct run run = {.spec = spec, .result = out};
	struct script_order order = {
		.argv = spec->argv,
		.env = spec->env,
		.cwd = spec->is_at_home ? NULL
	               : spec->cwd      ? spec->cwd
	                                : place->root,
		.input = spec->input,
		.output_max = OUTPUT_MAX,
		.errors = &out->errors,
		.until_emptied = true,
	};
	*out = (struct conformance_result){.status = {0}};
	buf_init(&out->out, OUTPUT_MAX);
	buf_init(&out->errors, OUTPUT_MAX);
	run.script =
		script_run_start(place->loop, place->sandbox, &order, &script_listener, &run, err);
	bool ok = run.script && place->wait(place->data, &run.is_over, err);
	if (ok && run.err.code != ERROR_NONE) {
		*err = run.err;
		ok = false;
	}
	script_run_destroy(run.script);
	if (!ok) {
		conformance_result_finish(out);
	}
	return ok;
}

void conformance_result_finish(struct conformance_result *result)
{
	buf_finish(&result->out);
	buf_finish(&result->errors);
}

bool conformance_shell(
	struct conformance_place *place, const char *line, struct buf *out, struct error *err)
{
	const char *argv[] = {"sh", "-c", line, NULL};
	struct conformance_result result;
	if (!conformance_run(place, &(struct conformance_spec){.argv = argv}, &result, err)) {
		return false;
	}
	bool ok = result.status.signal == 0 && result.status.code == 0;
	if (!ok) {
		char how[64];
		struct span said = buf_span(&result.errors);
		char shown[304];
		text_format(
			shown, sizeof(shown), "%.*s", (int)said.len, said.data ? said.data : "");
		error_set(err, ERROR_UNAVAILABLE, "sh -c '%s' %s: %s", line,
			process_status_text(result.status, how, sizeof(how)), shown);
	} else if (out) {
		buf_move(out, &result.out);
	}
	conformance_result_finish(&result);
	return ok;
}
