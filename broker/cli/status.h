/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_STATUS_H
#define BROKER_CLI_STATUS_H

#include "base/json_writer.h"
#include "broker/cli/sessions.h"
#include "broker/ledger/turn_lock.h"

/*
 * acp-broker status: prints which brokers run and what each of them does. It asks no broker, but
 * reads the folder of the records (broker/ledger/record.h): a held lock shows that a broker runs.
 * It changes nothing, and trusts a record as `sessions list` does.
 */
bool status_run(
	const struct options *options, const char *state_folder, struct error *err) ATTR_NODISCARD;

/* ---- for status_watch.c ---- */

/* One session of a broker. If no process has the session, its broker has ended. */
struct status_view {
	const struct session_entry *entry;
	enum turn_state turn;
	char in_flight[TURN_TEXT_MAX]; // "" unless a turn is open
};

struct status_view status_view_of(int folder_fd, const struct session_entry *entry);
void status_write(struct json_writer *writer, const struct status_view *view);

/* Prints one line for people, without the newline. */
void status_print(const struct status_view *view);

/* Loads the sessions of all brokers, including those that work in the workspace itself. */
bool status_load(int folder_fd, const char *state_folder, struct session_entries *out,
	struct error *err) ATTR_NODISCARD;

/* Prints a line whenever a session begins, changes or ends, until nobody reads stdout any more. */
bool status_watch(
	int folder_fd, const char *state_folder, bool is_json, struct error *err) ATTR_NODISCARD;

#endif
