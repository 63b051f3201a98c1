/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "base/utf8.h"
#include "broker/chat/chat_parts.h"
#include "broker/chat/links.h"

/* Tab after "@" completes names of files on this machine, below the session's directory. */
enum { FILES_MAX = 10000, FILES_SHOWN = 30, FILE_NAME_SIZE = 4096 };

struct names {
	char *common;      // owned; the common beginning of all names; NULL: no name
	bool is_directory; // there is one name, and it is a directory's
	size_t count;
	struct buf shown;
};

/* A name whose characters are all visible: others cannot be typed. */
static bool is_plain(struct span name)
{
	while (name.len > 0) {
		size_t len = utf8_char_length(name);
		if (len == 0 || utf8_is_hidden(name)) {
			return false;
		}
		name = (struct span){name.data + len, name.len - len};
	}
	return true;
}

static void add_name(struct names *names, const char *name)
{
	size_t same = 0;
	names->count++;
	if (!names->common) {
		names->common = mem_strdup(name);
	}
	while (name[same] && name[same] == names->common[same]) {
		same++;
	}
	same = utf8_whole_length((struct span){names->common, same});
	names->common[same] = '\0';
	if (names->count <= FILES_SHOWN) {
		bool ok = buf_append_format(&names->shown, NULL, "%s ", name);
		(void)ok; // the buffer has no maximum
	}
}

static void read_names(struct names *names, const char *folder, struct span prefix)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	for (size_t i = 0; dir && i < FILES_MAX && (entry = readdir(dir)); i++) {
		struct span name = span_of(entry->d_name);
		bool is_hidden = name.data[0] == '.' && prefix.len == 0;
		bool is_dots = span_is(name, ".") || span_is(name, "..");
		if (!is_hidden && !is_dots && span_starts_with(name, prefix) && is_plain(name)) {
			add_name(names, entry->d_name);
		}
	}
	if (dir) {
		closedir(dir);
	}
	char path[FILE_NAME_SIZE];
	struct stat status;
	names->is_directory = names->count == 1 &&
	                      text_whole(path, sizeof(path), "%s/%s", folder, names->common) &&
	                      stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* The word before the cursor without its "@"; data is NULL if it does not begin with one. */
static struct span word_before(const char *text, size_t cursor)
{
	size_t at = 0;
	while (at < cursor) {
		size_t len = links_word_length((struct span){text + at, cursor - at});
		if (at + len == cursor && text[at] == '@') {
			return (struct span){text + at + 1, len - 1};
		}
		at += len + 1; // the blank, too
	}
	return (struct span){0};
}

static void insert_escaped(struct chat *chat, const char *text)
{
	struct buf escaped;
	buf_init(&escaped, SIZE_MAX / 2);
	links_escape(span_of(text), &escaped);
	char *typed = mem_strndup(buf_span(&escaped));
	line_insert(chat->line, typed);
	free(typed);
	buf_finish(&escaped);
}

void chat_complete(struct chat *chat)
{
	size_t cursor;
	const char *text = line_text(chat->line, &cursor);
	struct span typed = word_before(text, cursor);
	struct buf unescaped;
	if (!typed.data) {
		return;
	}
	buf_init(&unescaped, SIZE_MAX / 2);
	links_unescape(typed, &unescaped);
	struct span word = unescaped.len > 0 ? buf_span(&unescaped) : SPAN_LITERAL("");
	size_t folder_len = word.len;
	while (folder_len > 0 && word.data[folder_len - 1] != '/') {
		folder_len--;
	}
	struct span prefix = {word.data + folder_len, word.len - folder_len};
	struct names names = {.common = NULL};
	char folder[FILE_NAME_SIZE];
	buf_init(&names.shown, SIZE_MAX / 2);
	bool is_absolute = word.len > 0 && word.data[0] == '/';
	if (text_whole(folder, sizeof(folder), "%s/%.*s", is_absolute ? "" : chat->means.cwd,
		    (int)folder_len, word.data)) {
		read_names(&names, folder, prefix);
	}
	char *rest = names.common ? mem_strdup(names.common + prefix.len) : mem_strdup("");
	if (names.count > 1 && !rest[0]) {
		char *all = mem_strndup(buf_span(&names.shown));
		chat_print_line(chat, SHOW_DIM, "-", all);
		free(all);
	} else if (names.count > 0) {
		insert_escaped(chat, rest);
		if (names.count == 1) {
			line_insert(chat->line, names.is_directory ? "/" : " ");
		}
	}
	free(rest);
	free(names.common);
	buf_finish(&names.shown);
	buf_finish(&unescaped);
}
