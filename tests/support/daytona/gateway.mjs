// SPDX-License-Identifier: MIT
// The SSH gateway: the user name is the token, nobody is refused at authentication, and what it
// does to stderr, to exit statuses and to environments is what the real one was seen to do.
import { spawn } from "node:child_process";
import crypto from "node:crypto";
import net from "node:net";

import ssh2 from "ssh2";

import { MARK } from "./processes.mjs";

const KEEPALIVE = 45000;
const DAY = 24 * 3600 * 1000;
const VALIDATION = 5; // ms for which the gateway asks the control plane about a token
// The window between the gateway and the daemon: what stderr takes of it is never given back.
const STDERR_MOST = 2 * 1024 * 1024;
const SFTP_SERVER = "/usr/lib/openssh/sftp-server";

// Of the keys that ssh2 makes, it cannot itself read about one in three hundred.
function newKey() {
  for (;;) {
    const key = ssh2.utils.generateKeyPairSync("ed25519").private;
    if (!(ssh2.utils.parseKey(key) instanceof Error)) {
      return key;
    }
  }
}

export class Gateway {
  connections = new Set();
  #exits = 0;

  constructor(world, otherWorld, faults, environment, hostKey) {
    Object.assign(this, { world, worlds: [world, otherWorld], faults, environment });
    this.hostKey = hostKey ?? newKey();
    const key = ssh2.utils.parseKey(this.hostKey);
    const hash = crypto.createHash("sha256").update(key.getPublicSSH()).digest("base64");
    this.fingerprint = `SHA256:${hash.replace(/=+$/, "")}`;
    this.publicKey = `${key.type} ${key.getPublicSSH().toString("base64")}`;
    // The real gateway never asks whether its client lives. For ssh2, 0 is its own default of 15 s.
    this.ssh = new ssh2.Server({ hostKeys: [this.hostKey], ident: "Go", keepaliveInterval: DAY },
      (client) => this.#greet(client));
    this.server = net.createServer((socket) => this.#accept(socket));
    for (const one of this.worlds) {
      one.onGone = (id) => this.#endChannels(id);
    }
  }

  listen() {
    return new Promise((resolve) => {
      this.server.listen(0, "127.0.0.1", () => resolve(this.server.address().port));
    });
  }

  close() {
    this.server.close();
    this.dropAll();
  }

  dropAll() {
    for (const connection of this.connections) {
      connection.socket.destroy();
    }
  }

  // ---- connections ----

  // Plays the fault that is due at a stage; true when there was one.
  #trip(connection, stage, bytes) {
    const fault = connection.dead ? null : this.faults.takeStage(stage, bytes);
    if (!fault) {
      return connection.dead;
    }
    connection.dead = true;
    if (fault.action === "hang") {
      connection.socket.pause();
      connection.socket.write = () => true;
    } else if (fault.action === "reset") {
      connection.socket.resetAndDestroy();
    } else {
      connection.socket.destroy();
    }
    return true;
  }

  #accept(socket) {
    const connection = { socket, sandbox: null, channels: new Set(), dead: false, user: null };
    this.connections.add(connection);
    socket.setNoDelay(true);
    socket.on("error", () => {});
    socket.on("close", () => this.connections.delete(connection));
    if (this.#trip(connection, "accept")) {
      return;
    }
    socket.once("data", () => this.#trip(connection, "handshake"));
    socket.on("data", () => this.#count(connection));
    socket.connection = connection;
    this.ssh.injectSocket(socket);
  }

  #count(connection) {
    const { bytesRead, bytesWritten } = connection.socket;
    this.#trip(connection, "bytes", bytesRead + bytesWritten);
  }

  #greet(client) {
    const connection = client._sock.connection;
    client.on("error", () => {});
    client.on("authentication", (context) => {
      if (this.#trip(connection, "auth")) {
        return;
      }
      if (context.method !== "none") {
        context.reject(["none"]);
        return;
      }
      connection.user = context.username;
      context.accept();
    });
    client.on("ready", () => this.#admit(connection));
    client.on("session", (accept) => {
      if (connection.sandbox && !this.#trip(connection, "channel")) {
        this.#session(connection, accept());
      }
    });
    client.on("tcpip", (accept, reject, info) =>
      this.#tunnel(connection, accept, reject, { host: info.destIP, port: info.destPort }));
    client.on("openssh.streamlocal", (accept, reject, info) =>
      this.#tunnel(connection, accept, reject, { path: info.socketPath }));
    client.on("request", (accept, reject) => reject?.());
  }

  // The token is looked at once, here; who is not welcome is dropped without a word.
  #admit(connection) {
    if (this.#trip(connection, "ready")) {
      return;
    }
    connection.world = this.worlds.find((one) => one.validate(connection.user)) ?? this.world;
    const sandbox = connection.world.findById(connection.world.validate(connection.user));
    const labels = Object.values(sandbox?.labels ?? {});
    const readable = !this.world.settings.labelsCheckedOnConnect ||
      labels.every((value) => typeof value === "string");
    if (sandbox?.state !== "started" || !readable) {
      setTimeout(() => connection.socket.end(), VALIDATION);
      return;
    }
    connection.sandbox = sandbox;
  }

  #isReachable(connection) {
    return !this.world.settings.backendDown && connection.world.isListening(connection.sandbox);
  }

  // Whatever an open channel is used for, it is activity.
  #keepAlive(connection, channel) {
    const { clock } = this.world;
    let timer = null;
    const tick = () => {
      connection.world.active(connection.sandbox.id);
      timer = clock.after(KEEPALIVE, tick);
    };
    tick();
    connection.channels.add(channel);
    channel.ended = () => {
      clock.cancel(timer);
      connection.channels.delete(channel);
    };
  }

  #endChannels(id) {
    for (const connection of this.connections) {
      for (const channel of connection.sandbox?.id === id ? connection.channels : []) {
        channel.gone = true;
        channel.stream?.close();
      }
    }
  }

  // ---- channels ----

  #tunnel(connection, accept, reject, target) {
    if (!connection.sandbox || !this.#isReachable(connection)) {
      reject();
      return;
    }
    const socket = net.connect({ ...target, allowHalfOpen: true });
    socket.once("error", () => reject());
    socket.once("connect", () => {
      const stream = accept();
      const channel = { kind: "tunnel", stream, gone: false };
      this.#keepAlive(connection, channel);
      stream.on("error", () => socket.destroy());
      socket.on("error", () => stream.close());
      stream.on("close", () => {
        channel.ended();
        socket.destroy();
      });
      socket.pipe(stream).pipe(socket);
    });
  }

  #session(connection, session) {
    const channel = { kind: "session", stream: null, gone: false, child: null };
    this.#keepAlive(connection, channel);
    for (const name of ["env", "pty", "window-change"]) {
      session.on(name, (accept) => this.#isReachable(connection) && accept?.());
    }
    session.on("signal", (accept, reject, { name }) => {
      channel.child?.kill(`SIG${name}`);
      accept?.();
    });
    session.on("close", () => channel.ended());
    const start = (accept, argv, command) => {
      if (this.#trip(connection, "exec") || !this.#isReachable(connection)) {
        return; // never answered
      }
      channel.command = command;
      channel.stream = accept();
      this.#run(connection, channel, argv);
    };
    session.on("exec", (accept, reject, { command }) =>
      start(accept, ["/bin/sh", "-c", command], command));
    session.on("shell", (accept) => start(accept, ["/bin/sh"], "shell"));
    session.on("subsystem", (accept, reject, { name }) =>
      (name === "sftp" ? start(accept, [SFTP_SERVER], name) : reject?.()));
  }

  #run(connection, channel, argv) {
    const { sandbox } = connection;
    const home = this.world.home(sandbox);
    const env = { ...this.environment, HOME: home, USER: sandbox.user, LOGNAME: sandbox.user,
      ...sandbox.env, [MARK]: sandbox.id };
    // In the session and the group of the daemon, as the real one leaves it.
    const child = spawn(argv[0], argv.slice(1), { cwd: home, env });
    channel.child = child;
    child.on("error", () => channel.stream.close());
    this.#connectStreams(connection, channel, child);
    const { stream } = channel;
    stream.on("error", () => {});
    stream.on("close", () => {
      channel.ended();
      if (this.world.settings.keepsVanished) {
        for (const output of [child.stdout, child.stderr]) {
          output.removeAllListeners("data").resume();
        }
        return;
      }
      channel.isClosed = true;
      child.stdin.end(); // and nothing else: it is not killed
      for (const output of [child.stdout, child.stderr]) {
        if (output.isPaused()) {
          output.destroy(); // the write under way fails, and so will the child's next one
        }
      }
    });
    child.on("close", (code) => {
      channel.child = null;
      this.#whenSent(channel, () => this.#exit(channel, code));
    });
  }

  // Once stderr has taken the window, the next byte of either is never sent: the daemon waits to
  // send it for as long as the channel is there, and so never tells how the child ended.
  #connectStreams(connection, channel, child) {
    const { stream } = channel;
    let window = STDERR_MOST;
    const freeze = () => {
      channel.frozen = true;
      child.stdout.pause();
      child.stderr.pause();
    };
    child.stdin.on("error", () => {});
    stream.pipe(child.stdin, { end: false });
    stream.on("end", () => {
      const { socket } = connection;
      const hasVanished = socket.destroyed || socket.readableEnded;
      if (!hasVanished || !this.world.settings.keepsVanished) {
        child.stdin.end();
      }
    });
    child.stdout.on("data", (data) => {
      if (channel.isClosed) {
        child.stdout.destroy(); // what writes on dies of it
      } else if (window === 0) {
        freeze();
      } else if (!this.#send(channel, data)) {
        child.stdout.pause();
        stream.once("drain", () => channel.frozen || child.stdout.resume());
      }
      this.#count(connection);
    });
    child.stderr.on("data", (data) => {
      if (channel.isClosed) {
        child.stderr.destroy();
      } else if (data.length > window) {
        window = 0;
        freeze();
      } else {
        window -= data.length;
      }
    });
  }

  #send(channel, data) {
    channel.unsent = (channel.unsent ?? 0) + 1;
    return channel.stream.write(data, () => {
      channel.unsent--;
      if (channel.unsent === 0) {
        channel.stream.emit("sent");
      }
    });
  }

  #whenSent(channel, then) {
    if (channel.unsent > 0) {
      channel.stream.once("sent", then);
    } else {
      then();
    }
  }

  // A child that was killed by a signal is told as 1. Every so many statuses overtake nothing and
  // are lost: the channel closes without one.
  #exit(channel, code) {
    const { stream } = channel;
    if (channel.frozen) {
      return;
    }
    const every = this.world.settings.exitLostEvery;
    const isLost = every > 0 && ++this.#exits % every === 0;
    if (!channel.gone && !isLost) {
      stream.exit(code ?? 1);
    }
    stream.end();
  }
}
