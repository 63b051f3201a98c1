/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_KUBERNETES_SPEC_H
#define PROVIDERS_KUBERNETES_SPEC_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"

#define KUBERNETES_MANAGED_BY "app.kubernetes.io/managed-by"
#define KUBERNETES_SANDBOX "acp-broker/sandbox"
#define KUBERNETES_CONTAINER "agent"

enum { KUBERNETES_SPEC_MAX = 64 * 1024, KUBERNETES_IMAGE_USER = -1 };

/* What a pod is made of. Borrowed; the texts were checked. */
struct kubernetes_spec {
	const char *profile; // for people
	const char *image;
	const char *folder;          // in which the volume is mounted
	const char *service_account; // NULL: the namespace's default
	const char *storage_class;   // NULL: the cluster's default
	char **node_selector;        // NAME=VALUE
	char **resources;            // NAME=AMOUNT
	long long cpu;               // processors; 0: no limit
	long long memory;            // bytes; 0: no limit
	long long storage; // bytes of the volume claim; 0: a volume that ends with the pod
	long long user;    // KUBERNETES_IMAGE_USER: the image's
	long long time_ms; // after which the pod ends; 0: never
};

/*
 * Appends the manifest that `kubectl create` reads: the pod, or with `with_claim` a list of the pod
 * and its volume claim. "%n" stands for the sandbox's name, and any other "%" is doubled. No value
 * is part of a command line, and nothing secret is in it.
 */
bool kubernetes_spec_write(const struct kubernetes_spec *spec, bool with_claim, struct buf *out,
	struct error *err) ATTR_NODISCARD;

#endif
