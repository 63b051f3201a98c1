/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_LIBSSH2_KEY_FILE_H
#define PROVIDERS_SSH_LIBSSH2_KEY_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

/*
 * What can be said of a private key without its passphrase: OpenSSH's own format ("PROTOCOL.key"
 * of OpenSSH) tells its type and public half, PEM hardly more than whether it is encrypted.
 */
enum { KEY_FILE_MAX = 256 * 1024 };

struct key_file {
	char type[64];     // "ssh-ed25519"; "" where the file does not say
	bool is_encrypted; // a passphrase is needed
	bool is_private;   // else: a public key alone
	struct buf blob;   // the public key as on the wire; empty where it is not known
};

/*
 * Reads `path`, and `path`.pub for what it does not say. ERROR_NOT_FOUND where neither is there.
 * Blocks, but never on what is no regular file.
 */
bool key_file_read(const char *path, struct key_file *out_key, struct error *err) ATTR_NODISCARD;
void key_file_finish(struct key_file *key);

/* The first string of a public key's blob: its type; returns text, "" where there is none. */
const char *key_blob_type(struct span blob, char *text, size_t size);

/* uint32 of the wire, as everywhere in SSH (RFC 4251, 5). */
bool wire_take_u32(struct span *bytes, unsigned int *out_number) ATTR_NODISCARD;
bool wire_take_string(struct span *bytes, struct span *out_string) ATTR_NODISCARD;
enum { WIRE_U32_SIZE = 4 };
bool wire_put_u32(struct buf *buf, size_t number, struct error *err) ATTR_NODISCARD;
bool wire_put_string(struct buf *buf, struct span string, struct error *err) ATTR_NODISCARD;

/* A type that signs with more than the key: FIDO ("sk-…") or a certificate. */
bool key_type_is_special(const char *type);

#endif
