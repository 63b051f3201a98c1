/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "base/utf8.h"

/* A pipe accepts a line of this length as a whole or not at all. */
static_assert(LOG_LINE_MAX <= PIPE_BUF, "a line is one atomic write");

static const struct {
	const char *word;
	const char *prefix;
} levels[] = {
	[LOG_LEVEL_ERROR] = {"error", "<3>"},
	[LOG_LEVEL_WARNING] = {"warning", "<4>"},
	[LOG_LEVEL_INFO] = {"info", "<6>"},
	[LOG_LEVEL_DEBUG] = {"debug", "<7>"},
};

/* The log belongs to the process, like stderr. */
static atomic_int current_level = LOG_LEVEL_INFO;
static atomic_int current_format = LOG_FORMAT_TEXT;
static atomic_uint dropped; // lines, not reported yet
static atomic_bool is_torn; // the last write ended inside of a line
static atomic_int own_fd = -1;
static atomic_int own_pid; // the process that own_fd belongs to

/* What a JSON line has beside its text; a member that is NULL is left out. */
struct about {
	const char *session, *code;
};

/* A line being put together. */
struct line {
	char data[LOG_LINE_MAX];
	bool is_json;
	size_t len;
	size_t cut;     // where the text ends if "…" must follow
	bool overflown; // accepts no more text
};

static const char *line_tail(const struct line *line)
{
	return line->is_json ? "\"}\n" : "\n";
}

/*
 * Appends the whole text. If that leaves no room for the end of the line, drops this and all later
 * text.
 */
static void line_append(struct line *line, struct span text)
{
	size_t room = sizeof(line->data) - strlen(line_tail(line));
	if (line->overflown || text.len > room - line->len) {
		line->overflown = true;
		return;
	}
	memcpy(line->data + line->len, text.data, text.len);
	line->len += text.len;
	if (line->len + strlen(TEXT_CUT) <= room) {
		line->cut = line->len;
	}
}

/*
 * Appends a character, or an escape, of a value. If the line is JSON, it is inside of a JSON
 * string.
 */
static void line_append_piece(struct line *line, struct span text)
{
	if (!line->is_json || text.len == 0) {
		line_append(line, text);
	} else if (text.data[0] == '\t') {
		line_append(line, SPAN_LITERAL("\\t"));
	} else {
		char quoted[sizeof("\\\\xNN")]; // only its first byte can need a backslash
		size_t len = 0;
		if (text.data[0] == '\\' || text.data[0] == '"') {
			quoted[len++] = '\\';
		}
		assert(len + text.len <= sizeof(quoted));
		memcpy(quoted + len, text.data, text.len);
		line_append(line, (struct span){quoted, len + text.len});
	}
}

/*
 * C0, DEL and (as two bytes) C1, which a terminal could take for commands. Also characters that
 * change the order of the rest of the line.
 */
static bool is_control(struct span character)
{
	unsigned char first = (unsigned char)character.data[0];
	if (character.len == 2) {
		return first == 0xc2 && (unsigned char)character.data[1] < 0xa0;
	}
	if (character.len == 1) {
		return first != '\t' && (first < 0x20 || first == 0x7f);
	}
	return utf8_is_reordering(character);
}

static void line_append_escaped(struct line *line, struct span text)
{
	while (text.len > 0 && !line->overflown) {
		size_t len = utf8_char_length(text);
		if (len > 0 && !is_control((struct span){text.data, len})) {
			line_append_piece(line, (struct span){text.data, len});
		} else {
			len = len > 0 ? len : 1;
			for (size_t i = 0; i < len; i++) {
				char escape[sizeof("\\xNN")];
				snprintf(escape, sizeof(escape), "\\x%02X",
					(unsigned char)text.data[i]);
				line_append_piece(line, span_of(escape));
			}
		}
		text.data += len;
		text.len -= len;
	}
}

/* A value that would fill half of the line is left out: half of a name is a different name. */
static void line_append_member(struct line *line, const char *name, const char *value)
{
	line_append(line, span_of(name));
	size_t start = line->len;
	if (value) {
		line_append(line, SPAN_LITERAL("\""));
		line_append_escaped(line, span_of(value));
		line_append(line, SPAN_LITERAL("\""));
	}
	if (!value || line->overflown || line->len - start > LOG_LINE_MAX / 2) {
		line->overflown = false;
		line->len = start;
		line_append(line, SPAN_LITERAL("null"));
	}
}

static void line_begin_json(struct line *line, enum log_level level, const struct about *about)
{
	char time[TIMESTAMP_SIZE];
	line_append_member(line, "{\"time\":", timestamp_now(time));
	line_append_member(line, ",\"level\":", levels[level].word);
	line_append_member(line, ",\"session\":", about->session);
	line_append_member(line, ",\"code\":", about->code);
	line_append(line, SPAN_LITERAL(",\"text\":\""));
}

static void line_begin(struct line *line, int fd, enum log_level level, const struct about *about)
{
	line->is_json = log_format_is(LOG_FORMAT_JSON);
	line->len = 0;
	line->cut = 0;
	line->overflown = false;
	if (atomic_exchange(&is_torn, false)) {
		line_append(line, SPAN_LITERAL("\n"));
	}
	if (line->is_json) {
		line_begin_json(line, level, about);
	} else if (!isatty(fd)) {
		line_append(line, span_of(levels[level].prefix));
	}
}

static void line_end(struct line *line)
{
	if (line->overflown) {
		line->len = line->cut;
		line->overflown = false;
		line_append(line, SPAN_LITERAL(TEXT_CUT));
	}
	size_t tail = strlen(line_tail(line));
	memcpy(line->data + line->len, line_tail(line), tail);
	line->len += tail;
}

static int log_fd(void)
{
	int fd = atomic_load(&own_fd);
	return fd >= 0 && atomic_load(&own_pid) == getpid() ? fd : STDERR_FILENO;
}

/*
 * Writes without waiting. A file descriptor that log_init opened never blocks. For a shared one,
 * poll shows that a whole line fits (for a pipe: a free page), unless another process writes
 * between the two calls.
 */
static ssize_t write_now(int fd, struct span bytes)
{
	ssize_t count = send(fd, bytes.data, bytes.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (count >= 0 || errno != ENOTSOCK) {
		return count;
	}
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	int polled = poll(&ready, 1, 0);
	if (polled > 0 && ready.revents == POLLOUT) {
		return write(fd, bytes.data, bytes.len);
	}
	if (polled >= 0) {
		errno = ready.revents & (POLLERR | POLLHUP | POLLNVAL) ? EPIPE : EAGAIN;
	}
	return -1;
}

static bool line_write(struct line *line, int fd)
{
	ssize_t count;
	line_end(line);
	do {
		count = write_now(fd, (struct span){line->data, line->len});
	} while (count < 0 && errno == EINTR);
	bool is_whole = count == (ssize_t)line->len;
	if (!is_whole && (count > 0 || line->data[0] == '\n')) {
		atomic_store(&is_torn, true);
	}
	return is_whole;
}

static void tell_dropped(int fd)
{
	unsigned int count = atomic_exchange(&dropped, 0);
	if (count == 0) {
		return;
	}
	char text[128];
	snprintf(text, sizeof(text), "log: lines dropped because stderr was full: %u", count);
	struct line line;
	line_begin(&line, fd, LOG_LEVEL_WARNING, &(struct about){NULL, NULL});
	line_append(&line, span_of(text));
	if (!line_write(&line, fd)) {
		atomic_fetch_add(&dropped, count);
	}
}

static void log_parts(
	enum log_level level, const struct about *about, const struct span *parts, size_t count)
{
	int saved_errno = errno;
	int fd = log_fd();
	tell_dropped(fd);
	struct line line;
	line_begin(&line, fd, level, about);
	for (size_t i = 0; i < count; i++) {
		line_append_escaped(&line, parts[i]);
	}
	if (!line_write(&line, fd)) {
		atomic_fetch_add(&dropped, 1);
	}
	errno = saved_errno;
}

/* The session's id, if the format begins with "session %s": the first argument, whatever it is. */
static const char *session_of(const char *format, va_list args)
{
	static const char subject[] = "session %s";
	if (strncmp(format, subject, strlen(subject)) != 0) {
		return NULL;
	}
	va_list copy;
	va_copy(copy, args);
	const char *session = va_arg(copy, const char *);
	va_end(copy);
	return session;
}

static void log_formatted(enum log_level level, const char *code, const char *format, va_list args)
	ATTR_PRINTF(3, 0);

static void log_formatted(enum log_level level, const char *code, const char *format, va_list args)
{
	if (!log_is_on(level)) {
		return;
	}
	struct about about = {session_of(format, args), code};
	/* Longer than any line, so that a cut here is also a visible cut there. */
	char text[LOG_LINE_MAX + 8];
	int saved_errno = errno;
	int len = vsnprintf(text, sizeof(text), format, args);
	errno = saved_errno;
	if (len >= 0) {
		struct span all = {text, strlen(text)};
		log_parts(level, &about, &all, 1);
	}
}

void log_init(enum log_level level)
{
	log_set_level(level);
	int old = atomic_exchange(&own_fd, -1);
	if (old >= 0 && atomic_load(&own_pid) == getpid()) {
		close(old);
	}
	atomic_store(&own_pid, getpid());
	atomic_store(&own_fd, fd_open_anew(STDERR_FILENO, O_WRONLY));
}

void log_set_level(enum log_level level)
{
	atomic_store(&current_level, (int)level);
}

void log_set_format(enum log_format format)
{
	atomic_store(&current_format, (int)format);
}

bool log_format_is(enum log_format format)
{
	return atomic_load(&current_format) == (int)format;
}

bool log_is_on(enum log_level level)
{
	return (int)level <= atomic_load(&current_level);
}

void log_error(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	log_formatted(LOG_LEVEL_ERROR, NULL, format, args);
	va_end(args);
}

void log_warning(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	log_formatted(LOG_LEVEL_WARNING, NULL, format, args);
	va_end(args);
}

void log_info(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	log_formatted(LOG_LEVEL_INFO, NULL, format, args);
	va_end(args);
}

void log_debug(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	log_formatted(LOG_LEVEL_DEBUG, NULL, format, args);
	va_end(args);
}

void log_failure(enum log_level level, const struct error *err, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	log_formatted(level, error_told_code(err), format, args);
	va_end(args);
}

void log_line(enum log_level level, const char *subject, struct span line)
{
	if (!log_is_on(level)) {
		return;
	}
	if (line.len > 0 && line.data[line.len - 1] == '\n') {
		line.len--;
	}
	if (line.len > 0 && line.data[line.len - 1] == '\r') {
		line.len--;
	}
	const struct span parts[] = {span_of(subject), SPAN_LITERAL(": "), line};
	log_parts(level, &(struct about){NULL, NULL}, parts, ARRAY_LENGTH(parts));
}

bool log_level_parse(const char *word, enum log_level *out_level)
{
	for (size_t i = 0; i < ARRAY_LENGTH(levels); i++) {
		if (strcmp(word, levels[i].word) == 0) {
			*out_level = (enum log_level)i;
			return true;
		}
	}
	return false;
}

bool log_format_parse(const char *word, enum log_format *out_format)
{
	bool is_json = strcmp(word, "json") == 0;
	if (!is_json && strcmp(word, "text") != 0) {
		return false;
	}
	*out_format = is_json ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT;
	return true;
}
