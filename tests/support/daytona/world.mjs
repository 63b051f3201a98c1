// SPDX-License-Identifier: MIT
// The sandboxes, their states and their SSH tokens: everything the service remembers. A sandbox is
// a folder; what runs in it are processes of this machine.
import crypto from "node:crypto";
import fs from "node:fs";
import path from "node:path";

import { archiveMinutes, storedList } from "./asked.mjs";
import { killAll } from "./processes.mjs";
import { Refusal, changedSandbox, createdSandbox, wholeSandbox } from "./wire.mjs";

const MINUTE = 60000;
const FAILED = ["error", "build_failed"];
const ENDS_OF_START = ["started", "stopped", "archived", "destroyed", ...FAILED];
const USES_QUOTA = ["creating", "starting", "started", "restoring", "pending_build",
  "building_snapshot", "pulling_snapshot"];
const IN_PROGRESS = "Sandbox state change in progress";
const TOKEN_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

function newToken() {
  return Array.from({ length: 32 }, () => TOKEN_LETTERS[crypto.randomInt(62)]).join("");
}

export class World {
  organizationId = crypto.randomUUID();
  runnerId = crypto.randomUUID();
  sandboxes = new Map(); // by id; the destroyed ones, too
  tokens = [];
  onGone = () => {}; // called with an id when its processes are killed

  constructor(clock, settings, dir, toolboxUrl) {
    Object.assign(this, { clock, settings, dir, toolboxUrl });
  }

  // ---- looking them up ----

  #isVisible(sandbox) {
    const deleted = FAILED.includes(sandbox.state) && sandbox.desiredState === "destroyed";
    return sandbox.state !== "destroyed" && !deleted;
  }

  findById(id) {
    const sandbox = this.sandboxes.get(id);
    return sandbox && this.#isVisible(sandbox) ? sandbox : null;
  }

  find(idOrName) {
    const visible = [...this.sandboxes.values()].filter((one) => this.#isVisible(one));
    const sandbox = this.findById(idOrName) ?? visible.find((one) => one.name === idOrName);
    if (!sandbox) {
      throw new Refusal(404, `Sandbox with ID or name ${idOrName} not found`);
    }
    return sandbox;
  }

  listable(includeErroredDeleted) {
    const now = this.clock.now();
    return [...this.sandboxes.values()].filter((one) => now >= one.listedAt &&
      one.state !== "destroyed" && (includeErroredDeleted || this.#isVisible(one)));
  }

  // A home is called the same in every sandbox there; here, in a later one of the same name.
  #folderName({ id, name }) {
    return fs.existsSync(path.join(this.dir, name)) ? id : name;
  }

  folder(sandbox) {
    return path.join(this.dir, sandbox.folderName);
  }

  home(sandbox) {
    return path.join(this.folder(sandbox), "home", "daytona");
  }

  // ---- states ----

  #touch(sandbox, change) {
    Object.assign(sandbox, change, { updatedAt: this.clock.iso() });
    if (change.state) {
      sandbox.states.push(change.state);
      sandbox.waiting.splice(0).forEach((resolve) => resolve());
    }
    this.#arm(sandbox);
  }

  // As long as a create or a start waits: until it is started or has failed.
  async untilStarted(sandbox) {
    let isLate = false;
    const late = this.clock.wait(this.settings.waitStarted).then(() => {
      isLate = true;
    });
    while (!isLate && !ENDS_OF_START.includes(sandbox.state)) {
      await Promise.race([late, new Promise((resolve) => {
        sandbox.waiting.push(resolve);
      })]);
    }
    if (FAILED.includes(sandbox.state)) {
      throw new Refusal(400, `Sandbox failed to start: ${sandbox.errorReason}`);
    }
  }

  // One state after the other: [[ms, change or what makes it, then], …]. A later course ends an
  // earlier one.
  course(sandbox, steps) {
    this.clock.cancel(sandbox.step);
    const [step, ...rest] = steps;
    if (step) {
      sandbox.step = this.clock.after(step[0], () => {
        this.#touch(sandbox, typeof step[1] === "function" ? step[1]() : step[1]);
        step[2]?.();
        this.course(sandbox, rest);
      });
    }
  }

  killProcesses(sandbox) {
    this.onGone(sandbox.id);
    killAll(sandbox.id, this.folder(sandbox));
  }

  // "started" is told before the daemon in it listens.
  #running() {
    return { state: "started", daemonVersion: "v0.190.0", lastActivityAt: this.clock.iso(),
      sshdAt: this.clock.now() + this.settings.latency.sshd };
  }

  isListening(sandbox) {
    return sandbox.state === "started" && this.clock.now() >= (sandbox.sshdAt ?? 0);
  }

  #refuseWhileChanging(sandbox, ...allowed) {
    const settled = sandbox.state === sandbox.desiredState || FAILED.includes(sandbox.state);
    if (!settled && !allowed.includes(sandbox.state)) {
      throw new Refusal(409, IN_PROGRESS);
    }
  }

  #refuseErrored(sandbox) {
    if (FAILED.includes(sandbox.state)) {
      throw new Refusal(400, "Sandbox is in an errored state");
    }
  }

  #refuseOverQuota(sandbox) {
    const units = { cpu: ["CPU", ""], memory: ["memory", "GiB"], disk: ["disk", "GiB"] };
    for (const [name, [title, unit]] of Object.entries(units)) {
      const most = this.settings.quota[name];
      const used = [...this.sandboxes.values()].filter((one) => one !== sandbox &&
        (name === "disk" ? this.#isVisible(one) : USES_QUOTA.includes(one.state)))
        .reduce((sum, one) => sum + one[name], 0);
      if (most !== null && used + sandbox[name] > most) {
        throw new Refusal(403, `Total ${title} limit exceeded. Maximum allowed: ${most}${unit}.\n` +
          "To increase concurrency limits, upgrade your organization's Tier.");
      }
    }
  }

  // The sandbox in its first state; ask() has made sure that everything in it is of its type.
  #newSandbox(asked) {
    const id = crypto.randomUUID();
    const time = this.clock.iso();
    const snapshot = asked.buildInfo ? undefined : asked.snapshot || this.settings.snapshots[0];
    const built = asked.buildInfo && { dockerfileContent: asked.buildInfo.dockerfileContent,
      contextHashes: asked.buildInfo.contextHashes ?? null, createdAt: time, updatedAt: time,
      snapshotRef: `daytona-${crypto.randomBytes(32).toString("hex")}:daytona` };
    return { id, organizationId: this.organizationId, name: asked.name || id,
      target: asked.target || this.settings.regions[0], snapshot, user: asked.user || "daytona",
      env: asked.env ?? {}, cpu: asked.cpu ?? 1, gpu: asked.gpu ?? 0, memory: asked.memory ?? 1,
      disk: asked.disk ?? 3, public: asked.public ?? false,
      networkBlockAll: asked.networkBlockAll ?? false,
      networkAllowList: storedList(asked.networkAllowList),
      domainAllowList: storedList(asked.domainAllowList), ...this.settings.tierNetwork,
      labels: asked.labels ?? {},
      volumes: asked.volumes ?? [], state: asked.buildInfo ? "pending_build" : "creating",
      desiredState: "started", recoverable: false, backupState: "None",
      autoStopInterval: asked.autoStopInterval ?? 15,
      autoArchiveInterval: archiveMinutes(asked.autoArchiveInterval ?? 10080),
      autoDeleteInterval: asked.autoDeleteInterval ?? -1, sandboxClass: "container",
      createdAt: time, updatedAt: time, lastActivityAt: time, runnerId: this.runnerId,
      buildInfo: built, toolboxProxyUrl: this.toolboxUrl,
      listedAt: this.clock.now() + this.settings.listLag, states: [], waiting: [],
      step: null, timer: null };
  }

  // The sandbox, and what create answers: what it is before it has started.
  create(asked) {
    const sandbox = this.#newSandbox(asked);
    this.#refuseOverQuota(sandbox);
    if ([...this.sandboxes.values()].some((one) => one.name === sandbox.name &&
        one.state !== "destroyed")) {
      throw new Refusal(409, `Sandbox with name ${sandbox.name} already exists`);
    }
    sandbox.states.push(sandbox.state);
    this.sandboxes.set(sandbox.id, sandbox);
    sandbox.folderName = this.#folderName(sandbox);
    fs.mkdirSync(this.home(sandbox), { recursive: true });
    const answer = createdSandbox(sandbox);
    this.course(sandbox, this.#createSteps(sandbox));
    return { sandbox, answer };
  }

  #takeFailure(failures, sandbox) {
    const index = failures.findIndex((one) => !one.name || one.name === sandbox.name);
    return index < 0 ? null : failures.splice(index, 1)[0];
  }

  #createSteps(sandbox) {
    const { create, pull, build } = this.settings.latency;
    const failure = this.#takeFailure(this.settings.createFailures, sandbox);
    const steps = [];
    if (sandbox.buildInfo) {
      steps.push([build / 2, { state: "building_snapshot" }]);
      if (failure?.at === "build") {
        steps.push([build / 2, { state: "build_failed", errorReason: failure.reason }]);
        return steps;
      }
      steps.push([build / 2, { state: "creating" }]);
    }
    if (pull > 0) {
      steps.push([0, { state: "pulling_snapshot" }], [pull, { state: "creating" }]);
    }
    if (failure) {
      steps.push([create, { state: "error", errorReason: failure.reason }]);
    } else {
      steps.push([create, () => this.#running()]);
    }
    return steps;
  }

  // Resolves with what start answers.
  async start(idOrName) {
    const sandbox = this.find(idOrName);
    if (sandbox.state === "started" && sandbox.desiredState === "started") {
      return wholeSandbox(sandbox);
    }
    this.#refuseErrored(sandbox);
    this.#refuseWhileChanging(sandbox, "archiving");
    this.#refuseOverQuota(sandbox);
    const { start, restore } = this.settings.latency;
    const failure = this.#takeFailure(this.settings.startFailures, sandbox);
    const last = () => (failure ? { state: "error", errorReason: failure.reason }
      : this.#running());
    if (sandbox.state === "archived") {
      this.#touch(sandbox, { desiredState: "started" });
      this.course(sandbox, [[restore / 4, { state: "restoring" }], [restore, last]]);
      return changedSandbox(sandbox);
    }
    this.#touch(sandbox, { state: "starting", desiredState: "started" });
    this.course(sandbox, [[start, last]]);
    await this.untilStarted(sandbox);
    return wholeSandbox(sandbox);
  }

  stop(idOrName) {
    const sandbox = this.find(idOrName);
    this.#refuseErrored(sandbox);
    this.#refuseWhileChanging(sandbox);
    if (!["started", "paused"].includes(sandbox.state)) {
      throw new Refusal(400, "Sandbox is not in a stoppable state");
    }
    return sandbox.autoDeleteInterval === 0 ? this.#destroy(sandbox) : this.#stop(sandbox);
  }

  #stop(sandbox) {
    this.#touch(sandbox, { state: "stopping", desiredState: "stopped" });
    this.course(sandbox, [[this.settings.latency.stop,
      () => ({ state: "stopped", lastActivityAt: this.clock.iso() }),
      () => this.killProcesses(sandbox)]]);
    return changedSandbox(sandbox);
  }

  archive(idOrName) {
    const sandbox = this.find(idOrName);
    this.#refuseWhileChanging(sandbox);
    if (sandbox.state !== "stopped") {
      throw new Refusal(400, "Sandbox is not stopped");
    }
    if (sandbox.autoDeleteInterval === 0) {
      throw new Refusal(400, "Ephemeral sandboxes cannot be archived");
    }
    this.#touch(sandbox, { state: "archiving", desiredState: "archived",
      lastActivityAt: this.clock.iso() });
    const answer = wholeSandbox(sandbox);
    const part = this.settings.latency.archive / 4;
    this.course(sandbox, [[0, { backupState: "Pending" }], [part, { backupState: "InProgress" }],
      [part * 3, () => ({ state: "archived", backupState: "Completed",
        backupCreatedAt: this.clock.iso() })]]);
    return answer;
  }

  remove(idOrName) {
    const sandbox = this.find(idOrName);
    if (sandbox.desiredState === "destroyed") {
      throw new Refusal(404, `Sandbox with ID or name ${idOrName} not found`);
    }
    this.#refuseWhileChanging(sandbox, "archiving");
    return this.#destroy(sandbox);
  }

  #destroy(sandbox) {
    const name = `DESTROYED_${sandbox.name}_${this.clock.now()}`;
    this.#touch(sandbox, { state: "destroying", desiredState: "destroyed", name,
      backupState: "None" });
    this.course(sandbox, [[this.settings.latency.destroy, { state: "destroyed" },
      () => this.forget(sandbox)]]);
    return changedSandbox(sandbox);
  }

  forget(sandbox) {
    this.killProcesses(sandbox);
    fs.rmSync(this.folder(sandbox), { recursive: true, force: true, maxRetries: 5 });
  }

  // By a test: any state, without the course to it.
  force(sandbox, change) {
    this.clock.cancel(sandbox.step);
    this.#touch(sandbox, change);
  }

  set(idOrName, change) {
    const sandbox = this.find(idOrName);
    this.#touch(sandbox, change);
    return wholeSandbox(sandbox);
  }

  // What networkBlockAll says replaces the CIDRs, also where it says false; a list beside it wins.
  // The domains stay until they are replaced, or cleared by "".
  setNetwork(idOrName, asked) {
    const sandbox = this.find(idOrName);
    const { networkBlockAll, networkAllowList, domainAllowList } = asked;
    const change = {};
    if (this.settings.tierNetwork !== null) {
      throw new Refusal(400, "Network settings cannot be changed in this organization's tier");
    }
    if (networkBlockAll !== undefined) {
      change.networkBlockAll = networkBlockAll && !networkAllowList;
      change.networkAllowList = undefined;
    }
    if (networkAllowList !== undefined) {
      change.networkAllowList = storedList(networkAllowList);
    }
    if (domainAllowList !== undefined) {
      change.domainAllowList = storedList(domainAllowList);
    }
    return this.set(sandbox.id, change);
  }

  // ---- time ----

  active(id) {
    const sandbox = this.sandboxes.get(id);
    if (sandbox) {
      sandbox.lastActivityAt = this.clock.iso();
      this.#arm(sandbox);
    }
  }

  // What happens to a sandbox nobody uses: stopped, then archived or deleted, by its intervals.
  #arm(sandbox) {
    this.clock.cancel(sandbox.timer);
    const since = Date.parse(sandbox.lastActivityAt);
    const due = [];
    if (sandbox.state === "started" && sandbox.autoStopInterval > 0) {
      due.push([sandbox.autoStopInterval, () => this.stop(sandbox.id)]);
    }
    if (sandbox.state === "stopped" && sandbox.autoDeleteInterval >= 0) {
      due.push([sandbox.autoDeleteInterval, () => this.#destroy(sandbox)]);
    }
    if (sandbox.state === "stopped" && sandbox.autoArchiveInterval > 0) {
      due.push([sandbox.autoArchiveInterval, () => this.archive(sandbox.id)]);
    }
    due.sort((a, b) => a[0] - b[0]);
    if (due.length > 0) {
      const left = Math.max(0, since + due[0][0] * MINUTE - this.clock.now());
      sandbox.timer = this.clock.after(left, () => {
        if (sandbox.state === sandbox.desiredState) {
          due[0][1]();
        }
      });
    }
  }

  // ---- SSH tokens ----

  mint(idOrName, minutes, sshCommand) {
    const sandbox = this.find(idOrName);
    this.revoke(sandbox.id);
    const time = this.clock.iso();
    const access = { id: crypto.randomUUID(), sandboxId: sandbox.id, token: newToken(),
      expiresAt: this.clock.iso(this.clock.now() + minutes * MINUTE), createdAt: time,
      updatedAt: time };
    this.tokens.push({ ...access, revoked: false });
    return { ...access, sshCommand: sshCommand(access.token) };
  }

  revoke(idOrName, token) {
    const sandbox = this.find(idOrName);
    for (const one of this.tokens) {
      if (one.sandboxId === sandbox.id && (!token || one.token === token)) {
        one.revoked = true;
      }
    }
    return wholeSandbox(sandbox);
  }

  // The id of the sandbox a token is good for now, or null.
  validate(token) {
    const found = this.tokens.find((one) => one.token === token && !one.revoked &&
      Date.parse(one.expiresAt) > this.clock.now());
    return found ? found.sandboxId : null;
  }
}
