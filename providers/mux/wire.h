/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_MUX_WIRE_H
#define PROVIDERS_MUX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

/*
 * The bytes between a broker and the runner in a sandbox. This folder knows the format and the
 * rules of the link (mux.h); it knows no event loop, no carrier and no sandbox. The runner
 * (providers/runner/) uses it with poll, the broker (providers/remote/) with libev.
 *
 * ---- frames ----
 *
 * Each side first sends RUNNER_MARK; anything before it (a login shell's banner) is dropped. Frames
 * follow, each with a header of RUNNER_HEADER bytes, little endian:
 *
 *    u16 size of the payload | u8 type | u8 flags | u32 stream | u64 number
 *
 * A frame has at most RUNNER_FRAME_MAX bytes, including its header. The mark, the header, and the
 * frames HELLO, END and STATUS never change, so that every broker can end every older runner. Their
 * payload consists of lines "name=value\n"; a reader skips unknown names.
 *
 * A stream is a sequence of bytes in one direction. `number` of a DATA frame is the position of its
 * first byte in the stream, so a receiver can tell bytes that it has from new ones. After a lost
 * channel, each side says with WINDOW how much it has received, and the other side continues from
 * there (RESUMED). Stream 0 carries messages: u32 size, then the message.
 */
#define RUNNER_MARK                                                                                \
	"\n\x1e"                                                                                   \
	"acp-runner link\n"
enum {
	RUNNER_VERSION = 1, // covers everything that may change; `version` in HELLO
	RUNNER_HEADER = 16,
	RUNNER_FRAME_MAX = 16384,
	RUNNER_PAYLOAD_MAX = RUNNER_FRAME_MAX - RUNNER_HEADER,
	RUNNER_TEXT_MAX = 4096,       // payload of HELLO, END and STATUS
	RUNNER_BANNER_MAX = 65536,    // bytes before the mark
	RUNNER_CONTROL_STREAM = 0,    //
	RUNNER_MESSAGE_MAX = 4 << 20, // from a broker: an argv and an environment
	RUNNER_REPORT_MAX = 65536,    // from a runner
};

enum runner_type {
	/*
	 * The first frame of each side in a channel. Runner: version, build, pid, uid, home,
	 * machine, boot. Broker: version, build, grace-ms (time without a frame after which the
	 * runner ends). In the first channel of a run that may outlive it, the broker adds key (64
	 * hexadecimal digits) and orphan-ms (time without a channel after which the runner ends, if
	 * the last channel ended while it was in use).
	 */
	RUNNER_HELLO = 1,
	/*
	 * From the broker: end all processes. From the runner, as its last frame: all have ended,
	 * or some cannot be ended; then `left` is their number, and `why` the reason for people.
	 */
	RUNNER_END = 2,
	RUNNER_STATUS = 3, // broker: a question; runner: the answer: runs, streams, build
	RUNNER_DATA = 4,   // flags: RUNNER_FIN
	/*
	 * To the sender of a stream: `number` bytes have arrived, and it may send bytes up to the
	 * position in the payload (u64). Both numbers only grow; the sender ignores a frame with
	 * smaller ones.
	 */
	RUNNER_WINDOW = 5,
	RUNNER_PING = 6, // `number` is the sender's clock
	RUNNER_PONG = 7, // the same number
	/*
	 * Sent once in each channel except the first, after a WINDOW for stream 0 and for every
	 * other stream that its receiver still reads. All other streams up to `number` have ended
	 * at the receiver. DATA follows once both sides have sent RESUMED: from the position in the
	 * stream's WINDOW, or from 0 in a stream that the receiver does not know yet.
	 */
	RUNNER_RESUMED = 8,
};
enum { RUNNER_FIN = 1 }; // the stream ends after these bytes

/*
 * How a new channel attaches to a running runner, before the mark. The runner sends "attach
 * NONCE\n", with RUNNER_NONCE_SIZE hexadecimal digits. The broker, which knows the key, answers
 * "attach NUMBER PROOF\n". The number is larger than all before (the first channel has 0). The
 * proof, in hexadecimal digits, is the HMAC-SHA256 of "NONCE NUMBER" with the key. The runner then
 * leaves its old channel.
 */
enum { RUNNER_KEY_SIZE = 32, RUNNER_NONCE_SIZE = 64 };

/* Appends the answer's line. */
bool runner_attach_answer(struct buf *out, const char key[RUNNER_KEY_SIZE], struct span nonce,
	uint64_t number, struct error *err) ATTR_NODISCARD;

/* Whether a line, without its newline, is that answer with a correct proof; returns its number. */
bool runner_attach_check(
	struct span line, const char key[RUNNER_KEY_SIZE], struct span nonce, uint64_t *out_number);

struct runner_header {
	size_t size;
	uint8_t type; // enum runner_type, or unknown
	uint8_t flags;
	uint32_t stream;
	uint64_t number;
};
void runner_put_header(char out[RUNNER_HEADER], const struct runner_header *header);
bool runner_get_header(
	const char bytes[RUNNER_HEADER], struct runner_header *out); // false: too large

/* Finds the value of `name` in the lines of a payload; false if there is none. */
bool runner_find_line(struct span text, const char *name, struct span *out);

/* ---- messages ---- */

/*
 * `id` names an exec or a request. The broker chooses it: each is larger than all before, from 1
 * on. It chooses stream numbers in the same way, and names each stream, with its window, in the
 * message that needs it. A runner never opens a stream by itself.
 *
 * Messages overtake the bytes of streams, so EXITED can come before the last output. STARTED or
 * FAILED answers an exec; then EXITED and EMPTIED follow, as in base/process.h. Every other request
 * has one answer: one of the kinds named beside it, or FAILED.
 */
enum runner_kind {
	/* Internal to the link; its owner never sees it. */
	RUNNER_RESET = 1, // from either side: no more bytes follow, or nobody reads them

	/* broker to runner */
	RUNNER_EXEC = 16,
	RUNNER_SIGNAL,      // to the group of an exec
	RUNNER_KILL,        // the tree of an exec
	RUNNER_RELEASE,     // the tree of an exec; nothing more is reported; no answer
	RUNNER_FREEZE,      // an exec's tree: FROZEN
	RUNNER_THAW,        // THAWED
	RUNNER_ROOT_ADD,    // PATH: the folder without links; it must exist
	RUNNER_ROOT_REMOVE, // DONE, even if no root has this name
	RUNNER_READ,        // DONE: `size` bytes come on the stream
	RUNNER_WRITE,       // after `size` bytes and the end of the stream: DONE
	RUNNER_STAT,        // STATUS_OF
	RUNNER_RESOLVE,     // PATH
	RUNNER_LIST,   // DONE: entries come on the stream: type ("f", "d", "l", "o"), name, NUL
	RUNNER_CANCEL, // a file request: an answer may or may not come; a write may still happen
	RUNNER_GRACE,  // how long the run goes on without the broker; no answer
	/*
	 * A connection to a port of the machine's loopback. No answer: its streams are reset if it
	 * cannot be made, or breaks.
	 */
	RUNNER_CONNECT,
	RUNNER_RESIZE, // the terminal of an exec; no answer

	/* runner to broker */
	RUNNER_STARTED = 64,
	RUNNER_FAILED,
	RUNNER_EXITED,
	RUNNER_EMPTIED,
	RUNNER_FROZEN, // `text`: why signals are used instead of a cgroup, or ""
	RUNNER_THAWED,
	RUNNER_DONE,
	RUNNER_PATH,
	RUNNER_STATUS_OF,
};

/* A stream and its window: how many bytes may be under way. Stream 0: none. */
struct runner_stream {
	uint32_t stream;
	uint64_t window;
};

/* Texts without NUL. For writing: `list`. After reading: `packed`, where each text ends in NUL. */
struct runner_words {
	const char *const *list; // NULL-terminated; borrowed
	struct span packed;      // borrowed from the message that was read
};

/* Of a terminal, in characters. Each number is below 65536; 0: unknown. */
struct runner_size {
	uint64_t rows;
	uint64_t columns;
};

/*
 * Without `in`, stdin is /dev/null. Without `err`, stderr goes where stdout goes. With
 * `has_terminal`, all three are a new terminal, which controls the process's session. `in` leads to
 * its keyboard, `out` comes from its screen, and there is no `err`.
 */
struct runner_exec {
	struct runner_words argv; // argv[0] is looked up in env's PATH
	struct runner_words env;  // complete
	struct span cwd;          // absolute
	uint64_t cwd_root;        // as in struct exec_spec
	struct runner_stream in;
	struct runner_stream out;
	struct runner_stream err;
	uint64_t is_bulk;    // its output is sent after that of others (for terminals and scripts)
	uint64_t is_grouped; // gets its own cgroup if possible
	uint64_t has_terminal;
	struct runner_size size; // of the terminal
};

struct runner_file {
	struct span path;            // absolute; READ and WRITE: below a root
	uint64_t no_links;           // READ, WRITE: FILE_LINKS_REFUSED
	uint64_t asks_mount;         // STAT: is_read_only is asked for
	uint64_t size;               // WRITE: of the content. READ: at most
	struct runner_stream stream; // READ, WRITE, LIST
};

struct runner_status_of { // the fields of struct stat
	uint64_t mode, size, inode, device, links, uid, gid;
	uint64_t mtime_s, mtime_ns;
	uint64_t is_read_only; // the mount on which the file is; 0 if nobody asked
};

/* To 127.0.0.1, or else to ::1. A runner connects to no other address. */
struct runner_connect {
	uint64_t port;            // 1 to 65535
	struct runner_stream in;  // to the program that listens there
	struct runner_stream out; // from it
};

struct runner_failure {
	uint64_t code;      // enum error_code; an unknown one is ERROR_SYSTEM
	struct span reason; // "" or a name as in docs/errors.md
	struct span text;
};

/* Replaces grace-ms of HELLO. */
struct runner_grace {
	uint64_t ms;
	/*
	 * The broker's machine is about to be suspended. So if the channel ends now, the broker has
	 * not ended, and orphan-ms does not count.
	 */
	uint64_t is_suspend;
};

struct runner_exit {
	uint64_t code;
	uint64_t signal; // 0: by exit(code)
};

struct runner_message {
	enum runner_kind kind;
	uint64_t id; // RESET: the stream
	union {
		struct runner_exec exec;           // EXEC
		struct runner_size resize;         // RESIZE
		struct runner_file file;           // ROOT_*, READ, WRITE, STAT, RESOLVE, LIST, PATH
		struct runner_failure failure;     // FAILED, FROZEN (its text alone)
		struct runner_grace grace;         // GRACE
		struct runner_connect connect;     // CONNECT
		struct runner_exit exit;           // EXITED
		struct runner_status_of status_of; // STATUS_OF
		uint64_t signal;                   // SIGNAL
		uint64_t pid;                      // STARTED
		uint64_t size;                     // DONE
	};
};

/*
 * Appends the message. ERROR_LIMIT if it does not fit, ERROR_CONFIG if it contains a word that
 * cannot be sent.
 */
bool runner_message_write(
	struct buf *out, const struct runner_message *message, struct error *err) ATTR_NODISCARD;

/*
 * Reads a message; its texts are borrowed from the bytes. ERROR_PROTOCOL if the bytes are not a
 * message of a known kind. Skips fields at the end that a newer version has added.
 */
bool runner_message_read(
	struct span bytes, struct runner_message *out, struct error *err) ATTR_NODISCARD;

/* The texts as a NULL-terminated array. The caller frees only the array. */
const char **runner_words_list(struct span packed);

/*
 * Converts between FAILED and struct error. An unknown reason is dropped; so are characters in the
 * text that would hide or reorder other characters.
 */
void runner_set_failure(struct runner_message *out, uint64_t id, const struct error *err);
void runner_get_failure(const struct runner_failure *failure, struct error *out);

/*
 * Copies as much of the other machine's text as fits, with "?" in place of characters that hide or
 * reorder others.
 */
void runner_show(char *out, size_t size, struct span text);

#endif
