/* SPDX-License-Identifier: MIT */
#include "base/words.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

size_t words_count(char *const *words)
{
	size_t count = 0;
	while (words && words[count]) {
		count++;
	}
	return count;
}

bool words_contain(const char *const *words, const char *word)
{
	while (words && *words && strcmp(*words, word) != 0) {
		words++;
	}
	return words && *words;
}

void words_append(char ***words, const char *word)
{
	size_t count = words_count(*words);
	*words = mem_realloc(*words, (count + 2) * sizeof(**words));
	(*words)[count] = mem_strdup(word);
	(*words)[count + 1] = NULL;
}

void words_append_all(char ***words, const char *const *more)
{
	for (; more && *more; more++) {
		words_append(words, *more);
	}
}

char **words_copy(const char *const *words)
{
	char **copy = mem_alloc_zero(sizeof(*copy));
	words_append_all(&copy, words);
	return copy;
}

void words_append_settings(char ***words, const struct settings *settings, const char *key)
{
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		if (strcmp(setting->key, key) == 0) {
			words_append(words, setting->value);
		}
	}
}

char **words_of_settings(const struct settings *settings, const char *key)
{
	char **words = mem_alloc_zero(sizeof(*words));
	words_append_settings(&words, settings, key);
	return words;
}

void words_free(char **words)
{
	for (size_t i = 0; words && words[i]; i++) {
		free(words[i]);
	}
	free(words);
}

void words_wipe_free(char **words)
{
	for (size_t i = 0; words && words[i]; i++) {
		mem_wipe_free(words[i]);
	}
	free(words);
}

int words_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}
