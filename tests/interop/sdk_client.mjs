// SPDX-License-Identifier: MIT
// A client on the library of @agentclientprotocol/sdk: sdk_client.mjs DIR MODE AGENT...
// MODE is "allow" or "reject" (its answer to permission requests) or "cancel" (the turn, after its
// first update). Prints one JSON line of what it saw.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [directory, mode, command, ...words] = process.argv.slice(2);
const agent = spawn(command, words, { stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise((resolve) => {
  agent.on("exit", (code, signal) => resolve({ code, signal }));
});
const seen = { updates: [], permissions: 0 };
let connection;

function choose(request) {
  const kind = mode === "reject" ? "reject_once" : "allow_once";
  const option = request.options.find((offered) => offered.kind === kind);
  return { outcome: { outcome: "selected", optionId: option.optionId } };
}

async function takeUpdate(params) {
  seen.updates.push(params.update.sessionUpdate);
  if (mode === "cancel" && seen.updates.length === 1) {
    await connection.notify(acp.methods.agent.session.cancel, { sessionId: params.sessionId });
  }
}

async function converse(context) {
  connection = context;
  const initialized = await context.request(acp.methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true } },
  });
  const { sessionId } = await context.request(acp.methods.agent.session.new, {
    cwd: directory,
    mcpServers: [],
  });
  const answer = await context.request(acp.methods.agent.session.prompt, {
    sessionId,
    prompt: [{ type: "text", text: "Please go on" }],
  });
  return { protocolVersion: initialized.protocolVersion, stopReason: answer.stopReason };
}

const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const result = await acp
  .client({ name: "interop-client" })
  .onRequest(acp.methods.client.session.requestPermission, (context) => {
    seen.permissions += 1;
    return choose(context.params);
  })
  .onNotification(acp.methods.client.session.update, (context) => takeUpdate(context.params))
  .connectWith(stream, converse);

agent.stdin.end();
console.log(JSON.stringify({ ...result, ...seen, ended: await ended }));
