/* SPDX-License-Identifier: MIT */
#include "broker/config/config_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/nearest.h"
#include "base/text.h"
#include "broker/config/config_reader.h"

enum { SECTION_WORD_MAX = 64, QUOTED_MAX = 96 };

void config_file_init(struct config_file *file, const char *path)
{
	*file = (struct config_file){.path = path};
	list_init(&file->sections);
}

void config_file_finish(struct config_file *file)
{
	LIST_FOR_EACH(section, &file->sections, struct config_section, link) {
		list_remove(&section->link);
		settings_finish(&section->settings);
		free(section->name);
		free(section);
	}
}

static bool section_is(
	const struct config_section *section, enum section_kind kind, const char *name)
{
	if (section->kind != kind || !section->name != !name) {
		return false;
	}
	return !name || strcmp(section->name, name) == 0;
}

struct config_section *config_file_find(
	const struct config_file *file, enum section_kind kind, const char *name)
{
	LIST_FOR_EACH(section, &file->sections, struct config_section, link) {
		if (section_is(section, kind, name)) {
			return section;
		}
	}
	return NULL;
}

static void offer_sections(
	struct nearest *nearest, const struct config_file *file, enum section_kind kind)
{
	LIST_FOR_EACH(section, &file->sections, struct config_section, link) {
		if (section->kind == kind) {
			nearest_offer(nearest, section->name);
		}
	}
}

struct config_section *config_file_need(
	const struct config_file *file, enum section_kind kind, const char *name, struct error *err)
{
	struct config_section *found = config_file_find(file, kind, name);
	if (found) {
		return found;
	}
	char quoted[QUOTED_MAX];
	setting_quote(quoted, sizeof(quoted), name);
	const char *word = section_kind_name(kind);
	if (!file->was_read) {
		error_set(err, ERROR_CONFIG, "no [%s %s]: there is no configuration file%s%s", word,
			quoted, file->path ? " " : "; HOME is not set; name one with --config",
			file->path ? file->path : "");
		return NULL;
	}
	struct nearest nearest;
	nearest_init(&nearest, name);
	offer_sections(&nearest, file, kind);
	if (kind == SECTION_PROFILE) {
		nearest_offer(&nearest, PROFILE_BUILT_IN);
	}
	error_set(err, ERROR_CONFIG, "no [%s %s] in %s%s%s%s", word, quoted, file->path,
		nearest.best ? ": did you mean \"" : "", nearest.best ? nearest.best : "",
		nearest.best ? "\"?" : "");
	return NULL;
}

bool config_file_need_agent(const struct config_file *file, const char *name,
	struct config_agent *out_agent, struct error *err)
{
	struct config_agent found = {.section = config_file_find(file, SECTION_AGENT, name)};
	found.known = found.section ? NULL : known_agent_find(name);
	if (found.section || found.known) {
		*out_agent = found;
		return true;
	}
	struct nearest nearest;
	nearest_init(&nearest, name);
	offer_sections(&nearest, file, SECTION_AGENT);
	const struct known_agent *known;
	for (size_t i = 0; (known = known_agent_at(i)) != NULL; i++) {
		nearest_offer(&nearest, known->name);
	}
	char quoted[QUOTED_MAX];
	setting_quote(quoted, sizeof(quoted), name);
	const char *place = file->was_read ? file->path : "a configuration file";
	if (nearest.best) {
		return error_set(err, ERROR_CONFIG,
			"no [agent %s] in %s, and no known agent has this name: did you mean "
			"\"%s\"?",
			quoted, place, nearest.best);
	}
	return error_set(err, ERROR_CONFIG,
		"no [agent %s] in %s, and no known agent has this name: acp-broker agents "
		"lists the known agents",
		quoted, place);
}

struct config_section *config_file_policy(
	const struct config_file *file, const char *profile, const struct settings *settings)
{
	const char *named = settings ? settings_get(settings, "policy") : NULL;
	return config_file_find(file, SECTION_POLICY, named ? named : profile);
}

/* ---- reading ---- */

static struct config_section *section_get(
	struct config_file *file, enum section_kind kind, const char *name)
{
	struct config_section *section = config_file_find(file, kind, name);
	if (!section) {
		section = mem_alloc_zero(sizeof(*section));
		section->kind = kind;
		section->name = name ? mem_strdup(name) : NULL;
		settings_init(&section->settings);
		list_append(&file->sections, &section->link);
	}
	return section;
}

static bool fail_unknown_section(
	const struct config_file *file, const char *word, struct error *err)
{
	struct nearest nearest;
	nearest_init(&nearest, word);
	for (int kind = 0; kind < SECTION_KIND_COUNT; kind++) {
		nearest_offer(&nearest, section_kind_name(kind));
	}
	if (nearest.best) {
		return error_set(err, ERROR_CONFIG, "%s: unknown section [%s]: did you mean [%s]?",
			file->path, word, nearest.best);
	}
	return error_set(err, ERROR_CONFIG,
		"%s: unknown section [%s]: expected [broker], [agent \"NAME\"], "
		"[profile \"NAME\"], [policy \"NAME\"] or [mcp \"NAME\"]",
		file->path, word);
}

/* "agent.claude.command": the section's word, its name if it has one, the key. */
static bool on_entry(void *data, const char *entry, const char *value, struct error *err)
{
	struct config_file *file = data;
	const char *first = strchr(entry, '.');
	const char *last = strrchr(entry, '.');
	if (!first) {
		return error_set(err, ERROR_CONFIG,
			"%s: %s: expected a section before the first key, like [broker]",
			file->path, entry);
	}
	char word[SECTION_WORD_MAX];
	text_format(word, sizeof(word), "%.*s", (int)(first - entry), entry);
	enum section_kind kind;
	if (!section_kind_parse(word, &kind)) {
		return fail_unknown_section(file, word, err);
	}
	if (section_kind_is_named(kind) && first == last) {
		return error_set(err, ERROR_CONFIG, "%s: %s: expected a name: [%s \"NAME\"]",
			file->path, entry, word);
	}
	if (!section_kind_is_named(kind) && first != last) {
		return error_set(err, ERROR_CONFIG, "%s: %s: expected [%s] without a name",
			file->path, entry, word);
	}
	char *name = first == last
	                     ? NULL
	                     : mem_strndup((struct span){first + 1, (size_t)(last - first) - 1});
	struct config_section *section = section_get(file, kind, name);
	settings_add(&section->settings, last + 1, value, file->path);
	free(name);
	return true;
}

bool config_file_read(struct config_file *file, struct error *err)
{
	return !file->path || config_reader_read(file->path, on_entry, file, &file->was_read, err);
}
