// SPDX-License-Identifier: MIT
// How the service writes things: sandboxes as single answers and as items of a list, and errors.
// What is null and what is missing is as it was recorded, not as the OpenAPI document says.
const REASONS = { 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
  409: "Conflict", 422: "Unprocessable Entity", 429: "Too Many Requests",
  500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable",
  504: "Gateway Timeout" };

export class Refusal extends Error {
  constructor(status, message, headers = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

export function reasonOf(status) {
  return REASONS[status] ?? "Error";
}

export function errorBody(url, time, status, message) {
  return { path: url, timestamp: time, statusCode: status, error: reasonOf(status), message };
}

const SHARED_TAIL = ["backupState", "backupCreatedAt", "autoStopInterval", "autoArchiveInterval",
  "autoDeleteInterval"];
const TIMES = ["createdAt", "updatedAt", "lastActivityAt"];
const SINGLE = ["id", "organizationId", "name", "target", "snapshot", "user", "env", "cpu", "gpu",
  "memory", "disk", "public", "networkBlockAll", "networkAllowList", "domainAllowList", "labels",
  "volumes", "state", "desiredState", "errorReason", "recoverable", ...SHARED_TAIL, "sandboxClass",
  ...TIMES, "buildInfo", "daemonVersion", "runnerId", "toolboxProxyUrl"];
const ITEM = ["id", "organizationId", "name", "target", "runnerId", "sandboxClass", "state",
  "desiredState", "snapshot", "user", "errorReason", "recoverable", "public", "cpu", "gpu",
  "memory", "disk", "labels", ...SHARED_TAIL, ...TIMES,
  "daemonVersion", "toolboxProxyUrl"];
// What the object that is not yet stored does not have; read back, they are null.
const NULL_WHEN_READ = ["networkAllowList", "domainAllowList", "errorReason"];

function pick(sandbox, names) {
  const written = {};
  for (const name of names) {
    if (sandbox[name] !== undefined) {
      written[name] = structuredClone(sandbox[name]);
    }
  }
  return written;
}

function read(sandbox) {
  const filled = { ...sandbox };
  for (const name of NULL_WHEN_READ) {
    filled[name] ??= null;
  }
  return filled;
}

// Written before the sandbox is stored and the runner knows of it.
export function createdSandbox(sandbox) {
  return pick({ ...sandbox, daemonVersion: undefined }, SINGLE);
}

export function wholeSandbox(sandbox) {
  return pick(read(sandbox), SINGLE);
}

// What stop, delete and the start of an archived one answer: it has no lastActivityAt.
export function changedSandbox(sandbox) {
  return pick({ ...read(sandbox), lastActivityAt: undefined }, SINGLE);
}

export function listedSandbox(sandbox) {
  return pick(read(sandbox), ITEM);
}
