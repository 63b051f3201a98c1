/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_LIBSSH2_LIBRARY_H
#define PROVIDERS_SSH_LIBSSH2_LIBRARY_H

#include <libssh2.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * libssh2, loaded when the first connection needs it (base/library.h).
 *
 * SSH2_FUNCTIONS lists all functions that are used, without "libssh2_". A name in it can be called
 * as ssh2->name, with the type of libssh2's own declaration.
 */
#define SSH2_FUNCTIONS(X)                                                                          \
	X(channel_direct_tcpip_ex)                                                                 \
	X(channel_eof)                                                                             \
	X(channel_free)                                                                            \
	X(channel_get_exit_signal)                                                                 \
	X(channel_get_exit_status)                                                                 \
	X(channel_open_ex)                                                                         \
	X(channel_process_startup)                                                                 \
	X(channel_read_ex)                                                                         \
	X(channel_receive_window_adjust2)                                                          \
	X(channel_send_eof)                                                                        \
	X(channel_wait_closed)                                                                     \
	X(channel_window_read_ex)                                                                  \
	X(channel_window_write_ex)                                                                 \
	X(channel_write_ex)                                                                        \
	X(free)                                                                                    \
	X(init)                                                                                    \
	X(keepalive_config)                                                                        \
	X(keepalive_send)                                                                          \
	X(session_abstract)                                                                        \
	X(session_callback_set)                                                                    \
	X(session_disconnect_ex)                                                                   \
	X(session_free)                                                                            \
	X(session_handshake)                                                                       \
	X(session_hostkey)                                                                         \
	X(session_init_ex)                                                                         \
	X(session_last_errno)                                                                      \
	X(session_last_error)                                                                      \
	X(session_method_pref)                                                                     \
	X(session_set_blocking)                                                                    \
	X(session_set_timeout)                                                                     \
	X(session_supported_algs)                                                                  \
	X(userauth_authenticated)                                                                  \
	X(userauth_keyboard_interactive_ex)                                                        \
	X(userauth_list)                                                                           \
	X(userauth_password_ex)                                                                    \
	X(userauth_publickey)                                                                      \
	X(userauth_publickey_fromfile_ex)

#define SSH2_MEMBER(name) __typeof__(libssh2_##name) *(name);
struct ssh2 {
	SSH2_FUNCTIONS(SSH2_MEMBER)
};
#undef SSH2_MEMBER

/*
 * Loads and initialises the library. It stays until the program ends, because only the library and
 * its cipher library free what they keep for a thread, when that thread ends. ERROR_UNAVAILABLE
 * names the package to install if the library or one of its functions is missing. Any thread; may
 * block for some milliseconds.
 */
const struct ssh2 *ssh2_open(struct error *err) ATTR_NODISCARD;

/* The library's message about its last failure in this session; borrowed until the next call. */
const char *ssh2_last_text(const struct ssh2 *ssh2, LIBSSH2_SESSION *session);

#endif
