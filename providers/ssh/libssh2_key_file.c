/* SPDX-License-Identifier: MIT */
#include "providers/ssh/libssh2_key_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "base/base64.h"

bool wire_take_u32(struct span *bytes, unsigned int *out_number)
{
	if (bytes->len < 4) {
		return false;
	}
	const unsigned char *at = (const unsigned char *)bytes->data;
	*out_number = (unsigned int)at[0] << 24 | (unsigned int)at[1] << 16 |
	              (unsigned int)at[2] << 8 | at[3];
	bytes->data += 4;
	bytes->len -= 4;
	return true;
}

bool wire_take_string(struct span *bytes, struct span *out_string)
{
	unsigned int len;
	struct span rest = *bytes;
	if (!wire_take_u32(&rest, &len) || rest.len < len) {
		return false;
	}
	*out_string = (struct span){rest.data, len};
	*bytes = (struct span){rest.data + len, rest.len - len};
	return true;
}

bool wire_put_u32(struct buf *buf, size_t number, struct error *err)
{
	char bytes[WIRE_U32_SIZE] = {
		(char)(number >> 24), (char)(number >> 16), (char)(number >> 8), (char)number};
	return buf_append(buf, (struct span){bytes, sizeof(bytes)}, err);
}

bool wire_put_string(struct buf *buf, struct span string, struct error *err)
{
	return wire_put_u32(buf, string.len, err) && buf_append(buf, string, err);
}

const char *key_blob_type(struct span blob, char *text, size_t size)
{
	struct span type = {NULL, 0};
	text[0] = '\0';
	if (wire_take_string(&blob, &type) && type.len < size) {
		text_whole(text, size, "%.*s", (int)type.len, type.data);
	}
	return text;
}

bool key_type_is_special(const char *type)
{
	return strncmp(type, "sk-", 3) == 0 || strstr(type, "-cert-v0");
}

/* Decodes the text up to the first character that is neither base64 nor a line end. */
static bool decode_lines(struct span text, struct buf *out)
{
	char *joined = mem_alloc(text.len + 1);
	size_t len = 0;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];
		if (isalnum((unsigned char)c) || c == '+' || c == '/' || c == '=') {
			joined[len++] = c;
		} else if (c != '\n' && c != '\r') {
			break;
		}
	}
	uint8_t *bytes = NULL;
	size_t size = 0;
	bool is_base64 = base64_decode((struct span){joined, len}, &bytes, &size) &&
	                 buf_append(out, (struct span){(const char *)bytes, size}, NULL);
	explicit_bzero(joined, text.len + 1);
	if (bytes) {
		explicit_bzero(bytes, size);
	}
	free(joined);
	free(bytes);
	return is_base64;
}

static bool read_file(const char *path, struct buf *out, struct error *err)
{
	int fd ATTR_CLEANUP(fd_cleanup) = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat status;
	if (fd < 0 || fstat(fd, &status) != 0) {
		int errnum = errno;
		error_set_errno(err, errnum, "opening %s", path);
		err->code = errnum == ENOENT ? ERROR_NOT_FOUND : ERROR_SYSTEM;
		return false;
	}
	if (!S_ISREG(status.st_mode)) {
		return error_set(err, ERROR_CONFIG, "%s is not a regular file", path);
	}
	for (;;) {
		char *room = buf_reserve(out, 4096, err);
		if (!room) {
			return error_prefix(err, "reading %s", path);
		}
		ssize_t count = read(fd, room, 4096);
		if (count < 0 && errno != EINTR) {
			return error_set_errno(err, errno, "reading %s", path);
		}
		buf_commit(out, count > 0 ? (size_t)count : 0);
		if (count == 0) {
			return true;
		}
	}
}

/* openssh-key-v1: magic, cipher, KDF, its options, number of keys, the public key. */
static void read_openssh(struct span body, struct key_file *key)
{
	static const char magic[] = "openssh-key-v1";
	struct span cipher;
	struct span skipped;
	struct span blob;
	unsigned int count;
	if (body.len < sizeof(magic) || memcmp(body.data, magic, sizeof(magic)) != 0) {
		return;
	}
	body = (struct span){body.data + sizeof(magic), body.len - sizeof(magic)};
	if (!wire_take_string(&body, &cipher) || !wire_take_string(&body, &skipped) ||
		!wire_take_string(&body, &skipped) || !wire_take_u32(&body, &count) ||
		!wire_take_string(&body, &blob)) {
		return;
	}
	key->is_encrypted = !span_is(cipher, "none");
	key_blob_type(blob, key->type, sizeof(key->type));
	(void)!buf_append(&key->blob, blob, NULL); // smaller than its file, so it fits
}

/* "TYPE BASE64 COMMENT" */
static void read_public(struct span text, struct key_file *key)
{
	const char *space = memchr(text.data, ' ', text.len);
	if (!space || key->blob.len > 0) {
		return;
	}
	size_t used = (size_t)(space + 1 - text.data);
	if (decode_lines((struct span){space + 1, text.len - used}, &key->blob)) {
		key_blob_type(buf_span(&key->blob), key->type, sizeof(key->type));
	}
	if (!key->type[0]) {
		buf_clear(&key->blob);
	}
}

static bool has(struct span text, const char *word)
{
	return memmem(text.data, text.len, word, strlen(word)) != NULL;
}

static void read_private(struct span text, struct key_file *key)
{
	static const char begin[] = "-----BEGIN OPENSSH PRIVATE KEY-----";
	const char *at = memmem(text.data, text.len, begin, strlen(begin));
	key->is_private = has(text, "PRIVATE KEY-----");
	if (!at) {
		key->is_encrypted =
			has(text, "BEGIN ENCRYPTED PRIVATE KEY") || has(text, "4,ENCRYPTED");
		text_whole(key->type, sizeof(key->type), "%s",
			has(text, "BEGIN RSA PRIVATE KEY") ? "ssh-rsa" : "");
		return;
	}
	size_t skip = (size_t)(at - text.data) + strlen(begin);
	struct buf body;
	buf_init(&body, KEY_FILE_MAX);
	if (decode_lines((struct span){text.data + skip, text.len - skip}, &body)) {
		read_openssh(buf_span(&body), key);
	}
	if (body.data) {
		explicit_bzero(body.data, body.capacity);
	}
	buf_finish(&body);
}

static bool read_part(const char *path, struct key_file *key, struct error *err)
{
	struct buf text;
	buf_init(&text, KEY_FILE_MAX);
	bool is_read = read_file(path, &text, err);
	if (is_read && has(buf_span(&text), "-----BEGIN ")) {
		read_private(buf_span(&text), key);
	} else if (is_read) {
		read_public(buf_span(&text), key);
	}
	if (text.data) {
		explicit_bzero(text.data, text.capacity);
	}
	buf_finish(&text);
	return is_read;
}

bool key_file_read(const char *path, struct key_file *out_key, struct error *err)
{
	char public_path[PATH_MAX];
	*out_key = (struct key_file){.type = ""};
	buf_init(&out_key->blob, KEY_FILE_MAX);
	struct error failure;
	bool is_there = read_part(path, out_key, &failure);
	if (out_key->blob.len == 0) {
		text_whole(public_path, sizeof(public_path), "%s.pub", path);
		struct error ignored;
		is_there = read_part(public_path, out_key, &ignored) || is_there;
	}
	if (!is_there) {
		buf_finish(&out_key->blob);
		return error_set(err, failure.code, "%s", failure.text);
	}
	return true;
}

void key_file_finish(struct key_file *key)
{
	buf_finish(&key->blob);
}
