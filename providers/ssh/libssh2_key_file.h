/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_LIBSSH2_KEY_FILE_H
#define PROVIDERS_SSH_LIBSSH2_KEY_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

/*
 * The parts of a private key file that can be read without its passphrase. OpenSSH's own format
 * ("PROTOCOL.key" of OpenSSH) has the type and the public half; PEM says little more than whether
 * it is encrypted.
 */
enum { KEY_FILE_MAX = 256 * 1024 };

struct key_file {
	char type[64];     // "ssh-ed25519"; "": the file does not say it
	bool is_encrypted; // it needs a passphrase
	bool is_private;   // false: only a public key
	struct buf blob;   // the public key as on the wire; empty: unknown
};

/*
 * Reads `path`, and takes missing parts from `path`.pub. ERROR_NOT_FOUND if neither exists. Blocks,
 * but never on a file that is not regular.
 */
bool key_file_read(const char *path, struct key_file *out_key, struct error *err) ATTR_NODISCARD;
void key_file_finish(struct key_file *key);

/* Returns text: the type, which is the first string in a public key's blob; "": none. */
const char *key_blob_type(struct span blob, char *text, size_t size);

/* Reads a uint32 as SSH sends it (RFC 4251, 5). */
bool wire_take_u32(struct span *bytes, unsigned int *out_number) ATTR_NODISCARD;
bool wire_take_string(struct span *bytes, struct span *out_string) ATTR_NODISCARD;
enum { WIRE_U32_SIZE = 4 };
bool wire_put_u32(struct buf *buf, size_t number, struct error *err) ATTR_NODISCARD;
bool wire_put_string(struct buf *buf, struct span string, struct error *err) ATTR_NODISCARD;

/* Whether the type is FIDO ("sk-…") or a certificate: then a login needs more than the key. */
bool key_type_is_special(const char *type);

#endif
