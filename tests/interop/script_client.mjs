// SPDX-License-Identifier: MIT
// A client on the library of @agentclientprotocol/sdk that does what its script says:
// script_client.mjs DIR SCRIPT AGENT... . SCRIPT is a JSON list of {"mode": ID} and of
// {"prompt": TEXT, "answer": KIND}, where KIND is the option that permission requests are answered
// with. Prints a JSON line for everything that it does and sees, in order.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [directory, script, command, ...words] = process.argv.slice(2);
const agent = spawn(command, words, { stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise((resolve) => {
  agent.on("exit", (code, signal) => resolve({ code, signal }));
});
let answer;

function say(event) {
  console.log(JSON.stringify(event));
}

function choose(request) {
  const option = request.options.find((offered) => offered.kind === answer);
  say({ asked: request.toolCall.title, answered: answer });
  return { outcome: { outcome: "selected", optionId: option.optionId } };
}

function takeUpdate({ update }) {
  if (update.sessionUpdate === "current_mode_update") {
    say({ modeIs: update.currentModeId });
  } else if (update.sessionUpdate === "tool_call" && update.toolCallId.startsWith("acp-broker")) {
    say({ notice: update.title });
  } else if (update.sessionUpdate === "tool_call_update" && update.status) {
    say({ tool: update.status });
  } else if (update.sessionUpdate === "agent_message_chunk" && update.content.text) {
    say({ says: update.content.text });
  }
}

async function act(context, sessionId, step) {
  answer = step.answer;
  try {
    if (step.mode) {
      say({ set: step.mode });
      await context.request(acp.methods.agent.session.setMode, { sessionId, modeId: step.mode });
      say({ done: "session/set_mode" });
      return;
    }
    say({ prompt: step.prompt });
    const { stopReason } = await context.request(acp.methods.agent.session.prompt, {
      sessionId,
      prompt: [{ type: "text", text: step.prompt }],
    });
    say({ done: stopReason });
  } catch (error) {
    say({ failed: error.data?.code, message: error.message });
  }
}

async function converse(context) {
  await context.request(acp.methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {},
  });
  const opened = await context.request(acp.methods.agent.session.new, {
    cwd: directory,
    mcpServers: [],
  });
  say({ opened: opened.modes?.currentModeId });
  for (const step of JSON.parse(script)) {
    await act(context, opened.sessionId, step);
  }
}

const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
await acp
  .client({ name: "script-client" })
  .onRequest(acp.methods.client.session.requestPermission, (context) => choose(context.params))
  .onNotification(acp.methods.client.session.update, (context) => takeUpdate(context.params))
  .connectWith(stream, converse);

agent.stdin.end();
say({ ended: await ended });
