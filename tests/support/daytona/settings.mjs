// SPDX-License-Identifier: MIT
// What of the stand-in can be set through /control/settings, with its value at the start. States
// change in tens of milliseconds, where the service takes seconds, but pass through every state on
// the way. Milliseconds, of the stand-in's own clock.
export function defaultSettings() {
  return {
    latency: { create: 40, pull: 0, build: 40, start: 30, stop: 30, archive: 150, restore: 80,
      destroy: 30, sshd: 20 }, // sshd: after "started", until the daemon there takes connections
    waitStarted: 30000, // how long create and start wait before they answer
    listLag: 50, // a new sandbox is not in the list before
    snapshots: ["ubuntu:22.04", "daytona-small"], // the first is what a create without one gets
    regions: ["us", "eu"],
    limits: { authenticated: 10000, "sandbox-create": 300, "sandbox-lifecycle": 10000 },
    quota: { cpu: null, memory: null, disk: null }, // of all sandboxes together; null: none
    scopes: ["write:sandboxes", "delete:sandboxes"], // of every key
    tellsScopes: true, // it has the call that tells them
    // An organization of a lower tier: what every sandbox gets instead of what its create asked
    // for ({networkBlockAll, networkAllowList, domainAllowList}, or {}: the record says what was
    // asked for), and no change of it is taken. null: an organization that may do so.
    tierNetwork: null,
    hasTtl: true, // as 0.205 has it
    exitLostEvery: 3, // every third exit status is lost; 1: each of them, 0: none
    backendDown: false, // channels open, and no request on them is answered
    createFailures: [], // {reason, at: "runner" | "build", name}: each taken by the next create
    // (of this name)
    startFailures: [], // {reason, name}: the same of starts
    keepsVanished: false, // a channel whose client has vanished stays open for the daemon
    labelsCheckedOnConnect: true, // a label that is no string closes every connection
  };
}

// Sets members that exist; a name that does not is a mistake of the test.
export function applySettings(settings, changes) {
  for (const [name, value] of Object.entries(changes)) {
    if (!(name in settings)) {
      throw new Error(`there is no setting ${name}`);
    }
    const current = settings[name];
    if (current !== null && typeof current === "object" && !Array.isArray(current)) {
      applySettings(current, value);
    } else {
      settings[name] = value;
    }
  }
}
