/* SPDX-License-Identifier: MIT */
#include "providers/conformance/conformance.h"

#include "base/attr.h"
#include "providers/conformance/cases.h"

const struct conformance_case conformance_cases[] = {
	{"exit-status", CONFORMANCE_PROCESSES, true, "exit codes and signals arrive",
		case_exit_status},
	{"streams", CONFORMANCE_PROCESSES, true, "stdout and stderr are separate", case_streams},
	{"half-close", CONFORMANCE_PROCESSES, false, "output after the end of stdin",
		case_half_close},
	{"bytes", CONFORMANCE_PROCESSES, false, "1 MiB there and back", case_bytes},
	{"arguments", CONFORMANCE_PROCESSES, false, "arguments arrive word by word",
		case_arguments},
	{"environment", CONFORMANCE_PROCESSES, false, "variables may contain any text",
		case_environment},
	{"directory", CONFORMANCE_PROCESSES, true, "a process starts in the requested folder",
		case_directory},
	{"not-started", CONFORMANCE_PROCESSES, false,
		"the error names a program that cannot be started", case_not_started},
	{"kill", CONFORMANCE_PROCESSES, false, "a kill ends a process and its children", case_kill},
	{"parallel", CONFORMANCE_PROCESSES, false, "several processes run at once", case_parallel},
	{"files", CONFORMANCE_FILES, true, "files are written, read and looked at", case_files},
	{"modes", CONFORMANCE_FILES, false, "writes leave the permission bits", case_modes},
	{"parents", CONFORMANCE_FILES, true, "folders of any name are made", case_parents},
	{"stat", CONFORMANCE_FILES, false, "type, size and mode are reported", case_stat},
	{"reading", CONFORMANCE_FILES, false, "files are read whole, up to a limit", case_reading},
	{"special", CONFORMANCE_FILES, false, "only regular files are read and written",
		case_special},
	{"names", CONFORMANCE_FILES, false, "file names may contain any character", case_names},
	{"confinement", CONFORMANCE_FILES, false, "names that leave the workspace are refused",
		case_confinement},
	{"relative", CONFORMANCE_FILES, false, "paths that are not absolute are refused",
		case_relative},
	{"links", CONFORMANCE_FILES, false, "links that leave it are refused", case_links},
	{"inner-links", CONFORMANCE_FILES, false, "links inside it are followed", case_inner_links},
	{"dots", CONFORMANCE_FILES, false, "dots inside it work", case_dots},
	{"missing", CONFORMANCE_FILES, false, "paths of missing files are resolved", case_missing},
	{"overlong", CONFORMANCE_FILES, false, "paths that are too long are refused",
		case_overlong},
};
const size_t conformance_case_count = ARRAY_LENGTH(conformance_cases);

bool conformance_tidy(struct conformance_place *place, struct error *err)
{
	return conformance_shell(place, "rm -rf -- *", NULL, err);
}
