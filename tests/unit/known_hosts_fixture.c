/* SPDX-License-Identifier: MIT */
#include "tests/unit/known_hosts_fixture.h"

#include "base/base64.h"

char known_folder[] = "/tmp/test-known-hosts-XXXXXX";
char known_user_file[PATH_MAX];
char known_global_file[PATH_MAX];
static char *known_user_files[] = {known_user_file, NULL};
static char *known_global_files[] = {known_global_file, NULL};

/* Of the public known_keys: "ssh-ed25519 AAAA…", and the blob. */
static char *key_texts[KNOWN_KEYS];
struct host_key known_keys[KNOWN_KEYS];
static const char *const key_kinds[KNOWN_KEYS] = {"ed25519", "ed25519", "ecdsa", "rsa"};
static const char *const key_types[KNOWN_KEYS] = {
	"ssh-ed25519", "ssh-ed25519", "ecdsa-sha2-nistp256", "ssh-rsa"};

/* ---- files and programs ---- */

void known_write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	assert_int_equal(fclose(file), 0);
}

char *known_read_text(const char *path)
{
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	char *text = mem_alloc_zero(KNOWN_TEXT_MAX);
	assert_in_range(fread(text, 1, KNOWN_TEXT_MAX - 1, file), 0, KNOWN_TEXT_MAX - 2);
	fclose(file);
	return text;
}

char *known_output(const char *format, ...)
{
	char command[PATH_MAX];
	va_list args;
	va_start(args, format);
	int len = vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	assert_in_range(len, 1, PATH_MAX - 1);
	FILE *pipe = popen(command, "re"); // NOLINT(bugprone-command-processor): fixed texts
	assert_non_null(pipe);
	char *text = mem_alloc_zero(KNOWN_TEXT_MAX);
	assert_in_range(fread(text, 1, KNOWN_TEXT_MAX - 1, pipe), 0, KNOWN_TEXT_MAX - 2);
	pclose(pipe);
	return text;
}

/* The user's file: the lines with $0 to $3 replaced by the known_keys. */
void known_write(const char *const *lines)
{
	struct buf text;
	struct error err;
	buf_init(&text, KNOWN_TEXT_MAX);
	for (; *lines; lines++) {
		for (const char *at = *lines; *at; at++) {
			bool is_key = at[0] == '$' && at[1] >= '0' && at[1] < '0' + KNOWN_KEYS;
			struct span part =
				is_key ? span_of(key_texts[at[1] - '0']) : (struct span){at, 1};
			assert_true(buf_append(&text, part, &err));
			at += is_key ? 1 : 0;
		}
		assert_true(buf_append(&text, SPAN_LITERAL("\n"), &err));
	}
	char *terminated = mem_strndup(buf_span(&text));
	known_write_text(known_user_file, terminated);
	free(terminated);
	buf_finish(&text);
}

struct ssh_target known_target(const char *host, int port)
{
	return (struct ssh_target){
		.host = (char *)host,
		.port = port,
		.user_known_hosts_files = known_user_files,
		.global_known_hosts_files = known_global_files,
	};
}

int known_setup(void **state)
{
	if (!mkdtemp(known_folder)) {
		return -1;
	}
	snprintf(known_user_file, sizeof(known_user_file), "%s/known_hosts", known_folder);
	snprintf(known_global_file, sizeof(known_global_file), "%s/global", known_folder);
	for (int i = 0; i < KNOWN_KEYS; i++) {
		free(known_output("cd %s && ssh-keygen -q -t %s -N '' -C '' -f key%d", known_folder,
			key_kinds[i], i));
		char *text = known_output("cut -d' ' -f1,2 %s/key%d.pub", known_folder, i);
		text[strcspn(text, "\n")] = '\0';
		key_texts[i] = text;
		uint8_t *blob;
		size_t len;
		assert_true(base64_decode(span_of(strchr(text, ' ') + 1), &blob, &len));
		known_keys[i] = (struct host_key){key_types[i], {(const char *)blob, len}};
	}
	return 0;
}

int known_teardown(void **state)
{
	for (int i = 0; i < KNOWN_KEYS; i++) {
		free(key_texts[i]);
		free((void *)known_keys[i].blob.data);
	}
	free(known_output("rm -rf %s", known_folder));
	return 0;
}

int known_clean(void **state)
{
	unlink(known_user_file);
	unlink(known_global_file);
	return 0;
}

void assert_known_verdict(const struct ssh_target *target, int key,
	enum known_hosts_verdict verdict, const char *file, size_t line)
{
	struct known_hosts_finding finding;
	struct error err;
	assert_true(known_hosts_check(target, &known_keys[key], &finding, &err));
	assert_int_equal(finding.verdict, verdict);
	assert_string_equal(finding.file, file);
	assert_int_equal(finding.line, line);
}

char *known_fingerprint(int key)
{
	char *text = known_output("ssh-keygen -lf %s/key%d.pub | cut -d' ' -f2", known_folder, key);
	text[strcspn(text, "\n")] = '\0';
	return text;
}
