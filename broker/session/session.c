/* SPDX-License-Identifier: MIT */
#include "broker/session/session.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/words.h"
#include "broker/policy/memory.h"

void session_table_init(struct session_table *table, int max)
{
	*table = (struct session_table){.max = max};
	for (size_t i = 0; i < SESSION_BUCKETS; i++) {
		list_init(&table->buckets[i]);
	}
}

static void session_destroy(struct session_table *table, struct session *session)
{
	list_remove(&session->link);
	words_free(session->roots);
	free(session->opening);
	free(session->reference);
	free(session->instance);
	memory_destroy(session->memory);
	if (session->guard) {
		table->destroy_guard(session->guard);
	}
	choices_finish(&session->choices);
	free(session->agent_id);
	free(session->words);
	free(session->id);
	free(session);
}

void session_table_finish(struct session_table *table)
{
	for (size_t i = 0; i < SESSION_BUCKETS; i++) {
		LIST_FOR_EACH(session, &table->buckets[i], struct session, link) {
			session_destroy(table, session);
		}
	}
	table->count = 0;
}

/* A peer that fills one bucket on purpose costs itself max-sessions comparisons. */
static struct list *bucket_of(struct session_table *table, const char *id)
{
	return &table->buckets[hash_text(HASH_START, id) % SESSION_BUCKETS];
}

struct session *session_find(struct session_table *table, const char *id)
{
	LIST_FOR_EACH(session, bucket_of(table, id), struct session, link) {
		if (strcmp(session->id, id) == 0) {
			return session;
		}
	}
	return NULL;
}

bool session_table_has_room(struct session_table *table)
{
	for (size_t i = 0; table->count >= table->max && i < SESSION_BUCKETS; i++) {
		LIST_FOR_EACH(session, &table->buckets[i], struct session, link) {
			if (!session->peer) {
				session_forget(table, session);
			}
		}
	}
	return table->count < table->max;
}

struct session *session_bind(
	struct session_table *table, const char *id, struct peer *peer, struct error *err)
{
	struct session *session = session_find(table, id);
	if (session && session->peer && session->peer != peer) {
		error_set_reason(err, ERROR_DENIED, "SESSION_CONFLICT",
			"session \"%s\" belongs to another agent that is still running", id);
		return NULL;
	}
	if (!session && !session_table_has_room(table)) {
		error_set_reason(err, ERROR_LIMIT, "RESOURCE_LIMIT_EXCEEDED",
			"%d sessions are already open (max-sessions)", table->max);
		return NULL;
	}
	if (!session) {
		session = mem_alloc_zero(sizeof(*session));
		session->id = mem_strdup(id);
		session->agent_id = mem_strdup(id);
		session->memory = memory_create();
		choices_init(&session->choices);
		list_append(bucket_of(table, id), &session->link);
		table->count++;
	}
	session->peer = peer;
	return session;
}

/* A session whose agent has ended shares only its id with a session that is created now. */
static void forget_ended(struct session_table *table, const char *id)
{
	struct session *session = session_find(table, id);
	if (session && !session->peer) {
		session_forget(table, session);
	}
}

struct session *session_bind_new(struct session_table *table, const char *agent_id,
	struct peer *peer, int number, struct error *err)
{
	forget_ended(table, agent_id);
	struct session *session = session_find(table, agent_id);
	if (!session || session->peer == peer) {
		return session_bind(table, agent_id, peer, err);
	}
	struct buf alias;
	buf_init(&alias, SIZE_MAX / 2);
	bool ok = buf_append_format(&alias, err, "%s~%d", agent_id, number) &&
	          buf_append(&alias, (struct span){"", 1}, err);
	if (ok) {
		forget_ended(table, buf_span(&alias).data);
	}
	session = ok ? session_bind(table, buf_span(&alias).data, peer, err) : NULL;
	buf_finish(&alias);
	if (session && !session_has_alias(session)) {
		mem_set_text(&session->agent_id, agent_id);
		table->aliases++;
	}
	return session;
}

bool session_has_alias(const struct session *session)
{
	return strcmp(session->id, session->agent_id) != 0;
}

struct session *session_find_agent(
	struct session_table *table, const struct peer *peer, const char *agent_id)
{
	struct session *session = session_find(table, agent_id);
	if (session && session->peer == peer && !session_has_alias(session)) {
		return session;
	}
	for (size_t i = 0; table->aliases > 0 && i < SESSION_BUCKETS; i++) {
		LIST_FOR_EACH(other, &table->buckets[i], struct session, link) {
			if (other->peer == peer && strcmp(other->agent_id, agent_id) == 0) {
				return other;
			}
		}
	}
	return NULL;
}

void session_set_roots(struct session *session, char **roots)
{
	words_free(session->roots);
	session->roots = roots;
}

void session_set_sandbox(struct session *session, const char *reference, const char *instance)
{
	free(session->reference);
	session->reference = mem_strdup_or_null(reference);
	free(session->instance);
	session->instance = mem_strdup_or_null(instance);
}

void session_forget(struct session_table *table, struct session *session)
{
	if (table->on_forget) {
		table->on_forget(table->data, session);
	}
	table->aliases -= session_has_alias(session) ? 1 : 0;
	session_destroy(table, session);
	table->count--;
	table->forgotten++;
}

void session_table_visit(struct session_table *table, const struct peer *peer,
	void (*visit)(void *data, struct session *session), void *data)
{
	for (size_t i = 0; i < SESSION_BUCKETS; i++) {
		LIST_FOR_EACH(session, &table->buckets[i], struct session, link) {
			if (!peer || session->peer == peer) {
				visit(data, session);
			}
		}
	}
}

static void choose(void *data, struct session *session)
{
	struct session **chosen = data;
	if (!*chosen || (session->prompts > 0 && (*chosen)->prompts == 0)) {
		*chosen = session;
	}
}

struct session *session_choose(struct session_table *table, const struct peer *peer)
{
	struct session *chosen = NULL;
	session_table_visit(table, peer, choose, &chosen);
	return chosen;
}

static void orphan(void *data, struct session *session)
{
	session->peer = NULL;
	session->prompts = 0;
	session->knows_copy = false;
	choices_make_stale(&session->choices);
}

void session_table_orphan(struct session_table *table, const struct peer *peer)
{
	session_table_visit(table, peer, orphan, NULL);
}
