/* SPDX-License-Identifier: MIT */
#include "providers/conformance/conformance.h"

#include "base/attr.h"
#include "providers/conformance/cases.h"

const struct conformance_case conformance_cases[] = {
	{"exit-status", "exit codes and signals arrive", case_exit_status},
	{"streams", "stdout and stderr are apart", case_streams},
	{"half-close", "output after the end of stdin", case_half_close},
	{"bytes", "1 MiB there and back", case_bytes},
	{"arguments", "arguments arrive word by word", case_arguments},
	{"environment", "variables of any text", case_environment},
	{"directory", "a process starts where it should", case_directory},
	{"not-started", "what cannot be started is named", case_not_started},
	{"kill", "a kill ends a whole tree", case_kill},
	{"parallel", "processes beside each other", case_parallel},
	{"files", "files are written, read and looked at", case_files},
	{"modes", "writes leave the permission bits", case_modes},
	{"parents", "folders of any name are made", case_parents},
	{"stat", "type, size and mode are told", case_stat},
	{"reading", "files are read whole, up to a limit", case_reading},
	{"special", "only regular files are read and written", case_special},
	{"names", "files of any name", case_names},
	{"confinement", "names that leave the workspace are refused", case_confinement},
	{"relative", "paths that are not absolute are refused", case_relative},
	{"links", "links that leave it are refused", case_links},
	{"inner-links", "links inside it are followed", case_inner_links},
	{"dots", "dots inside it work", case_dots},
	{"missing", "paths of what is missing are resolved", case_missing},
	{"overlong", "paths that are too long are refused", case_overlong},
};
const size_t conformance_case_count = ARRAY_LENGTH(conformance_cases);

bool conformance_tidy(struct conformance_place *place, struct error *err)
{
	return conformance_shell(place, "rm -rf -- *", NULL, err);
}
