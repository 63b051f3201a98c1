/* SPDX-License-Identifier: MIT */
#ifndef BASE_ATTR_H
#define BASE_ATTR_H

#include <stddef.h>

#define ATTR_NODISCARD __attribute__((warn_unused_result))
#define ATTR_NORETURN __attribute__((noreturn))
#define ATTR_PRINTF(format_at, first_at) __attribute__((format(printf, format_at, first_at)))
#define ATTR_CLEANUP(function) __attribute__((cleanup(function)))

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#define CONTAINER_OF(pointer, type, member)                                                        \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
