/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mask.h"
#include "base/words.h"
#include "broker/cli/init_parts.h"

enum { TRIES_MAX = 10, WORD_WIDTH = 10 };

/* Reads a line from the terminal, without its line end. A longer line becomes "?", no answer. */
static bool read_answer(char answer[INIT_ANSWER_MAX], struct error *err)
{
	fflush(stdout);
	if (!fgets(answer, INIT_ANSWER_MAX, stdin)) {
		putchar('\n');
		return error_set(err, ERROR_UNAVAILABLE,
			"init: standard input has ended before the last question; nothing was "
			"written");
	}
	size_t len = strlen(answer);
	if (len > 0 && answer[len - 1] == '\n') {
		answer[--len] = '\0';
		return true;
	}
	for (int byte = getchar(); byte != '\n' && byte != EOF;) {
		byte = getchar();
	}
	answer[0] = '?';
	answer[1] = '\0';
	return true;
}

static bool fail_tries(struct error *err)
{
	return error_set(err, ERROR_UNAVAILABLE,
		"init: no answer was one of the choices; nothing was written");
}

static void print_choice(size_t number, const char *word, const char *text)
{
	char *shown = mask_line(span_of(word));
	char *rest = mask_line(span_of(text));
	printf("  %2zu  %-*s%s%s\n", number, *rest ? WORD_WIDTH : 0, shown, *rest ? " " : "", rest);
	free(shown);
	free(rest);
}

/* The number of a choice, from 1 on; 0 if the answer is not such a number. */
static size_t number_of(const char *answer, size_t count)
{
	char *end;
	unsigned long number = strtoul(answer, &end, 10);
	bool is_number = answer[0] >= '0' && answer[0] <= '9' && !*end;
	return is_number && number <= count ? number : 0;
}

static bool find_choice(const char *answer, const struct init_choice *choices, size_t count,
	size_t preset, size_t *out_choice)
{
	size_t number = number_of(answer, count);
	if (!answer[0] || number > 0) {
		*out_choice = number > 0 ? number - 1 : preset;
		return true;
	}
	for (size_t i = 0; i < count; i++) {
		if (strcasecmp(choices[i].word, answer) == 0) {
			*out_choice = i;
			return true;
		}
	}
	return false;
}

bool init_ask(const char *question, const struct init_choice *choices, size_t count, size_t preset,
	size_t *out_choice, struct error *err)
{
	char answer[INIT_ANSWER_MAX];
	printf("%s\n", question);
	for (size_t i = 0; i < count; i++) {
		print_choice(i + 1, choices[i].word, choices[i].text);
	}
	for (int i = 0; i < TRIES_MAX; i++) {
		printf("[%zu] ", preset + 1);
		if (!read_answer(answer, err)) {
			return false;
		}
		if (find_choice(answer, choices, count, preset, out_choice)) {
			putchar('\n');
			return true;
		}
		printf("A number from 1 to %zu, or Enter for %zu.\n", count, preset + 1);
	}
	return fail_tries(err);
}

bool init_ask_word(const char *question, char *const *choices, char **out_word, struct error *err)
{
	char answer[INIT_ANSWER_MAX];
	size_t count = words_count(choices);
	printf("%s\n", question);
	for (size_t i = 0; i < count; i++) {
		print_choice(i + 1, choices[i], "");
	}
	for (int i = 0; i < TRIES_MAX; i++) {
		fputs(count > 0 ? "[1] " : "> ", stdout);
		if (!read_answer(answer, err)) {
			return false;
		}
		size_t number = answer[0] ? number_of(answer, count) : count > 0;
		const char *word = number > 0 ? choices[number - 1] : answer;
		if (word[0] && strcmp(word, "?") != 0 && word[0] != '-' && !strpbrk(word, " \t")) {
			*out_word = mem_strdup(word);
			putchar('\n');
			return true;
		}
		puts("One name, without blanks and without a dash before it.");
	}
	return fail_tries(err);
}

bool init_ask_yes(const char *question, bool *out_yes, struct error *err)
{
	char answer[INIT_ANSWER_MAX];
	for (int i = 0; i < TRIES_MAX; i++) {
		printf("%s [Y/n] ", question);
		if (!read_answer(answer, err)) {
			return false;
		}
		bool is_yes = !answer[0] || strcasecmp(answer, "y") == 0 ||
		              strcasecmp(answer, "yes") == 0;
		if (is_yes || strcasecmp(answer, "n") == 0 || strcasecmp(answer, "no") == 0) {
			*out_yes = is_yes;
			return true;
		}
	}
	return fail_tries(err);
}
