/* SPDX-License-Identifier: MIT */
#ifndef BASE_WORDS_H
#define BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/settings.h"

/* NULL-terminated lists of texts; a list owns its texts. An empty list may be NULL. */

size_t words_count(char *const *words);
bool words_contain(const char *const *words, const char *word);
void words_append(char ***words, const char *word); // copies it
void words_append_all(char ***words, const char *const *more);
char **words_copy(const char *const *words); // never NULL

/* Appends every value of a key that is a list, in the order of the file. */
void words_append_settings(char ***words, const struct settings *settings, const char *key);

/* The same as a new list, which is never NULL. */
char **words_of_settings(const struct settings *settings, const char *key);

void words_free(char **words);      // NULL is fine
void words_wipe_free(char **words); // overwrites the texts first; NULL is fine

/* For qsort(3) and bsearch(3) of texts; compares bytes. */
int words_compare(const void *a, const void *b);

#endif
