// SPDX-License-Identifier: MIT
// What a test asks of the stand-in itself, beside the API: /control/….
import { lookAround, pidsOf } from "./processes.mjs";
import { applySettings } from "./settings.mjs";

// A sandbox's own, of no use to a test.
const KEPT = ["step", "timer", "waiting", "folderName", "sshdAt"];

function written(stand, sandbox, seen) {
  const shown = Object.entries(sandbox).filter(([name]) => !KEPT.includes(name));
  return { ...Object.fromEntries(shown), folder: stand.world.folder(sandbox),
    home: stand.world.home(sandbox), isListening: stand.world.isListening(sandbox),
    pids: pidsOf(sandbox.id, stand.world.folder(sandbox), seen) };
}

function sandboxes(stand) {
  const seen = lookAround();
  return [...stand.world.sandboxes.values()].map((one) => written(stand, one, seen));
}

function connections(stand) {
  return [...stand.gateway.connections].map((one) => ({ sandboxId: one.sandbox?.id ?? null,
    token: one.user, channels: [...one.channels].map(({ kind, command }) => ({ kind, command })),
    bytes: one.socket.bytesRead + one.socket.bytesWritten }));
}

function sandboxOf(stand, idOrName) {
  const all = [...stand.world.sandboxes.values()];
  const sandbox = all.find((one) => one.id === idOrName || one.name === idOrName);
  if (!sandbox) {
    throw new Error(`there is no sandbox ${idOrName}`);
  }
  return sandbox;
}

const CONTROLS = {
  "GET /control/state": (stand) => ({ now: stand.clock.iso(), settings: stand.world.settings,
    sandboxes: sandboxes(stand),
    tokens: stand.world.tokens, connections: connections(stand), counts: stand.rest.counts,
    calls: stand.rest.log.length, faults: stand.faults.list }),
  "GET /control/calls": (stand, { query }) =>
    stand.rest.log.slice(Number(query.get("from") ?? 0)),
  "POST /control/settings": (stand, { body }) => applySettings(stand.world.settings, body),
  "POST /control/faults": (stand, { body }) => stand.faults.add(body),
  "DELETE /control/faults": (stand) => stand.faults.clear(),
  "POST /control/clock": (stand, { body }) => stand.clock.advance(body.advanceMs),
  // {sandbox, set: {state, desiredState, errorReason, …}, kill: its processes}
  "POST /control/sandbox": (stand, { body }) => {
    const sandbox = sandboxOf(stand, body.sandbox);
    stand.world.force(sandbox, body.set ?? {});
    if (body.kill) {
      stand.world.killProcesses(sandbox);
    }
  },
  // It is gone, at once, as if somebody else had deleted it a while ago.
  "DELETE /control/sandbox": (stand, { body }) => {
    const sandbox = sandboxOf(stand, body.sandbox);
    stand.world.force(sandbox, { state: "destroyed", desiredState: "destroyed",
      name: `DESTROYED_${sandbox.name}_${stand.clock.now()}` });
    stand.world.forget(sandbox);
  },
  "DELETE /control/tokens": (stand) => {
    for (const token of stand.world.tokens) {
      token.revoked = true;
    }
  },
  "DELETE /control/connections": (stand) => stand.gateway.dropAll(),
};

export async function control(stand, request, response) {
  const url = new URL(request.url, "http://127.0.0.1");
  const parts = [];
  for await (const part of request) {
    parts.push(part);
  }
  const text = Buffer.concat(parts).toString();
  const handler = CONTROLS[`${request.method} ${url.pathname}`];
  let status = 200;
  let answer;
  try {
    if (!handler) {
      throw new Error(`there is no ${request.method} ${url.pathname}`);
    }
    const body = text === "" ? {} : JSON.parse(text);
    answer = (await handler(stand, { query: url.searchParams, body })) ?? {};
  } catch (error) {
    status = 400;
    answer = { error: String(error) };
  }
  response.writeHead(status, { "Content-Type": "application/json" });
  response.end(JSON.stringify(answer));
}
