/* SPDX-License-Identifier: MIT */
#include "providers/ssh/libssh2_agent.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "providers/ssh/libssh2_key_file.h"

/* draft-miller-ssh-agent, "Message numbers". */
enum {
	AGENTC_REQUEST_IDENTITIES = 11,
	AGENT_IDENTITIES_ANSWER = 12,
	AGENTC_SIGN_REQUEST = 13,
	AGENT_SIGN_RESPONSE = 14,
	AGENT_RSA_SHA2_256 = 2, // flags of a signing request
	AGENT_RSA_SHA2_512 = 4,
};

/* RFC 4252, 6 and 7. */
enum { USERAUTH_REQUEST = 50, IS_SIGNED = 1 };

enum { ABORT_LOOK_MS = 100 };

/* Waits until the socket is ready for `events`. */
static bool agent_wait(struct agent *agent, short events, struct error *err)
{
	for (;;) {
		struct pollfd at = {.fd = agent->fd, .events = events};
		if (atomic_load(agent->is_aborted)) {
			return error_set(err, ERROR_TIMEOUT, "given up");
		}
		if (clock_now_ms() >= agent->deadline_ms) {
			return error_set(err, ERROR_TIMEOUT, "no answer in time");
		}
		int ready = poll(&at, 1, ABORT_LOOK_MS);
		if (ready > 0) {
			return true;
		}
		if (ready < 0 && errno != EINTR) {
			return error_set_errno(err, errno, "waiting for it");
		}
	}
}

/* Reads or writes `len` bytes. */
static bool agent_move(
	struct agent *agent, char *in, const char *out, size_t len, struct error *err)
{
	size_t moved = 0;
	while (moved < len) {
		ssize_t count = in ? recv(agent->fd, in + moved, len - moved, 0)
		                   : send(agent->fd, out + moved, len - moved, MSG_NOSIGNAL);
		if (count > 0) {
			moved += (size_t)count;
		} else if (count == 0) {
			return error_set(err, ERROR_UNAVAILABLE, "it has closed the connection");
		} else if (errno == EAGAIN) {
			if (!agent_wait(agent, in ? POLLIN : POLLOUT, err)) {
				return false;
			}
		} else if (errno != EINTR) {
			return error_set_errno(err, errno, "%s", in ? "reading" : "writing");
		}
	}
	return true;
}

/*
 * Sends one message; `body` begins with its number. Receives the answer, which must be `expected`.
 */
static bool agent_ask(
	struct agent *agent, struct span body, char expected, struct buf *answer, struct error *err)
{
	struct buf head;
	buf_init(&head, 4);
	bool is_sent = wire_put_u32(&head, body.len, err) &&
	               agent_move(agent, NULL, head.data, head.len, err) &&
	               agent_move(agent, NULL, body.data, body.len, err);
	buf_finish(&head);
	char bytes[4];
	struct span size = {bytes, sizeof(bytes)};
	unsigned int len = 0;
	if (!is_sent || !agent_move(agent, bytes, NULL, sizeof(bytes), err) ||
		!wire_take_u32(&size, &len)) {
		return false;
	}
	char *room = len > 0 && len <= AGENT_MESSAGE_MAX ? buf_reserve(answer, len, err) : NULL;
	if (!room) {
		return error_set(err, ERROR_PROTOCOL, "its answer has a length of %u", len);
	}
	if (!agent_move(agent, room, NULL, len, err)) {
		return false;
	}
	buf_commit(answer, len);
	return room[0] == expected || error_set(err, ERROR_UNAVAILABLE, "it refused (message %u)",
					      (unsigned int)(unsigned char)room[0]);
}

static bool agent_connect(struct agent *agent, const char *path, struct error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address.sun_path)) {
		return error_set(err, ERROR_CONFIG, "the path is too long");
	}
	memcpy(address.sun_path, path, strlen(path));
	agent->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* EAGAIN: it accepts no more connections now, and there is nothing to wait for. */
	if (agent->fd < 0 ||
		connect(agent->fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		return error_set_errno(err, errno, "connecting");
	}
	return true;
}

static bool read_identities(struct agent *agent, struct error *err)
{
	struct span rest = buf_span(&agent->answer);
	unsigned int count;
	rest = (struct span){rest.data + 1, rest.len - 1};
	if (!wire_take_u32(&rest, &count)) {
		return error_set(err, ERROR_PROTOCOL, "its answer is too short");
	}
	while (count-- > 0 && agent->key_count < AGENT_KEYS_MAX) {
		struct agent_key *key = &agent->keys[agent->key_count++];
		if (!wire_take_string(&rest, &key->blob) ||
			!wire_take_string(&rest, &key->comment)) {
			return error_set(err, ERROR_PROTOCOL, "its list of keys is incomplete");
		}
	}
	return true;
}

bool agent_open(struct agent *agent, const char *path, long long deadline_ms,
	const atomic_bool *is_aborted, struct error *err)
{
	*agent = (struct agent){.fd = -1, .deadline_ms = deadline_ms, .is_aborted = is_aborted};
	buf_init(&agent->answer, AGENT_MESSAGE_MAX);
	static const char ask[] = {AGENTC_REQUEST_IDENTITIES};
	if (!agent_connect(agent, path, err) ||
		!agent_ask(agent, (struct span){ask, 1}, AGENT_IDENTITIES_ANSWER, &agent->answer,
			err) ||
		!read_identities(agent, err)) {
		agent_close(agent);
		return false;
	}
	return true;
}

void agent_close(struct agent *agent)
{
	fd_close(&agent->fd);
	buf_finish(&agent->answer);
	agent->key_count = 0;
}

/* A string that contains the format and the signature, each a string. */
static bool take_signature(
	struct span answer, unsigned char **out_signature, size_t *out_len, struct error *err)
{
	struct span rest = {answer.data + 1, answer.len - 1};
	struct span both;
	struct span format;
	struct span signature;
	if (!wire_take_string(&rest, &both) || !wire_take_string(&both, &format) ||
		!wire_take_string(&both, &signature) || signature.len == 0) {
		return error_set(err, ERROR_PROTOCOL, "its signature is invalid");
	}
	*out_signature = mem_alloc(signature.len);
	memcpy(*out_signature, signature.data, signature.len);
	*out_len = signature.len;
	return true;
}

static bool take_byte(struct span *bytes, char expected)
{
	if (bytes->len == 0 || bytes->data[0] != expected) {
		return false;
	}
	*bytes = (struct span){bytes->data + 1, bytes->len - 1};
	return true;
}

/*
 * Chooses flags for the algorithm in the signed login request (RFC 4252, 7). An RSA key signs with
 * SHA-1 unless flags say otherwise; every other type of key has only one signature.
 */
static size_t flags_for(struct span data)
{
	struct span session;
	struct span user;
	struct span service;
	struct span method;
	struct span algorithm;
	if (!wire_take_string(&data, &session) || !take_byte(&data, USERAUTH_REQUEST) ||
		!wire_take_string(&data, &user) || !wire_take_string(&data, &service) ||
		!wire_take_string(&data, &method) || !span_is(method, "publickey") ||
		!take_byte(&data, IS_SIGNED) || !wire_take_string(&data, &algorithm)) {
		return 0;
	}
	if (span_is(algorithm, "rsa-sha2-256")) {
		return AGENT_RSA_SHA2_256;
	}
	return span_is(algorithm, "rsa-sha2-512") ? AGENT_RSA_SHA2_512 : 0;
}

bool agent_sign(struct agent *agent, const struct agent_key *key, struct span data,
	unsigned char **out_signature, size_t *out_len, struct error *err)
{
	static const char number = AGENTC_SIGN_REQUEST;
	struct buf request;
	struct buf answer;
	buf_init(&request, AGENT_MESSAGE_MAX);
	buf_init(&answer, AGENT_MESSAGE_MAX);
	bool is_signed = buf_append(&request, (struct span){&number, 1}, err) &&
	                 wire_put_string(&request, key->blob, err) &&
	                 wire_put_string(&request, data, err) &&
	                 wire_put_u32(&request, flags_for(data), err) &&
	                 agent_ask(agent, buf_span(&request), AGENT_SIGN_RESPONSE, &answer, err) &&
	                 take_signature(buf_span(&answer), out_signature, out_len, err);
	buf_finish(&request);
	buf_finish(&answer);
	return is_signed;
}
