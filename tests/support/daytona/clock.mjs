// SPDX-License-Identifier: MIT
// The clock of the stand-in: it runs as time does, and can be set forward. What is due on the way
// happens in its order, at its own time: an hour passes as sixty minutes, not as one jump. It does
// not follow the machine's clock when that is set.
export class Clock {
  #start = Date.now() - performance.now();
  #ahead = 0;
  #due = new Set();
  #timeout = null;

  now() {
    return Math.floor(this.#start + performance.now()) + this.#ahead;
  }

  iso(time = this.now()) {
    return new Date(time).toISOString();
  }

  // Calls back once; the returned entry goes to cancel().
  after(ms, call) {
    const entry = { at: this.now() + ms, call };
    this.#due.add(entry);
    this.#arm();
    return entry;
  }

  cancel(entry) {
    this.#due.delete(entry);
  }

  wait(ms) {
    return new Promise((resolve) => {
      this.after(ms, resolve);
    });
  }

  // What a promise does next is given its turn between two entries.
  async advance(ms) {
    const end = this.now() + ms;
    for (let next = this.#next(); next && next.at <= end; next = this.#next()) {
      this.#ahead += Math.max(0, next.at - this.now());
      this.#due.delete(next);
      next.call();
      await new Promise(setImmediate);
    }
    this.#ahead += Math.max(0, end - this.now());
    this.#arm();
  }

  stop() {
    this.#due.clear();
    clearTimeout(this.#timeout);
  }

  #next() {
    let first = null;
    for (const entry of this.#due) {
      first = !first || entry.at < first.at ? entry : first;
    }
    return first;
  }

  #arm() {
    clearTimeout(this.#timeout);
    const next = this.#next();
    if (next) {
      const left = Math.min(Math.max(0, next.at - this.now()), 2 ** 30);
      this.#timeout = setTimeout(() => this.#fire(), left);
    }
  }

  #fire() {
    const now = this.now();
    const due = [...this.#due].filter((entry) => entry.at <= now).sort((a, b) => a.at - b.at);
    for (const entry of due) {
      if (this.#due.delete(entry)) {
        entry.call();
      }
    }
    this.#arm();
  }
}
