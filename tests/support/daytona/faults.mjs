// SPDX-License-Identifier: MIT
// The faults a test asked for: each is played so many times and is gone then.
//
// For calls of the API: {call: name or "*", sandbox: id or name or null, times, skip, delayMs,
// effect: done all the same before it fails, action: "answer" | "hang" | "close" | "cut" | "none",
// status, message, body, headers}. "none" only delays.
// For the gateway: {stage: "accept" | "handshake" | "auth" | "ready" | "channel" | "exec" |
// "bytes", bytes, times, skip, action: "close" | "reset" | "hang"}.
export class Faults {
  list = [];

  add(fault) {
    if (!fault.call && !fault.stage) {
      throw new Error("a fault names a call or a stage");
    }
    this.list.push({ times: 1, skip: 0, action: fault.call ? "answer" : "close", ...fault });
  }

  clear() {
    this.list = [];
  }

  #use(matches) {
    for (const fault of this.list) {
      if (fault.times <= 0 || !matches(fault)) {
        continue;
      }
      if (fault.skip > 0) {
        fault.skip--;
        continue;
      }
      fault.times--;
      return fault;
    }
    return null;
  }

  take(name, sandboxNames) {
    return this.#use((fault) => fault.call && (fault.call === "*" || fault.call === name) &&
      (!fault.sandbox || sandboxNames.includes(fault.sandbox)));
  }

  takeStage(stage, bytes = 0) {
    return this.#use((fault) => fault.stage === stage && bytes >= (fault.bytes ?? 0));
  }
}
