/* SPDX-License-Identifier: MIT */
#include "providers/daytona/api_write.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/text.h"

/* ---- paths ---- */

/* RFC 3986, section 2.3: escapes everything that is not unreserved. */
static bool write_escaped(struct buf *path, struct span text, struct error *err)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._~";
	for (size_t i = 0; i < text.len; i++) {
		unsigned char byte = (unsigned char)text.data[i];
		bool is_plain = byte != '\0' && strchr(plain, byte);
		bool ok = is_plain ? buf_append(path, (struct span){text.data + i, 1}, err)
		                   : buf_append_format(path, err, "%%%02X", byte);
		if (!ok) {
			return false;
		}
	}
	return true;
}

bool daytona_write_path(
	struct buf *path, struct error *err, const char *id, const char *format, ...)
{
	char rest[128];
	va_list arguments;
	va_start(arguments, format);
	int len = vsnprintf(rest, sizeof(rest), format, arguments);
	va_end(arguments);
	assert(len >= 0 && (size_t)len < sizeof(rest));
	assert(id[0] != '\0'); // an empty id would name the list
	return buf_append(path, SPAN_LITERAL("/sandbox/"), err) &&
	       write_escaped(path, span_of(id), err) && buf_append(path, span_of(rest), err);
}

static void write_pairs(struct json_writer *writer, const struct daytona_pair *pairs)
{
	json_write_object(writer);
	for (; pairs && pairs->name; pairs++) {
		json_write_member(writer, pairs->name, pairs->value);
	}
	json_write_object_end(writer);
}

bool daytona_write_list_path(
	struct buf *path, const struct daytona_pair *labels, const char *cursor, struct error *err)
{
	struct buf json;
	struct json_writer writer;
	buf_init(&json, DAYTONA_PATH_MAX);
	json_write_begin(&writer, &json);
	write_pairs(&writer, labels);
	bool ok = json_write_end(&writer, err) &&
	          buf_append_format(path, err, "/sandbox?limit=%d&labels=", DAYTONA_PAGE_SIZE) &&
	          write_escaped(path, buf_span(&json), err);
	if (ok && cursor) {
		ok = buf_append(path, SPAN_LITERAL("&cursor="), err) &&
		     write_escaped(path, span_of(cursor), err);
	}
	buf_finish(&json);
	return ok;
}

/* ---- bodies ---- */

static void write_text(struct json_writer *writer, const char *key, const char *text)
{
	if (text) {
		json_write_member(writer, key, text);
	}
}

static void write_int(struct json_writer *writer, const char *key, int number, int not_sent)
{
	if (number != not_sent) {
		json_write_member_int(writer, key, number);
	}
}

static void write_bool(struct json_writer *writer, const char *key, bool value)
{
	json_write_member_bool(writer, key, value);
}

static bool image_is_one_word(const char *image)
{
	for (; *image; image++) {
		if ((unsigned char)*image <= ' ' || *image == 0x7f) {
			return false;
		}
	}
	return true;
}

/*
 * The API has no field for an image. Like the service's own SDK, this requests a build that adds
 * nothing to the image.
 */
static void write_image(struct json_writer *writer, const char *image)
{
	char line[1024];
	text_whole(line, sizeof(line), "FROM %s\n", image);
	json_write_key(writer, "buildInfo");
	json_write_object(writer);
	write_text(writer, "dockerfileContent", line);
	json_write_object_end(writer);
}

static void write_network(struct json_writer *writer, const struct daytona_network *network)
{
	write_bool(writer, "networkBlockAll", network->blocks_network);
	write_text(writer, "networkAllowList", network->network_allow_list);
	write_text(writer, "domainAllowList", network->domain_allow_list);
}

static void write_create(struct json_writer *writer, const struct daytona_create *create)
{
	write_text(writer, "name", create->name);
	write_text(writer, "snapshot", create->snapshot);
	if (create->image) {
		write_image(writer, create->image);
	}
	write_text(writer, "target", create->target);
	write_text(writer, "user", create->user);
	if (create->env) {
		json_write_key(writer, "env");
		write_pairs(writer, create->env);
	}
	json_write_key(writer, "labels");
	write_pairs(writer, create->labels);
	write_int(writer, "cpu", create->cpu, 0);
	write_int(writer, "memory", create->memory_gib, 0);
	write_int(writer, "disk", create->disk_gib, 0);
	json_write_member_int(writer, "autoStopInterval", create->auto_stop_min);
	write_int(writer, "autoArchiveInterval", create->auto_archive_min, -1);
	write_int(writer, "autoDeleteInterval", create->auto_delete_min, -1);
	write_int(writer, "ttlMinutes", create->ttl_min, 0);
	write_bool(writer, "public", create->is_public);
	write_network(writer, &(struct daytona_network){.blocks_network = create->blocks_network,
				      .network_allow_list = create->network_allow_list,
				      .domain_allow_list = create->domain_allow_list});
}

bool daytona_write_create(struct buf *body, const struct daytona_create *create, struct error *err)
{
	if (create->image && (!image_is_one_word(create->image) || strlen(create->image) > 1000)) {
		return error_set(err, ERROR_CONFIG,
			"\"%s\" is not an image: expected one word, as after FROM in a Dockerfile",
			create->image);
	}
	struct json_writer writer;
	json_write_begin(&writer, body);
	json_write_object(&writer);
	write_create(&writer, create);
	json_write_object_end(&writer);
	return json_write_end(&writer, err);
}

bool daytona_write_labels(struct buf *body, const struct daytona_pair *labels, struct error *err)
{
	struct json_writer writer;
	json_write_begin(&writer, body);
	json_write_object(&writer);
	json_write_key(&writer, "labels");
	write_pairs(&writer, labels);
	json_write_object_end(&writer);
	return json_write_end(&writer, err);
}

bool daytona_write_network(
	struct buf *body, const struct daytona_network *network, struct error *err)
{
	struct json_writer writer;
	json_write_begin(&writer, body);
	json_write_object(&writer);
	write_network(&writer, network);
	json_write_object_end(&writer);
	return json_write_end(&writer, err);
}
