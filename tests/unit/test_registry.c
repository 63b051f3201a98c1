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

static const struct setting_key keys[] = {
	{.name = "one", .type = SETTING_TEXT, .fallback = "OTHER"},
	{.name = "two", .type = SETTING_SECRET_NAME, .fallback = "MOON_KEY"}};
static bool is_isolated(const struct settings *settings)
{
	return settings_get(settings, "one") != NULL;
}

static const struct provider_impl near_impl = {.name = "near",
	.runs_here = true,
	.keys = keys,
	.key_count = 2,
	.destroy = count_destroy,
	.is_isolated = is_isolated};
static const struct provider_impl far_impl = {.name = "far", .destroy = count_destroy};
static const struct provider_impl nameless_impl = {.destroy = count_destroy};

static void test_nil_provider_is_refused(void **state)
{
	struct registry *registry = registry_create();
	struct error err;
	assert_false(registry_add(registry, NULL, &err));
	assert_string_equal(err.text, "provider is nil");
	registry_destroy(registry);
}

static void test_a_provider_without_a_name_is_refused(void **state)
{
	struct registry *registry = registry_create();
	struct counted provider = {.provider = {.impl = &nameless_impl}};
	struct error err;
	assert_false(registry_add(registry, &provider.provider, &err));
	assert_int_equal(err.code, ERROR_CONFIG);
	assert_null(registry_at(registry, 0));
	registry_destroy(registry);
	assert_int_equal(provider.destroyed, 0);
}

static void test_missing_provider_is_told(void **state)
{
	struct registry *registry = registry_create();
	struct error err;
	assert_null(registry_get(registry, "near", &err));
	assert_int_equal(err.code, ERROR_CONFIG);
	assert_string_equal(err.text, "provider not registered");
	registry_destroy(registry);
}

static void test_registry_owns_its_providers(void **state)
{
	struct registry *registry = registry_create();
	struct counted first = {.provider = {.impl = &near_impl}};
	struct counted second = first;
	struct error err;
	assert_true(registry_add(registry, &first.provider, &err));
	assert_ptr_equal(registry_get(registry, "near", &err), &first.provider);
	size_t count;
	assert_ptr_equal(provider_keys(&first.provider, &count), keys);
	assert_int_equal(count, 2);
	assert_true(registry_add(registry, &second.provider, &err)); // the later one wins
	assert_int_equal(first.destroyed, 1);
	assert_ptr_equal(registry_get(registry, "near", &err), &second.provider);
	assert_null(registry_at(registry, 1));
	registry_destroy(registry);
	assert_int_equal(first.destroyed, 1);
	assert_int_equal(second.destroyed, 1);
	registry_destroy(NULL);
	provider_destroy(NULL);
}

static void test_providers_are_in_the_order_in_which_they_were_added(void **state)
{
	struct registry *registry = registry_create();
	struct counted near = {.provider = {.impl = &near_impl}};
	struct counted far = {.provider = {.impl = &far_impl}};
	struct error err;
	assert_true(registry_add(registry, &near.provider, &err));
	assert_true(registry_add(registry, &far.provider, &err));
	assert_string_equal(provider_name(registry_at(registry, 0)), "near");
	assert_string_equal(provider_name(registry_at(registry, 1)), "far");
	assert_null(registry_at(registry, 2));
	registry_destroy(registry);
}

static void test_a_registry_has_a_limit(void **state)
{
	static const char *const names[] = {"1", "2", "3", "4", "5", "6", "7", "8", "9"};
	struct provider_impl impls[REGISTRY_MAX + 1];
	struct counted providers[REGISTRY_MAX + 1] = {0};
	struct registry *registry = registry_create();
	struct error err;
	for (size_t i = 0; i <= REGISTRY_MAX; i++) {
		impls[i] = (struct provider_impl){.name = names[i], .destroy = count_destroy};
		providers[i].provider.impl = &impls[i];
		assert_int_equal(
			registry_add(registry, &providers[i].provider, &err), i < REGISTRY_MAX);
	}
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_null(registry_at(registry, REGISTRY_MAX));
	assert_null(registry_get(registry, names[REGISTRY_MAX], &err));
	registry_destroy(registry);
	assert_int_equal(providers[REGISTRY_MAX - 1].destroyed, 1);
	assert_int_equal(providers[REGISTRY_MAX].destroyed, 0);
}

static void test_a_provider_says_where_it_runs(void **state)
{
	struct provider near = {.impl = &near_impl}, far = {.impl = &far_impl};
	struct settings settings;
	settings_init(&settings);
	assert_true(provider_runs_here(&near));
	assert_false(provider_runs_here(&far));
	assert_false(provider_is_isolated(&near, &settings));
	assert_true(provider_is_isolated(&far, &settings));
	settings_add(&settings, "one", "x", "test");
	assert_true(provider_is_isolated(&near, &settings));
	settings_finish(&settings);
}

static void test_the_secrets_of_all_providers_are_known(void **state)
{
	struct registry *registry = registry_create();
	struct counted near = {.provider = {.impl = &near_impl}};
	struct counted far = {.provider = {.impl = &far_impl}};
	struct error err;
	assert_true(registry_add(registry, &far.provider, &err));
	assert_false(registry_has_secret(registry, SPAN_LITERAL("MOON_KEY")));
	assert_true(registry_add(registry, &near.provider, &err));
	assert_true(registry_has_secret(registry, SPAN_LITERAL("MOON_KEY")));
	assert_false(registry_has_secret(registry, SPAN_LITERAL("MOON_KEYS")));
	assert_false(registry_has_secret(registry, SPAN_LITERAL("OTHER")));
	registry_destroy(registry);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nil_provider_is_refused),
		cmocka_unit_test(test_a_provider_without_a_name_is_refused),
		cmocka_unit_test(test_missing_provider_is_told),
		cmocka_unit_test(test_registry_owns_its_providers),
		cmocka_unit_test(test_providers_are_in_the_order_in_which_they_were_added),
		cmocka_unit_test(test_a_registry_has_a_limit),
		cmocka_unit_test(test_a_provider_says_where_it_runs),
		cmocka_unit_test(test_the_secrets_of_all_providers_are_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
