// SPDX-License-Identifier: MIT
// The HTTP side of the control plane: who asks, how often, which fault is to be played, and what
// is written down of each call.
import crypto from "node:crypto";

import { findCall } from "./api.mjs";
import { Refusal, errorBody } from "./wire.mjs";

const WINDOW = 60000;
const LOG_MAX = 50000;

function etag(text) {
  const hash = crypto.createHash("sha1").update(text).digest("base64").slice(0, 27);
  return `W/"${Buffer.byteLength(text).toString(16)}-${hash}"`;
}

async function readBody(request) {
  const parts = [];
  for await (const part of request) {
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

export class Rest {
  log = []; // every call with both bodies
  counts = {}; // by name of the call
  #windows = {}; // by throttler: {start, used}

  constructor(world, otherWorld, faults, keys, sshCommand) {
    Object.assign(this, { world, otherWorld, faults, keys, sshCommand });
  }

  async take(request, response) {
    const url = new URL(request.url, "http://127.0.0.1");
    const found = findCall(request.method, url.pathname);
    const entry = { number: this.log.length, name: found?.name ?? this.#otherName(url),
      method: request.method, url: request.url, requestHeaders: request.headers,
      requestBody: "", status: null, responseHeaders: null, responseBody: null };
    this.counts[entry.name] = (this.counts[entry.name] ?? 0) + 1;
    if (this.log.length < LOG_MAX) {
      this.log.push(entry);
    }
    try {
      entry.requestBody = await readBody(request);
      await this.#answer({ request, response, url, found, entry });
    } catch (error) {
      if (!request.destroyed && !response.headersSent) {
        process.stderr.write(`stand-in: ${request.method} ${url.pathname}: ${error.stack}\n`);
        this.#send({ response, entry }, [500, { message: String(error) }], {});
      }
    }
  }

  // The official client asks for events over a web socket, too, and does without them.
  #otherName(url) {
    return url.pathname.startsWith("/api/socket.io/") ? "events" : "unknown";
  }

  #namesOf(idOrName) {
    const all = [...this.world.sandboxes.values()];
    const sandbox = all.find((one) => one.id === idOrName || one.name === idOrName);
    return sandbox ? [sandbox.id, sandbox.name] : [idOrName];
  }

  async #answer(turn) {
    const fault = this.faults.take(turn.entry.name, this.#namesOf(turn.found?.parts?.[0]));
    if (fault?.delayMs) {
      await new Promise((resolve) => {
        setTimeout(resolve, fault.delayMs);
      });
    }
    if (!fault || fault.effect || fault.action === "none") {
      const headers = {};
      const answer = await this.#perform(turn, headers);
      if (!fault || fault.action === "none") {
        this.#send(turn, answer, headers);
        return;
      }
    }
    this.#fail(turn, fault);
  }

  // [status, body] of the call as the service would answer it; fills in its headers.
  async #perform({ request, url, found, entry }, headers) {
    const time = this.world.clock.iso();
    try {
      const body = this.#parse(entry.requestBody); // before anybody asks for the key
      const context = this.#admit(request, found, headers, url);
      return await found.handler({ ...context, body });
    } catch (error) {
      if (!(error instanceof Refusal)) {
        throw error;
      }
      Object.assign(headers, error.headers);
      return [error.status, error.body ?? errorBody(request.url, time, error.status,
        error.message)];
    }
  }

  // Key, organisation, permission, rate, in this order.
  #admit(request, found, headers, url) {
    const key = /^Bearer (.*)$/.exec(request.headers.authorization ?? "")?.[1];
    const isJwt = key === this.keys.jwt;
    if (found?.name !== "config") {
      if (!Object.values(this.keys).includes(key)) {
        throw new Refusal(401, "Invalid credentials");
      }
      const organization = request.headers["x-daytona-organization-id"];
      if (isJwt && organization !== this.world.organizationId) {
        throw new Refusal(403, "Invalid authentication context");
      }
    }
    if (!found) {
      throw new Refusal(404, `Cannot ${request.method} ${url.pathname}`);
    }
    if (found.scope && !isJwt && !this.world.settings.scopes.includes(found.scope)) {
      throw new Refusal(403, "Forbidden resource");
    }
    this.#throttle(found.throttler, headers);
    const world = key === this.keys.otherKey ? this.otherWorld : this.world;
    return { world, parts: found.parts, query: url.searchParams,
      isJwt, isGateway: key === this.keys.gatewayKey, sshCommand: this.sshCommand };
  }

  #throttle(name, headers) {
    if (!name) {
      return;
    }
    const now = this.world.clock.now();
    let window = this.#windows[name];
    if (!window || now - window.start >= WINDOW) {
      window = this.#windows[name] = { start: now, used: 0 };
    }
    const limit = this.world.settings.limits[name];
    const left = Math.ceil((window.start + WINDOW - now) / 1000);
    if (window.used >= limit) {
      throw new Refusal(429, "ThrottlerException: Too Many Requests",
        { [`Retry-After-${name}`]: left });
    }
    window.used++;
    headers[`X-RateLimit-Limit-${name}`] = limit;
    headers[`X-RateLimit-Remaining-${name}`] = limit - window.used;
    headers[`X-RateLimit-Reset-${name}`] = left;
  }

  #parse(text) {
    if (text === "") {
      return {};
    }
    try {
      const value = JSON.parse(text);
      if (typeof value !== "object" || value === null) {
        throw new Error("neither an object nor an array");
      }
      return value;
    } catch {
      const refusal = new Refusal(400, "");
      refusal.body = { message: "Invalid JSON in request body", error: "Bad Request",
        statusCode: 400 };
      throw refusal;
    }
  }

  #send({ response, entry }, [status, body], headers) {
    const text = body === undefined ? "" : JSON.stringify(body);
    const all = { "X-Powered-By": "Express", Vary: "Origin", "X-Daytona-Api-Version": "0.0.0-dev",
      ...headers };
    if (text !== "") {
      Object.assign(all, { "Content-Type": "application/json; charset=utf-8",
        ETag: etag(text) });
    }
    all["Content-Length"] = Buffer.byteLength(text);
    Object.assign(entry, { status, responseHeaders: all, responseBody: text });
    response.writeHead(status, all);
    response.end(text);
  }

  // {action: "answer" | "hang" | "close" | "cut" | "garbage", status, body, headers}
  #fail({ request, response, entry }, fault) {
    if (fault.action === "hang") {
      return;
    }
    if (fault.action === "close") {
      request.socket.destroy();
      return;
    }
    const time = this.world.clock.iso();
    const body = fault.body ?? errorBody(request.url, time, fault.status ?? 500,
      fault.message ?? "An unexpected error occurred.");
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const type = typeof body === "string" ? "text/html" : "application/json; charset=utf-8";
    const headers = { "Content-Type": type, "Content-Length": Buffer.byteLength(text),
      ...fault.headers };
    Object.assign(entry, { status: fault.status ?? 500, responseHeaders: headers,
      responseBody: text });
    response.writeHead(fault.status ?? 500, headers);
    if (fault.action === "cut") {
      response.write(text.slice(0, Math.ceil(text.length / 2)));
      setTimeout(() => request.socket.destroy(), 20);
      return;
    }
    response.end(text);
  }
}
