// SPDX-License-Identifier: MIT
// A stand-in for Daytona, on loopback: the control plane's REST API (/api), the SSH gateway, and
// what a test sets and reads (/control). stand_in.mjs --dir FOLDER [--tls-cert FILE --tls-key FILE]
// [--host-key FILE] [--env NAME=VALUE]...
// The sandboxes are folders below FOLDER, their processes are ordinary ones of this machine. The
// first line on stdout says where everything is; it ends, with every process of every sandbox, at
// the end of stdin and at SIGTERM.
import crypto from "node:crypto";
import fs from "node:fs";
import http from "node:http";
import https from "node:https";
import { parseArgs } from "node:util";

import { Clock } from "./clock.mjs";
import { control } from "./control.mjs";
import { Faults } from "./faults.mjs";
import { Gateway } from "./gateway.mjs";
import { Rest } from "./rest.mjs";
import { defaultSettings } from "./settings.mjs";
import { World } from "./world.mjs";

const text = { type: "string" };
const { values: options } = parseArgs({ options: { dir: text, "tls-cert": text, "tls-key": text,
  "host-key": text, env: { type: "string", multiple: true, default: [] } } });

function environment() {
  const base = { PATH: process.env.PATH, LANG: "C.UTF-8", SHELL: "/bin/sh" };
  for (const pair of options.env) {
    const end = pair.indexOf("=");
    base[pair.slice(0, end)] = pair.slice(end + 1);
  }
  return base;
}

function listen(server) {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve(server.address().port));
  });
}

const stand = { clock: new Clock(), faults: new Faults() };
const server = options["tls-cert"]
  ? https.createServer({ cert: fs.readFileSync(options["tls-cert"]),
    key: fs.readFileSync(options["tls-key"]) })
  : http.createServer();
const port = await listen(server);
const origin = `${options["tls-cert"] ? "https" : "http"}://127.0.0.1:${port}`;
const dir = fs.realpathSync(options.dir);
stand.world = new World(stand.clock, defaultSettings(), dir, `${origin}/toolbox`);
const otherWorld = new World(stand.clock, stand.world.settings, dir, `${origin}/toolbox`);
stand.gateway = new Gateway(stand.world, otherWorld, stand.faults, environment(),
  options["host-key"] && fs.readFileSync(options["host-key"]));
const sshPort = await stand.gateway.listen();
const keys = { apiKey: `dtn_${crypto.randomBytes(32).toString("hex")}`,
  secondKey: `dtn_${crypto.randomBytes(32).toString("hex")}`, // of the same organization
  otherKey: `dtn_${crypto.randomBytes(32).toString("hex")}`, // of another one
  gatewayKey: crypto.randomBytes(32).toString("hex"),
  jwt: ["h", "p", "s"].map((one) => one + crypto.randomBytes(12).toString("hex")).join(".") };
stand.rest = new Rest(stand.world, otherWorld, stand.faults, keys,
  (token) => `ssh -p ${sshPort} ${token}@127.0.0.1`);

server.on("request", (request, response) => {
  if (request.url.startsWith("/control/")) {
    control(stand, request, response);
  } else {
    stand.rest.take(request, response);
  }
});

function end() {
  stand.clock.stop();
  stand.gateway.close();
  let status = 0;
  for (const world of [stand.world, otherWorld]) {
    for (const sandbox of world.sandboxes.values()) {
      try {
        world.forget(sandbox);
      } catch (error) {
        process.stderr.write(`stand-in: ${error.message}\n`);
        status = 1;
      }
    }
  }
  process.exit(status);
}

process.on("SIGTERM", end);
process.stdin.on("end", end).on("error", end).resume();
process.stdout.write(`${JSON.stringify({ api: `${origin}/api`, control: `${origin}/control`,
  sshHost: "127.0.0.1", sshPort, hostKey: stand.gateway.fingerprint,
  hostKeyLine: stand.gateway.publicKey, ...keys,
  organizationId: stand.world.organizationId })}\n`);
