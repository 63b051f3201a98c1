// SPDX-License-Identifier: MIT
// The calls of the control plane: what each does, and with which status it answers.
import { archiveMinutes, checkCreate, checkInterval, checkLabels, checkList,
  checkNetworkSettings } from "./asked.mjs";
import { Refusal, listedSandbox, wholeSandbox } from "./wire.mjs";

// [method, path, name, throttler, handler]; a handler gets {world, body, query, parts, …} and
// returns [status, body].
const CALLS = [];

// The permission that a key needs for a call; calls that only read need none.
const WRITE = "write:sandboxes";
const SCOPES = { create: WRITE, start: WRITE, stop: WRITE, archive: WRITE, recover: WRITE,
  labels: WRITE, autostop: WRITE, autoarchive: WRITE, autodelete: WRITE, public: WRITE,
  ttl: WRITE,
  "network-settings": WRITE, "ssh-access": WRITE, "ssh-revoke": WRITE,
  delete: "delete:sandboxes" };

function call(method, path, name, throttler, handler) {
  const pattern = path.replace(/\{\w+\}/g, "([^/]+)");
  CALLS.push({ method, pattern: new RegExp(`^/api${pattern}$`), name, throttler, handler });
}

function page(items, asked) {
  const sign = asked.order === "asc" ? 1 : -1;
  items.sort((a, b) => (String(a[asked.sort]) < String(b[asked.sort]) ? -sign : sign));
  let first = 0;
  if (asked.cursor) {
    const after = Buffer.from(asked.cursor, "base64url").toString();
    first = items.findIndex((one) => one.id === after) + 1;
  }
  const shown = items.slice(first, first + asked.limit);
  const more = first + shown.length < items.length;
  return { items: shown.map(listedSandbox),
    nextCursor: more ? Buffer.from(shown.at(-1).id).toString("base64url") : null };
}

call("GET", "/config", "config", null, ({ world, sshCommand }) => [200, {
  version: "0.0.0-dev", oidc: { issuer: "", clientId: "", audience: "" },
  linkedAccountsEnabled: false, announcements: {}, proxyTemplateUrl: "http://{{PORT}}.localhost",
  proxyToolboxUrl: world.toolboxUrl, defaultSnapshot: world.settings.snapshots[0],
  dashboardUrl: "http://127.0.0.1/dashboard", maxAutoArchiveInterval: 43200,
  maintananceMode: false, environment: "test", sshGatewayCommand: sshCommand("{{TOKEN}}"),
}]);

// As the document of 0.205 has it; nobody has seen one.
call("GET", "/api-keys/current", "current-key", "authenticated", ({ world, isJwt }) => {
  if (isJwt || !world.settings.tellsScopes) {
    throw new Refusal(404, "Cannot GET /api/api-keys/current");
  }
  return [200, { name: "test", value: "dtn_****", permissions: world.settings.scopes,
    createdAt: "2026-01-01T00:00:00.000Z", lastUsedAt: null, expiresAt: null, userId: "user" }];
});

call("POST", "/sandbox", "create", "sandbox-create", async ({ world, body }) => {
  checkCreate(body, world.settings);
  const { sandbox, answer } = world.create(body);
  if (!body.buildInfo) {
    await world.untilStarted(sandbox);
  }
  return [200, answer];
});

call("GET", "/sandbox", "list", "authenticated", ({ world, query }) => {
  const asked = checkList(query);
  const items = world.listable(asked.includeErroredDeleted).filter((one) =>
    (asked.states.length === 0 || asked.states.includes(one.state)) &&
    one.name.startsWith(asked.name) && one.id.startsWith(asked.id) &&
    Object.entries(asked.labels).every(([key, value]) => one.labels[key] === value));
  return [200, page(items, asked)];
});

call("GET", "/sandbox/ssh-access/validate", "ssh-validate", "authenticated",
  ({ world, query, isGateway }) => {
    if (!isGateway) {
      throw new Refusal(403, "Invalid authentication context");
    }
    const sandboxId = world.validate(query.get("token"));
    return [200, { valid: sandboxId !== null, sandboxId }];
  });

call("GET", "/sandbox/{id}", "get", "authenticated",
  ({ world, parts }) => [200, wholeSandbox(world.find(parts[0]))]);

call("DELETE", "/sandbox/{id}", "delete", "sandbox-lifecycle",
  ({ world, parts }) => [200, world.remove(parts[0])]);

call("POST", "/sandbox/{id}/start", "start", "sandbox-lifecycle",
  async ({ world, parts }) => [200, await world.start(parts[0])]);

call("POST", "/sandbox/{id}/stop", "stop", "sandbox-lifecycle",
  ({ world, parts }) => [200, world.stop(parts[0])]);

call("POST", "/sandbox/{id}/archive", "archive", "sandbox-lifecycle",
  ({ world, parts }) => [200, world.archive(parts[0])]);

call("POST", "/sandbox/{id}/recover", "recover", "sandbox-lifecycle", ({ world, parts }) => {
  const sandbox = world.find(parts[0]);
  if (!sandbox.recoverable) {
    throw new Refusal(400, "Sandbox is not in a recoverable state");
  }
  return [200, world.set(sandbox.id, { state: "stopped", desiredState: "stopped",
    errorReason: undefined, recoverable: false })];
});

call("PUT", "/sandbox/{id}/labels", "labels", "authenticated", ({ world, parts, body }) => {
  checkLabels(body);
  return [200, world.set(parts[0], { labels: body.labels })];
});

// The service answers 201 here, where its document says 200.
function interval(path, name, title, member, stored = (minutes) => minutes) {
  call("POST", `/sandbox/{id}/${path}/{minutes}`, name, "authenticated", ({ world, parts }) => {
    const minutes = Number(parts[1]);
    if (Number.isNaN(minutes)) {
      throw new Refusal(400, "Validation failed (numeric string is expected)");
    }
    if (title) {
      checkInterval(title, minutes);
    }
    return [201, world.set(parts[0], { [member]: stored(minutes) })];
  });
}

interval("autostop", "autostop", "Auto-stop", "autoStopInterval");
interval("autoarchive", "autoarchive", "Auto-archive", "autoArchiveInterval", archiveMinutes);
interval("autodelete", "autodelete", null, "autoDeleteInterval");

// Since 0.205; 0.190 has no such call, and ignores it in a create. It is in no answer.
call("POST", "/sandbox/{id}/ttl/{minutes}", "ttl", "authenticated", ({ world, parts }) => {
  if (!world.settings.hasTtl) {
    throw new Refusal(404, `Cannot POST /api/sandbox/${parts[0]}/ttl/${parts[1]}`);
  }
  return [200, world.set(parts[0], { ttlMinutes: Number(parts[1]) })];
});

// 201, too; and whatever is not "true" is false.
call("POST", "/sandbox/{id}/public/{isPublic}", "public", "authenticated",
  ({ world, parts }) => [201, world.set(parts[0], { public: parts[1] === "true" })]);

// By name it is accepted, and nothing is done.
call("POST", "/sandbox/{id}/last-activity", "last-activity", "authenticated",
  ({ world, parts }) => {
    world.find(parts[0]);
    world.active(parts[0]);
    return [201, undefined];
  });

call("POST", "/sandbox/{id}/network-settings", "network-settings", "authenticated",
  ({ world, parts, body }) => {
    checkNetworkSettings(body);
    return [200, world.setNetwork(parts[0], body)];
  });

call("POST", "/sandbox/{id}/ssh-access", "ssh-access", "authenticated",
  ({ world, parts, query, sshCommand }) => {
    const minutes = Number(query.get("expiresInMinutes") ?? 60);
    if (Number.isNaN(minutes)) {
      throw new Refusal(500, "An unexpected error occurred.");
    }
    return [200, world.mint(parts[0], minutes, sshCommand)];
  });

call("DELETE", "/sandbox/{id}/ssh-access", "ssh-revoke", "authenticated",
  ({ world, parts, query }) => [200, world.revoke(parts[0], query.get("token"))]);

call("GET", "/sandbox/{id}/toolbox-proxy-url", "toolbox-proxy-url", "authenticated",
  ({ world, parts }) => {
    if (!world.findById(parts[0])) {
      throw new Refusal(404, `Sandbox with ID ${parts[0]} not found`);
    }
    return [200, { url: world.toolboxUrl }];
  });

call("GET", "/sandbox/{id}/ports/{port}/preview-url", "preview-url", "authenticated",
  ({ world, parts }) => {
    const sandbox = world.find(parts[0]);
    return [200, { sandboxId: sandbox.id, token: sandbox.id.replaceAll("-", ""),
      url: `http://${parts[1]}-${sandbox.id}.proxy.localhost` }];
  });

// {name, throttler, scope, handler, parts} of a request, or null where there is no such call.
export function findCall(method, pathname) {
  for (const one of CALLS) {
    const match = one.method === method && one.pattern.exec(pathname);
    if (match) {
      return { ...one, scope: SCOPES[one.name] ?? null,
        parts: match.slice(1).map(decodeURIComponent) };
    }
  }
  return null;
}
