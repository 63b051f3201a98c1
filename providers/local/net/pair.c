/* SPDX-License-Identifier: MIT */
#include "providers/local/net/pair.h"

#include "base/io.h"
#include "base/tcp.h"

void pair_watch(struct pair *pair, ev_io *io, int events)
{
	if (ev_is_active(io) && (io->events & (EV_READ | EV_WRITE)) == events) {
		return;
	}
	ev_io_stop(pair->loop, io);
	if (events != 0) {
		ev_io_set(io, io->fd, events);
		ev_io_start(pair->loop, io);
	}
}

void pair_begin(const struct pair *pair)
{
	tcp_keep_alive(pair->client.fd);
	tcp_keep_alive(pair->server.fd);
}

static void watch_both(struct pair *pair)
{
	pair_watch(pair, &pair->client,
		(pipe_wants_read(&pair->up) ? EV_READ : 0) |
			(pipe_wants_write(&pair->down) ? EV_WRITE : 0));
	pair_watch(pair, &pair->server,
		(pipe_wants_read(&pair->down) ? EV_READ : 0) |
			(pipe_wants_write(&pair->up) ? EV_WRITE : 0));
}

enum pair_state pair_relay(struct pair *pair, int moves)
{
	bool is_whole =
		!(moves & PAIR_UP) || pipe_move(&pair->up, pair->client.fd, pair->server.fd);
	is_whole = is_whole && (!(moves & PAIR_DOWN) ||
				       pipe_move(&pair->down, pair->server.fd, pair->client.fd));
	if (!is_whole) {
		return PAIR_BROKEN;
	}
	if (pair->up.is_closed && pair->down.is_closed) {
		return PAIR_DONE;
	}
	watch_both(pair);
	return PAIR_GOES_ON;
}

int pair_client_moves(int events)
{
	return (events & EV_READ ? PAIR_UP : 0) | (events & EV_WRITE ? PAIR_DOWN : 0);
}

int pair_server_moves(int events)
{
	return (events & EV_READ ? PAIR_DOWN : 0) | (events & EV_WRITE ? PAIR_UP : 0);
}

void pair_close(struct pair *pair)
{
	io_close(pair->loop, &pair->client);
	if (pair->server.fd >= 0) {
		io_close(pair->loop, &pair->server);
	}
	pipe_finish(&pair->up);
	pipe_finish(&pair->down);
}

void pair_reset(struct pair *pair)
{
	tcp_make_abrupt(pair->client.fd);
	if (pair->server.fd >= 0) {
		tcp_make_abrupt(pair->server.fd);
	}
	pair_close(pair);
}
