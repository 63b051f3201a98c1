/* SPDX-License-Identifier: MIT */
#ifndef TESTS_ATTACK_CELL_RECORD_H
#define TESTS_ATTACK_CELL_RECORD_H

#include "tests/unit/process_record.h"

#include "providers/local/cell/cell.h"

/* A cell of a test, and what was raised about it. For one .c file. */
struct cell_record {
	struct cell *cell;
	bool is_ready;
	bool has_ended;
	int shown; // how often; -1: it failed
	struct error err;
};

static inline void on_ready(void *data)
{
	((struct cell_record *)data)->is_ready = true;
}

static inline void on_ended(void *data, const struct error *err)
{
	struct cell_record *record = data;
	record->has_ended = true;
	record->err = *err;
}

static const struct cell_listener cell_listener = {.on_ready = on_ready, .on_ended = on_ended};

static inline void on_shown(void *data, const struct error *err)
{
	struct cell_record *record = data;
	record->shown = err ? -1 : record->shown + 1;
	if (err) {
		record->err = *err;
	}
}

static inline void turn_until(const bool *is_so)
{
	ev_timer tick;
	ev_timer_init(&tick, on_tick, 0.01, 0.01);
	ev_timer_start(loop, &tick);
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	while (!*is_so && clock_now_ms() < deadline_ms) {
		ev_run(loop, EVRUN_ONCE);
	}
	ev_timer_stop(loop, &tick);
	assert_true(*is_so);
}

static inline void wait_for_cell(const struct cell_record *record)
{
	bool is_over = false;
	ev_timer tick;
	ev_timer_init(&tick, on_tick, 0.01, 0.01);
	ev_timer_start(loop, &tick);
	while (!is_over) {
		ev_run(loop, EVRUN_ONCE);
		is_over = record->is_ready || record->has_ended;
	}
	ev_timer_stop(loop, &tick);
}

#endif
