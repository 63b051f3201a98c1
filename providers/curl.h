/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_CURL_H
#define PROVIDERS_CURL_H

/* libcurl's macros that check option types hide the functions' names. */
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * libcurl, loaded when the first call needs it (base/library.h).
 *
 * CURL_FUNCTIONS lists all functions that are used, without "curl_". A name in it can be called as
 * curl->name, with the type of libcurl's own declaration.
 */
#define CURL_FUNCTIONS(X)                                                                          \
	X(easy_cleanup)                                                                            \
	X(easy_getinfo)                                                                            \
	X(easy_init)                                                                               \
	X(easy_pause)                                                                              \
	X(easy_setopt)                                                                             \
	X(easy_strerror)                                                                           \
	X(free)                                                                                    \
	X(getdate)                                                                                 \
	X(global_init_mem)                                                                         \
	X(multi_add_handle)                                                                        \
	X(multi_assign)                                                                            \
	X(multi_cleanup)                                                                           \
	X(multi_info_read)                                                                         \
	X(multi_init)                                                                              \
	X(multi_remove_handle)                                                                     \
	X(multi_setopt)                                                                            \
	X(multi_socket_action)                                                                     \
	X(slist_append)                                                                            \
	X(slist_free_all)                                                                          \
	X(url)                                                                                     \
	X(url_cleanup)                                                                             \
	X(url_get)                                                                                 \
	X(url_set)                                                                                 \
	X(version_info)

#define CURL_MEMBER(name) __typeof__(curl_##name) *(name);
struct curl {
	CURL_FUNCTIONS(CURL_MEMBER)
};
#undef CURL_MEMBER

/*
 * Loads and initialises the library. Its memory is wiped when it is freed, because the library
 * copies what it sends. It stays until the program ends. ERROR_UNAVAILABLE names the package to
 * install if the library or one of its functions is missing, or if it would block to resolve a
 * name. Any thread; may block for some milliseconds.
 */
const struct curl *curl_open(struct error *err) ATTR_NODISCARD;

#endif
