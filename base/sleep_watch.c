/* SPDX-License-Identifier: MIT */
#include "base/sleep_watch.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/fd_pass.h"
#include "base/hex.h"
#include "base/io.h"
#include "base/text.h"

static const char bus_usual[] = "/run/dbus/system_bus_socket";
static const char logind[] = "org.freedesktop.login1";
static const char logind_path[] = "/org/freedesktop/login1";
static const char manager[] = "org.freedesktop.login1.Manager";
static const char sleep_signal[] = "PrepareForSleep";

/* The format of messages: the D-Bus specification, "Message Protocol". */
enum message_type { MESSAGE_CALL = 1, MESSAGE_RETURN, MESSAGE_ERROR, MESSAGE_SIGNAL };
enum field {
	FIELD_PATH = 1,
	FIELD_INTERFACE,
	FIELD_MEMBER,
	FIELD_ERROR_NAME,
	FIELD_REPLY_SERIAL,
	FIELD_DESTINATION,
	FIELD_SENDER,
	FIELD_SIGNATURE,
};
enum {
	ORDER = __BYTE_ORDER == __LITTLE_ENDIAN ? 'l' : 'B', // messages from here have this order
	FIXED_SIZE = 16,                                     // up to the first field
	TYPE_AT = 1,
	BODY_SIZE_AT = 4,
	FIELDS_SIZE_AT = 12,
	FIELDS_ALIGN = 8,
	FIELD_BEGIN = 4,
	GREETING_LINES = 2, // the answers to AUTH and NEGOTIATE_UNIX_FD
	OUT_MAX = 1024,     // the longest message from here
	ARGUMENTS_MAX = 4,
	PIECE = 4096,
	FDS_MAX = 4,
};

static void give_up(struct sleep_watch *watch)
{
	ev_timer_stop(watch->loop, &watch->delay);
	io_close(watch->loop, &watch->io);
	fd_close(&watch->lock);
	buf_finish(&watch->in);
}

/* ---- messages from here ---- */

struct writer {
	char bytes[OUT_MAX];
	size_t len;
};

static void put_bytes(struct writer *writer, const void *bytes, size_t size)
{
	if (size <= sizeof(writer->bytes) - writer->len) {
		memcpy(writer->bytes + writer->len, bytes, size);
		writer->len += size;
	}
}

static void align(struct writer *writer, size_t size)
{
	while (writer->len % size != 0 && writer->len < sizeof(writer->bytes)) {
		put_bytes(writer, "", 1);
	}
}

static void put_u32(struct writer *writer, uint32_t number)
{
	align(writer, sizeof(number));
	put_bytes(writer, &number, sizeof(number));
}

static void put_string(struct writer *writer, const char *text)
{
	put_u32(writer, (uint32_t)strlen(text));
	put_bytes(writer, text, strlen(text) + 1);
}

static void put_field(struct writer *writer, enum field field, char type, const char *text)
{
	const char begin[] = {(char)field, 1, type, '\0'};
	align(writer, FIELDS_ALIGN);
	put_bytes(writer, begin, sizeof(begin));
	if (type == 'g') {
		char len = (char)strlen(text);
		put_bytes(writer, &len, 1);
		put_bytes(writer, text, strlen(text) + 1);
	} else {
		put_string(writer, text);
	}
}

/* A method of an object; all arguments are strings. */
struct call {
	const char *destination, *path, *interface, *member;
	const char *signature;
	const char *arguments[ARGUMENTS_MAX];
};

/* The socket has room for all that we ever send; a bus that takes nothing is of no use. */
static bool send_all(struct sleep_watch *watch, struct span bytes)
{
	return send(watch->io.fd, bytes.data, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT) ==
	       (ssize_t)bytes.len;
}

static bool send_call(struct sleep_watch *watch, const struct call *call)
{
	struct writer body = {.len = 0};
	struct writer message = {.len = 0};
	for (size_t i = 0; i < ARGUMENTS_MAX && call->arguments[i]; i++) {
		put_string(&body, call->arguments[i]);
	}
	const char begin[] = {ORDER, MESSAGE_CALL, 0, 1};
	put_bytes(&message, begin, sizeof(begin));
	put_u32(&message, (uint32_t)body.len);
	put_u32(&message, ++watch->serial);
	put_u32(&message, 0); // the size of the fields
	put_field(&message, FIELD_PATH, 'o', call->path);
	put_field(&message, FIELD_INTERFACE, 's', call->interface);
	put_field(&message, FIELD_MEMBER, 's', call->member);
	put_field(&message, FIELD_DESTINATION, 's', call->destination);
	if (*call->signature) {
		put_field(&message, FIELD_SIGNATURE, 'g', call->signature);
	}
	uint32_t size = (uint32_t)(message.len - FIXED_SIZE);
	memcpy(message.bytes + FIELDS_SIZE_AT, &size, sizeof(size));
	align(&message, FIELDS_ALIGN);
	put_bytes(&message, body.bytes, body.len);
	return send_all(watch, (struct span){message.bytes, message.len});
}

static bool ask_for_lock(struct sleep_watch *watch)
{
	return send_call(
		watch, &(struct call){.destination = logind,
			       .path = logind_path,
			       .interface = manager,
			       .member = "Inhibit",
			       .signature = "ssss",
			       .arguments = {"sleep", "acp-broker",
				       "tells hosts that this machine will be back", "delay"}});
}

static bool begin(struct sleep_watch *watch)
{
	static const char bus[] = "org.freedesktop.DBus";
	struct call call = {.destination = bus,
		.path = "/org/freedesktop/DBus",
		.interface = bus,
		.member = "Hello",
		.signature = ""};
	if (!send_call(watch, &call)) {
		return false;
	}
	call.member = "AddMatch";
	call.signature = "s";
	call.arguments[0] = "type='signal',sender='org.freedesktop.login1',"
			    "path='/org/freedesktop/login1',"
			    "interface='org.freedesktop.login1.Manager',member='PrepareForSleep'";
	return send_call(watch, &call) && ask_for_lock(watch);
}

/* ---- messages of the bus ---- */

/* A message that has come whole. */
struct reader {
	struct span bytes;
	size_t at;
};

static bool take_u32(struct reader *reader, uint32_t *out)
{
	reader->at += (sizeof(*out) - reader->at % sizeof(*out)) % sizeof(*out);
	if (reader->at + sizeof(*out) > reader->bytes.len) {
		return false;
	}
	memcpy(out, reader->bytes.data + reader->at, sizeof(*out));
	reader->at += sizeof(*out);
	return true;
}

/* The value of a field; a number has no text. False for other types. */
static bool take_value(struct reader *reader, char type, struct span *out)
{
	uint32_t len = 0;
	*out = (struct span){NULL, 0};
	if (type == 'u') {
		return take_u32(reader, &len);
	}
	if (type == 'g' && reader->at < reader->bytes.len) {
		len = (unsigned char)reader->bytes.data[reader->at++];
	} else if ((type != 's' && type != 'o') || !take_u32(reader, &len)) {
		return false;
	}
	size_t rest = reader->bytes.len - reader->at;
	if (len >= rest) { // a NUL follows
		return false;
	}
	*out = (struct span){reader->bytes.data + reader->at, len};
	reader->at += len + 1;
	return true;
}

/* Whether it is the signal; then `begins` is its argument. */
static bool is_sleep(struct span message, size_t fields_end, size_t body_at, bool *out_begins)
{
	struct reader reader = {.bytes = {message.data, fields_end}, .at = FIXED_SIZE};
	bool has_interface = false, has_member = false, has_signature = false;
	uint32_t value;
	while (reader.at < fields_end) {
		struct span text;
		reader.at += (FIELDS_ALIGN - reader.at % FIELDS_ALIGN) % FIELDS_ALIGN;
		const char *field = message.data + reader.at; // its number, and its type as a text
		reader.at += FIELD_BEGIN;
		if (reader.at > fields_end) {
			return false;
		}
		if (field[1] != 1 || !take_value(&reader, field[2], &text)) {
			return false;
		}
		has_interface =
			has_interface || (field[0] == FIELD_INTERFACE && span_is(text, manager));
		has_member =
			has_member || (field[0] == FIELD_MEMBER && span_is(text, sleep_signal));
		has_signature =
			has_signature || (field[0] == FIELD_SIGNATURE && span_is(text, "b"));
	}
	struct reader body = {.bytes = message, .at = body_at};
	if (!has_interface || !has_member || !has_signature || !take_u32(&body, &value)) {
		return false;
	}
	*out_begins = value != 0;
	return true;
}

static void on_delayed(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct sleep_watch *watch = CONTAINER_OF(timer, struct sleep_watch, delay);
	fd_close(&watch->lock);
}

/* Raises at most one event; the handler may stop the watch. */
static void take_sleep(struct sleep_watch *watch, bool begins)
{
	if (begins == watch->is_asleep) {
		return;
	}
	watch->is_asleep = begins;
	ev_timer_stop(watch->loop, &watch->delay);
	if (begins) {
		ev_timer_set(&watch->delay, SLEEP_DELAY_MS / 1000., 0.);
		ev_timer_start(watch->loop, &watch->delay);
	} else if (watch->lock < 0 && !ask_for_lock(watch)) {
		give_up(watch);
	}
	watch->on_sleep(watch, begins);
}

/* False: there is no whole message. */
static bool take_message(struct sleep_watch *watch)
{
	struct span bytes = buf_span(&watch->in);
	uint32_t body_size, fields_size;
	if (bytes.len < FIXED_SIZE) {
		return false;
	}
	memcpy(&body_size, bytes.data + BODY_SIZE_AT, sizeof(body_size));
	memcpy(&fields_size, bytes.data + FIELDS_SIZE_AT, sizeof(fields_size));
	if (bytes.data[0] != ORDER || body_size > SLEEP_MESSAGE_MAX ||
		fields_size > SLEEP_MESSAGE_MAX) {
		give_up(watch);
		return false;
	}
	size_t body_at =
		FIXED_SIZE + (fields_size + FIELDS_ALIGN - 1) / FIELDS_ALIGN * FIELDS_ALIGN;
	size_t size = body_at + body_size;
	if (bytes.len < size) {
		return false;
	}
	bool begins = false;
	bool is_news = bytes.data[TYPE_AT] == MESSAGE_SIGNAL &&
	               is_sleep((struct span){bytes.data, size}, FIXED_SIZE + fields_size, body_at,
			       &begins);
	buf_consume(&watch->in, size);
	if (is_news) {
		take_sleep(watch, begins);
	}
	return watch->io.fd >= 0;
}

/* The bus has accepted us once both lines have come. */
static bool take_line(struct sleep_watch *watch)
{
	struct span bytes = buf_span(&watch->in);
	const char *end = bytes.len > 0 ? memchr(bytes.data, '\n', bytes.len) : NULL;
	if (!end) {
		return false;
	}
	bool is_refused = watch->lines == 0 && strncmp(bytes.data, "OK ", 3) != 0;
	buf_consume(&watch->in, (size_t)(end - bytes.data) + 1);
	watch->lines++;
	if (is_refused || (watch->lines == GREETING_LINES && !begin(watch))) {
		give_up(watch);
		return false;
	}
	return true;
}

static void on_bytes(struct ev_loop *loop, ev_io *io, int events)
{
	struct sleep_watch *watch = CONTAINER_OF(io, struct sleep_watch, io);
	char bytes[PIECE];
	int fds[FDS_MAX];
	size_t count = 0;
	ssize_t size = fd_take(io->fd, bytes, sizeof(bytes), fds, FDS_MAX, &count);
	if (size < 0 && io_is_transient(errno)) {
		return;
	}
	for (size_t i = 0; size > 0 && i < count; i++) {
		fd_close(&watch->lock); // the bus sends no others
		watch->lock = fds[i];
	}
	if (size <= 0 || !buf_append(&watch->in, (struct span){bytes, (size_t)size}, NULL)) {
		give_up(watch);
		return;
	}
	bool goes_on = true;
	while (goes_on) {
		goes_on = watch->lines < GREETING_LINES ? take_line(watch) : take_message(watch);
	}
}

/* ---- life ---- */

/* Only an address of the form "unix:path=PATH" is understood. */
static int connect_to(const char *bus)
{
	static const char form[] = "unix:path=";
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = bus_usual;
	if (bus && *bus) {
		path = strncmp(bus, form, sizeof(form) - 1) == 0 ? bus + sizeof(form) - 1 : "";
	}
	size_t len = strcspn(path, ",;%");
	if (path[len] || !text_whole(address.sun_path, sizeof(address.sun_path), "%s", path) ||
		!*path) {
		return -1;
	}
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		fd_close(&fd);
	}
	return fd;
}

static bool greet(struct sleep_watch *watch)
{
	char user[24], hex[2 * sizeof(user)], text[128];
	snprintf(user, sizeof(user), "%lu", (unsigned long)geteuid());
	hex_write(hex, user, strlen(user));
	/* The first byte is a NUL. */
	int len = snprintf(text + 1, sizeof(text) - 1,
		"AUTH EXTERNAL %s\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n", hex);
	text[0] = '\0';
	return send_all(watch, (struct span){text, (size_t)len + 1});
}

void sleep_watch_start(struct sleep_watch *watch, struct ev_loop *loop, const char *bus,
	void (*on_sleep)(struct sleep_watch *watch, bool begins))
{
	*watch = (struct sleep_watch){.loop = loop, .on_sleep = on_sleep, .lock = -1};
	buf_init(&watch->in, 2 * SLEEP_MESSAGE_MAX + PIECE);
	ev_init(&watch->delay, on_delayed);
	ev_io_init(&watch->io, on_bytes, connect_to(bus), EV_READ);
	if (watch->io.fd < 0) {
		return;
	}
	ev_io_start(loop, &watch->io);
	if (!greet(watch)) {
		give_up(watch);
	}
}

void sleep_watch_stop(struct sleep_watch *watch)
{
	if (watch->loop) {
		give_up(watch);
		watch->loop = NULL;
	}
}
