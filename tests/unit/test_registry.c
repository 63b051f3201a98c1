/* SPDX-License-Identifier: MIT */
#include "providers/provider.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "providers/impl.h"

struct counted {
	struct provider provider;
	int destroyed;
};

static void count_destroy(struct provider *provider)
{
	CONTAINER_OF(provider, struct counted, provider)->destroyed++;
}

static const struct setting_key keys[] = {{.name = "one"}, {.name = "two"}};
static const struct provider_impl ssh_impl = {
	.backend = BACKEND_SSH, .keys = keys, .key_count = 2, .destroy = count_destroy};
static const struct provider_impl invalid_impl = {
	.backend = (enum backend)99, .destroy = count_destroy};

static void test_backends_have_names(void **state)
{
	enum backend backend = BACKEND_LOCAL;
	assert_true(backend_parse("daytona", &backend));
	assert_int_equal(backend, BACKEND_DAYTONA);
	assert_false(backend_parse("dayton", &backend));
	assert_int_equal(backend, BACKEND_DAYTONA);
	for (int i = 0; i < BACKEND_COUNT; i++) {
		assert_true(backend_parse(backend_name((enum backend)i), &backend));
		assert_int_equal(backend, i);
	}
}

static void test_nil_provider_is_refused(void **state)
{
	struct registry *registry = registry_create();
	struct error err;
	assert_false(registry_add(registry, NULL, &err));
	assert_string_equal(err.text, "provider is nil");
	registry_destroy(registry);
}

static void test_invalid_backend_is_refused(void **state)
{
	struct registry *registry = registry_create();
	struct counted provider = {.provider = {.impl = &invalid_impl}};
	struct error err;
	assert_false(registry_add(registry, &provider.provider, &err));
	assert_string_equal(err.text, "provider backend is invalid");
	assert_null(registry_get(registry, (enum backend)99, &err));
	assert_string_equal(err.text, "provider backend is invalid");
	registry_destroy(registry);
	assert_int_equal(provider.destroyed, 0);
}

static void test_missing_provider_is_told(void **state)
{
	struct registry *registry = registry_create();
	struct error err;
	assert_null(registry_get(registry, BACKEND_SSH, &err));
	assert_int_equal(err.code, ERROR_CONFIG);
	assert_string_equal(err.text, "provider not registered");
	registry_destroy(registry);
}

static void test_registry_owns_its_providers(void **state)
{
	struct registry *registry = registry_create();
	struct counted first = {.provider = {.impl = &ssh_impl}};
	struct counted second = first;
	struct error err;
	assert_true(registry_add(registry, &first.provider, &err));
	assert_ptr_equal(registry_get(registry, BACKEND_SSH, &err), &first.provider);
	size_t count;
	assert_ptr_equal(provider_keys(&first.provider, &count), keys);
	assert_int_equal(count, 2);
	assert_true(registry_add(registry, &second.provider, &err)); // the later one wins
	assert_int_equal(first.destroyed, 1);
	assert_ptr_equal(registry_get(registry, BACKEND_SSH, &err), &second.provider);
	registry_destroy(registry);
	assert_int_equal(first.destroyed, 1);
	assert_int_equal(second.destroyed, 1);
	registry_destroy(NULL);
	provider_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_backends_have_names),
		cmocka_unit_test(test_nil_provider_is_refused),
		cmocka_unit_test(test_invalid_backend_is_refused),
		cmocka_unit_test(test_missing_provider_is_told),
		cmocka_unit_test(test_registry_owns_its_providers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
