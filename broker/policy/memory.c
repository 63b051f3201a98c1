/* SPDX-License-Identifier: MIT */
#include "broker/policy/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

struct entry {
	struct list link; // memory.entries
	struct subject subject;
	bool allow;
};

struct memory {
	struct list entries; // of struct entry, oldest first
	int count;
	struct list once; // of struct entry, oldest first
	int once_count;
};

struct memory *memory_create(void)
{
	struct memory *memory = mem_alloc_zero(sizeof(*memory));
	list_init(&memory->entries);
	list_init(&memory->once);
	return memory;
}

static void entry_destroy(struct entry *entry, int *count)
{
	list_remove(&entry->link);
	subject_finish(&entry->subject);
	free(entry);
	--*count;
}

static void entry_append(struct list *list, int *count, struct subject *subject, bool allow)
{
	struct entry *entry = mem_alloc_zero(sizeof(*entry));
	entry->subject = *subject;
	entry->allow = allow;
	*subject = (struct subject){.operation = subject->operation};
	list_append(list, &entry->link);
	++*count;
}

void memory_destroy(struct memory *memory)
{
	if (!memory) {
		return;
	}
	LIST_FOR_EACH(entry, &memory->entries, struct entry, link) {
		entry_destroy(entry, &memory->count);
	}
	memory_end_turn(memory);
	assert(memory->count == 0 && memory->once_count == 0);
	free(memory);
}

size_t memory_count(const struct memory *memory)
{
	return (size_t)memory->count;
}

static size_t words_size(char *const *words)
{
	size_t size = 0;
	for (; words && *words; words++) {
		size += strlen(*words) + 1;
	}
	return size;
}

static size_t text_size(const char *text)
{
	return text ? strlen(text) : 0;
}

static struct entry *find(const struct memory *memory, const struct subject *subject)
{
	if (!memory) {
		return NULL;
	}
	LIST_FOR_EACH(entry, &memory->entries, struct entry, link) {
		if (subject_equals(&entry->subject, subject)) {
			return entry;
		}
	}
	return NULL;
}

bool memory_has_room(const struct memory *memory, const struct subject *subject)
{
	size_t size = words_size(subject->paths) + words_size(subject->command) +
	              text_size(subject->cwd) + text_size(subject->env);
	return subject->operation != POLICY_GRANT && size <= MEMORY_ENTRY_MAX &&
	       (memory->count < MEMORY_MAX || find(memory, subject));
}

void memory_add(struct memory *memory, struct subject *subject, bool allow)
{
	assert(memory_has_room(memory, subject));
	struct entry *old = find(memory, subject);
	if (old) {
		entry_destroy(old, &memory->count);
	}
	entry_append(&memory->entries, &memory->count, subject, allow);
}

enum policy_decision memory_find(const struct memory *memory, const struct subject *subject)
{
	const struct entry *entry = find(memory, subject);
	if (!entry) {
		return POLICY_PENDING;
	}
	return entry->allow ? POLICY_ALLOW_ALWAYS : POLICY_REJECT_ALWAYS;
}

/* ---- answers for once ---- */

void memory_add_once(struct memory *memory, struct subject *subject)
{
	if (memory->once_count == MEMORY_ONCE_MAX) {
		entry_destroy(LIST_FIRST(&memory->once, struct entry, link), &memory->once_count);
	}
	entry_append(&memory->once, &memory->once_count, subject, true);
}

bool memory_has_once(const struct memory *memory)
{
	return memory->once_count > 0;
}

bool memory_take_once(struct memory *memory, const struct subject *subject, char **out_old_text)
{
	LIST_FOR_EACH(entry, &memory->once, struct entry, link) {
		if (entry->subject.is_resolved == subject->is_resolved &&
			subject_equals(&entry->subject, subject)) {
			*out_old_text = entry->subject.old_text;
			entry->subject.old_text = NULL;
			entry_destroy(entry, &memory->once_count);
			return true;
		}
	}
	return false;
}

void memory_end_turn(struct memory *memory)
{
	LIST_FOR_EACH(entry, &memory->once, struct entry, link) {
		entry_destroy(entry, &memory->once_count);
	}
}

/* ---- listing ---- */

static void write_command(struct json_writer *writer, const struct subject *subject)
{
	json_write_member(writer, "command", subject->command[0]);
	if (!subject->shell_line) {
		json_write_member_words(
			writer, "args", (const char *const *)(subject->command + 1));
	}
	if (subject->cwd) {
		json_write_member(writer, "cwd", subject->cwd);
	}
}

static void write_entry(struct json_writer *writer, const struct entry *entry)
{
	json_write_object(writer);
	json_write_member(writer, "operation", policy_operation_name(entry->subject.operation));
	json_write_key(writer, "decision");
	json_write_text(writer,
		policy_decision_name(entry->allow ? POLICY_ALLOW_ALWAYS : POLICY_REJECT_ALWAYS));
	if (entry->subject.command) {
		write_command(writer, &entry->subject);
	} else {
		json_write_member(writer, "path", entry->subject.paths[0]);
	}
	json_write_object_end(writer);
}

void memory_write(const struct memory *memory, struct json_writer *writer)
{
	json_write_array(writer);
	if (memory) {
		LIST_FOR_EACH(entry, &memory->entries, struct entry, link) {
			write_entry(writer, entry);
		}
	}
	json_write_array_end(writer);
}
