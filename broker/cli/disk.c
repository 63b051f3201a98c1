/* SPDX-License-Identifier: MIT */
#include "broker/cli/disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/path_quote.h"
#include "base/text.h"
#include "broker/cli/command.h"
#include "broker/cli/stderr_line.h"

/* ---- texts ---- */

const char *disk_size_text(char text[DISK_TEXT_SIZE], long long bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double number = bytes > 0 ? (double)bytes : 0;
	size_t unit = 0;
	while (number >= 1000 && unit + 1 < ARRAY_LENGTH(units)) {
		number /= 1024;
		unit++;
	}
	text_format(text, DISK_TEXT_SIZE, unit > 0 && number < 100 ? "%.1f %s" : "%.0f %s", number,
		units[unit]);
	return text;
}

const char *disk_age_text(char text[DISK_TEXT_SIZE], time_t used)
{
	static const struct {
		long long seconds;
		const char *suffix;
	} units[] = {{24 * 3600, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}};
	long long age = (long long)(time(NULL) - used);
	age = age > 0 ? age : 0;
	size_t unit = 0;
	while (unit + 1 < ARRAY_LENGTH(units) && age < units[unit].seconds) {
		unit++;
	}
	text_format(text, DISK_TEXT_SIZE, "%lld%s", age / units[unit].seconds, units[unit].suffix);
	return used > 0 ? text : "-";
}

char *disk_name(const struct holding *holding)
{
	char *name;
	char *quoted = path_quote(span_of(holding->workspace ? holding->workspace : holding->path));
	if (asprintf(&name, "%s %s%s", holding_kind_name(holding->kind),
		    holding->workspace ? "of " : "", quoted) < 0) {
		name = mem_strdup("");
	}
	free(quoted);
	return name;
}

/* ---- du ---- */

static void write_holding(struct json_writer *writer, const struct holding *holding)
{
	json_write_object(writer);
	json_write_member(writer, "kind", holding_kind_name(holding->kind));
	json_write_member(writer, "state", holding_state_name(holding->state));
	json_write_member(writer, "why", *holding->why ? holding->why : NULL);
	json_write_member(writer, "path", holding->path);
	json_write_member(writer, "workspace", holding->workspace);
	json_write_member_bool(writer, "isGone", holding->is_gone);
	json_write_member_int(writer, "bytes", holding->bytes);
	json_write_member_int(writer, "used", (long long)holding->used);
	json_write_member(writer, "session", *holding->record ? holding->record : NULL);
	json_write_object_end(writer);
}

static void write_holdings(struct json_writer *writer, const void *data)
{
	const struct holdings *holdings = data;
	json_write_key(writer, "holdings");
	json_write_array(writer);
	for (size_t i = 0; i < holdings->count; i++) {
		write_holding(writer, &holdings->list[i]);
	}
	json_write_array_end(writer);
}

static void print_holding(const struct holding *holding)
{
	char size[DISK_TEXT_SIZE], age[DISK_TEXT_SIZE];
	printf("%-6s  %9s  %5s  %-13s  ", holding_kind_name(holding->kind),
		disk_size_text(size, holding->bytes), disk_age_text(age, holding->used),
		holding_state_name(holding->state));
	command_print_path(holding->workspace ? holding->workspace : holding->path);
	if (holding->is_gone) {
		fputs("  (is gone)", stdout);
	}
	if (*holding->why) {
		printf("  %s", holding->why);
	}
	putchar('\n');
}

static void print_holdings(const struct holdings *holdings)
{
	char text[DISK_TEXT_SIZE];
	long long bytes = 0;
	if (holdings->count == 0) {
		stderr_note("nothing is kept in the state folder");
		return;
	}
	printf("%-6s  %9s  %5s  %-13s  %s\n", "KIND", "SIZE", "AGE", "STATE", "WORKSPACE");
	for (size_t i = 0; i < holdings->count; i++) {
		print_holding(&holdings->list[i]);
		bytes += holdings->list[i].bytes > 0 ? holdings->list[i].bytes : 0;
	}
	printf("%-6s  %9s\n", "all", disk_size_text(text, bytes));
}

static bool du(const struct sessions_means *means, struct error *err)
{
	struct holdings holdings;
	bool ok = holdings_find(&holdings, means->state_folder, true, err);
	if (ok && means->options->flags & OPTION_JSON) {
		ok = command_print_json(write_holdings, &holdings, err);
	} else if (ok) {
		print_holdings(&holdings);
	}
	holdings_finish(&holdings);
	return ok;
}

bool disk_act(const struct sessions_means *means, struct error *err)
{
	if (!means->state_folder) {
		return error_set(err, ERROR_CONFIG, "neither XDG_STATE_HOME nor HOME is set");
	}
	bool ok = means->options->command == COMMAND_DU ? du(means, err) : disk_prune(means, err);
	return ok;
}
