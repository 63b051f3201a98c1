// SPDX-License-Identifier: MIT
// An SSH client on the library ssh2, driven by lines of JSON: gateway_client.mjs PORT USER. Says
// {connected} or {error} first; for each {command, input, waitMs} of stdin it runs the command on a
// channel of its one connection and answers {opened, stdout, stderr, code, closed}; what is not
// closed in waitMs stays open.
import readline from "node:readline";

import ssh2 from "ssh2";

const [port, username] = process.argv.slice(2);
const client = new ssh2.Client();
let isClosed = false;

function say(value) {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

function run({ command, input, waitMs }) {
  return new Promise((resolve) => {
    const seen = { opened: false, stdout: 0, text: "", stderr: 0, code: null, closed: false };
    const timer = setTimeout(() => resolve({ ...seen, isClosed }), waitMs);
    client.exec(command, (error, stream) => {
      if (error) {
        seen.error = error.message;
        clearTimeout(timer);
        resolve({ ...seen, isClosed });
        return;
      }
      seen.opened = true;
      stream.on("data", (data) => {
        seen.stdout += data.length;
        seen.text = (seen.text + data.toString()).slice(-200);
      });
      stream.stderr.on("data", (data) => {
        seen.stderr += data.length;
      });
      stream.on("exit", (code) => {
        seen.code = code;
      });
      stream.on("close", () => {
        clearTimeout(timer);
        resolve({ ...seen, closed: true, isClosed });
      });
      if (input !== undefined) {
        stream.end(input);
      }
    });
  });
}

async function converse() {
  say({ connected: true });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    say(isClosed ? { isClosed } : await run(JSON.parse(line)));
  }
  client.destroy();
}

client.on("ready", converse);
client.on("close", () => {
  isClosed = true;
});
client.on("error", (error) => {
  say({ error: error.message });
  process.exit(0);
});
client.connect({ host: "127.0.0.1", port: Number(port), username });
