// SPDX-License-Identifier: MIT
// What the service checks of a request before it does anything, in its words.
import { Refusal } from "./wire.mjs";

const NUMBER = "must be a number conforming to the specified constraints";
const KINDS = {
  string: [(value) => typeof value === "string", "must be a string"],
  object: [(value) => typeof value === "object" && value !== null && !Array.isArray(value),
    "must be an object"],
  number: [(value) => typeof value === "number" && Number.isFinite(value), NUMBER],
  boolean: [(value) => typeof value === "boolean", "must be a boolean value"],
  array: [Array.isArray, "must be an array"],
};
const CREATE = { name: "string", snapshot: "string", user: "string", env: "object",
  labels: "object", public: "boolean", networkBlockAll: "boolean", networkAllowList: "string",
  domainAllowList: "string", target: "string", cpu: "number", gpu: "number", memory: "number",
  disk: "number", autoStopInterval: "number", autoArchiveInterval: "number",
  autoDeleteInterval: "number", ttlMinutes: "number", volumes: "array", buildInfo: "object",
  linkedSandbox: "string" };
const NETWORK = { networkBlockAll: "boolean", networkAllowList: "string",
  domainAllowList: "string" };
// A domain as the service takes it: the last label has letters alone.
const DOMAIN = /^(\*\.)?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,}$/i;
const LIST_MOST = 10;
const ARCHIVE_MOST = 43200;
const CIDR = /^(25[0-5]|2[0-4]\d|1?\d?\d)(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}\/(3[0-2]|[12]?\d)$/;
export const LISTED_STATES = ["creating", "restoring", "destroying", "started", "stopped",
  "starting", "stopping", "error", "build_failed", "pending_build", "building_snapshot", "unknown",
  "pulling_snapshot", "archived", "archiving", "resizing", "snapshotting", "forking", "pausing",
  "paused", "resuming"];

function checkTypes(body, types) {
  const wrong = [];
  for (const [name, kind] of Object.entries(types)) {
    if (body[name] !== undefined && body[name] !== null && !KINDS[kind][0](body[name])) {
      wrong.push(`${name} ${KINDS[kind][1]}`);
    }
  }
  if (wrong.length > 0) {
    throw new Refusal(400, wrong.join(", "));
  }
}

function checkEntries(text, pattern, title, plural) {
  const entries = (text ?? "").split(",").map((one) => one.trim()).filter((one) => one !== "");
  for (const one of entries) {
    if (!pattern.test(one)) {
      throw new Refusal(400, `Invalid ${title}: "${one}"`);
    }
  }
  if (entries.length > LIST_MOST) {
    throw new Refusal(400, `More than ${LIST_MOST} ${plural} in an allow list`);
  }
}

function checkNetwork(body) {
  checkEntries(body.networkAllowList, CIDR, "network", "networks");
  checkEntries(body.domainAllowList, DOMAIN, "domain", "domains");
}

// What is stored of a list: an empty text is none.
export function storedList(text) {
  return text === "" || text === null ? undefined : text;
}

// 0 is the longest, and so is all that is longer.
export function archiveMinutes(minutes) {
  return minutes === 0 ? ARCHIVE_MOST : Math.min(minutes, ARCHIVE_MOST);
}

export function checkInterval(title, minutes) {
  if (minutes < 0) {
    throw new Refusal(400, `${title} interval must be non-negative`);
  }
}

export function checkCreate(body, settings) {
  checkTypes(body, CREATE);
  if (body.buildInfo && typeof body.buildInfo.dockerfileContent !== "string") {
    throw new Refusal(400, "buildInfo.dockerfileContent must be a string");
  }
  if (body.buildInfo && body.snapshot) {
    throw new Refusal(400, "Cannot specify a snapshot when using a build info entry");
  }
  if (!body.buildInfo && ["cpu", "gpu", "memory", "disk"].some((name) => body[name])) {
    throw new Refusal(400, "Cannot specify Sandbox resources when using a snapshot");
  }
  if (body.target && !settings.regions.includes(body.target)) {
    throw new Refusal(404, "Region not found");
  }
  if (body.snapshot && !settings.snapshots.includes(body.snapshot)) {
    throw new Refusal(400, `Snapshot ${body.snapshot} not found. ` +
      "Did you add it through the Daytona Dashboard?");
  }
  checkInterval("Auto-stop", body.autoStopInterval);
  checkInterval("Auto-archive", body.autoArchiveInterval);
  checkNetwork(body);
}

export function checkNetworkSettings(body) {
  checkTypes(body, NETWORK);
  if (Object.keys(NETWORK).every((name) => body[name] === undefined)) {
    throw new Refusal(400, `At least one of ${Object.keys(NETWORK).join(", ")} must be provided`);
  }
  checkNetwork(body);
}

export function checkLabels(body) {
  if (!KINDS.object[0](body.labels)) {
    throw new Refusal(400, "labels must be an object");
  }
}

function checkLimit(text) {
  const limit = Number(text ?? 100);
  if (limit > 200) {
    throw new Refusal(400, "limit must not be greater than 200");
  }
  if (!(limit >= 1)) {
    throw new Refusal(400, "limit must not be less than 1");
  }
  return limit;
}

function checkLabelsText(text) {
  let labels;
  try {
    labels = JSON.parse(text ?? "{}");
  } catch {
    throw new Refusal(400, "Invalid labels JSON format");
  }
  return labels;
}

// The query of a list, as what it asks for.
export function checkList(query) {
  const states = query.getAll("states").flatMap((text) => text.split(","));
  const limit = checkLimit(query.get("limit") ?? undefined);
  if (states.some((state) => !LISTED_STATES.includes(state))) {
    throw new Refusal(400, "each value must be one of the following values: " +
      LISTED_STATES.join(", "));
  }
  return { states, limit, labels: checkLabelsText(query.get("labels") ?? undefined),
    name: query.get("name") ?? "", id: query.get("id") ?? "",
    includeErroredDeleted: query.get("includeErroredDeleted") === "true",
    sort: query.get("sort") ?? "createdAt", order: query.get("order") ?? "desc",
    cursor: query.get("cursor") };
}
