/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_KUBERNETES_KUBERNETES_H
#define PROVIDERS_KUBERNETES_KUBERNETES_H

#include "providers/provider.h"

/*
 * The provider for pods of a Kubernetes cluster. It knows kubectl's commands (commands.h), what a
 * pod is made of (spec.h), and what kubectl prints about one (state.h). providers/exec/platform.h
 * does everything else. The context is borrowed.
 */
struct provider *kubernetes_provider_create(const struct provider_context *context);

#endif
