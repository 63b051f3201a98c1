// SPDX-License-Identifier: MIT
// The official client lives a sandbox's whole life: sdk_life.mjs API KEY GATEWAY_KEY. Prints what
// it saw as one line of JSON: {states: […], errors: {what: [class, status, message]}, …}.
import * as sdk from "@daytonaio/sdk";

const [apiUrl, apiKey, gatewayKey] = process.argv.slice(2);
const daytona = new sdk.Daytona({ apiUrl, apiKey, target: "us" });
const gateway = new sdk.Daytona({ apiUrl, apiKey: gatewayKey, target: "us" });
const seen = { states: [], errors: {} };

async function refused(what, attempt) {
  try {
    await attempt();
    seen.errors[what] = null;
  } catch (error) {
    seen.errors[what] = [error.constructor.name, error.statusCode ?? null, error.message];
  }
}

async function listed(query) {
  const names = [];
  for await (const one of daytona.list(query)) {
    names.push(one.name);
  }
  return names.sort();
}

async function until(sandbox, state) {
  for (let tries = 0; sandbox.state !== state && tries < 200; tries++) {
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
    await sandbox.refreshData();
  }
  seen.states.push(sandbox.state);
}

async function settings(sandbox) {
  seen.labels = await sandbox.setLabels({ broker: "b1", session: "s/2" });
  await sandbox.setAutostopInterval(0);
  await sandbox.setAutoArchiveInterval(120);
  await sandbox.setAutoDeleteInterval(-1);
  await sandbox.refreshActivity();
  await sandbox.updateNetworkSettings({ networkAllowList: "10.0.0.0/8" });
  await sandbox.refreshData();
  const { autoStopInterval, autoArchiveInterval, autoDeleteInterval, networkAllowList } = sandbox;
  seen.settings = { autoStopInterval, autoArchiveInterval, autoDeleteInterval, networkAllowList };
}

async function access(sandbox) {
  const first = await sandbox.createSshAccess(30);
  const second = await sandbox.createSshAccess(30);
  const same = await gateway.get(sandbox.id);
  seen.valid = [(await same.validateSshAccess(first.token)).valid,
    (await same.validateSshAccess(second.token)).valid];
  seen.command = second.sshCommand.replace(second.token, "TOKEN");
  await refused("validate with a user's key", () => sandbox.validateSshAccess(second.token));
  await sandbox.revokeSshAccess(second.token);
  seen.valid.push((await same.validateSshAccess(second.token)).valid);
}

async function life(sandbox) {
  seen.states.push(sandbox.state);
  await settings(sandbox);
  await access(sandbox);
  await refused("archive of a started one", () => sandbox.archive());
  await sandbox.stop();
  await until(sandbox, "stopped");
  await refused("stop of a stopped one", () => sandbox.stop());
  await sandbox.archive();
  await until(sandbox, "archived");
  await sandbox.start();
  await until(sandbox, "started");
  await sandbox.stop();
  await sandbox.start();
  await until(sandbox, "started");
}

async function refusals() {
  const wrong = new sdk.Daytona({ apiUrl, apiKey: "wrong" });
  await refused("wrong key", () => wrong.get("one"));
  await refused("no such sandbox", () => daytona.get("nobody"));
  await refused("name is taken", () => daytona.create({ name: "one" }));
  await refused("no such snapshot", () => daytona.create({ snapshot: "nope" }));
  await refused("fails to start", () => daytona.create({ name: "broken" }));
  await refused("fails to start, again", () => daytona.create({ name: "broken" }));
  seen.errorReason = (await daytona.get("broken")).errorReason;
  await daytona.delete(await daytona.get("broken"));
  await refused("too many", () => daytona.create({ name: "many" }));
}

const labels = { broker: "b1", session: "s/1" };
const one = await daytona.create({ name: "one", snapshot: "ubuntu:22.04", labels,
  envVars: { A: "1" }, autoStopInterval: 30, autoArchiveInterval: 60, autoDeleteInterval: -1,
  public: false, networkBlockAll: false });
const two = await daytona.create({ name: "two", image: "debian:12", labels: { broker: "b1" },
  resources: { cpu: 2, memory: 2, disk: 3 } });
seen.states.push(two.state);
const short = await daytona.create({ name: "short", ephemeral: true });
await new Promise((resolve) => {
  setTimeout(resolve, 200);
});
seen.listed = [await listed({ labels: { broker: "b1" } }), await listed({ labels }),
  await listed({ limit: 1 }), await listed({ labels: { broker: "b2" } })];
await life(one);
await short.stop();
await refusals();
seen.labelsReadBack = (await daytona.get("one")).labels;
await daytona.delete(await daytona.get("one"));
await refused("deleted", () => daytona.get("one"));
await daytona.delete(two, 60, true);
process.stdout.write(`${JSON.stringify(seen)}\n`);
process.exit(0);
