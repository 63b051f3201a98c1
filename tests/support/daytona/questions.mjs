// SPDX-License-Identifier: MIT
// An SSH server that takes keyboard-interactive alone, which the sshd of the tests cannot do
// without PAM: questions.mjs ROUNDS, where ROUNDS is JSON, [[{prompt, echo, answer}]]. Prints a
// line of JSON, {port, hostKey}, then one for each answer that was given, {answers}. Commands
// run in the environment that it has itself. It ends with its stdin.
import { spawn } from "node:child_process";
import net from "node:net";

import ssh2 from "ssh2";

const rounds = JSON.parse(process.argv[2]);
const children = new Set();

function newKey() {
  for (;;) {
    const key = ssh2.utils.generateKeyPairSync("ed25519").private;
    if (!(ssh2.utils.parseKey(key) instanceof Error)) {
      return key;
    }
  }
}

function say(what) {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}

function ask(context, left) {
  if (left.length === 0) {
    context.accept();
    return;
  }
  const round = left[0];
  context.prompt(round.map(({ prompt, echo }) => ({ prompt, echo })), (answers) => {
    say({ answers });
    if (round.every(({ answer }, i) => answers[i] === answer)) {
      ask(context, left.slice(1));
    } else {
      context.reject(["keyboard-interactive"]);
    }
  });
}

function run(channel, command) {
  const child = spawn("/bin/sh", ["-c", command], { detached: true });
  children.add(child.pid);
  channel.pipe(child.stdin);
  child.stdin.on("error", () => {});
  child.stdout.pipe(channel, { end: false });
  child.stderr.pipe(channel.stderr, { end: false });
  child.on("close", (code, signal) => {
    children.delete(child.pid);
    if (signal) {
      channel.exit(signal.slice(3));
    } else {
      channel.exit(code);
    }
    channel.end();
  });
}

const hostKey = newKey();
const server = new ssh2.Server({ hostKeys: [hostKey] }, (client) => {
  client.on("error", () => {});
  client.on("authentication", (context) => {
    if (context.method === "keyboard-interactive") {
      ask(context, rounds);
    } else {
      context.reject(["keyboard-interactive"]);
    }
  });
  client.on("ready", () => client.on("session", (accept) => {
    accept().on("exec", (acceptExec, reject, { command }) => run(acceptExec(), command));
  }));
});
const listener = net.createServer((socket) => {
  socket.setNoDelay(true);
  server.injectSocket(socket);
});
listener.listen(0, "127.0.0.1", () => {
  const key = ssh2.utils.parseKey(hostKey);
  say({ port: listener.address().port,
    hostKey: `${key.type} ${key.getPublicSSH().toString("base64")}` });
});
process.stdin.on("end", () => {
  for (const pid of children) {
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // it has just ended
    }
  }
  process.exit(0);
}).resume();
