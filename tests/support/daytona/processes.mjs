// SPDX-License-Identifier: MIT
// The processes of a sandbox: found by /proc through a variable in their environment, by the
// folder they work in, and by whose children they are, so that a stop leaves none, as the end of a
// container does.
import fs from "node:fs";

export const MARK = "DAYTONA_SANDBOX_ID";
const KILL_MOST = 15000; // ms

function read(path) {
  try {
    return fs.readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

function folderOf(pid) {
  try {
    return fs.readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return "";
  }
}

// [state, parent] or null where there is no such process.
function statOf(pid) {
  const text = read(`/proc/${pid}/stat`);
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return text && !"ZX".includes(fields[0]) ? [fields[0], Number(fields[1])] : null;
}

// All that runs now: [{pid, parent, environ, folder}], to be asked about several sandboxes.
export function lookAround() {
  const seen = [];
  for (const name of fs.readdirSync("/proc")) {
    const stat = /^\d+$/.test(name) && Number(name) !== process.pid ? statOf(name) : null;
    if (stat) {
      seen.push({ pid: Number(name), parent: stat[1], environ: `\0${read(`/proc/${name}/environ`)}`,
        folder: folderOf(name) });
    }
  }
  return seen;
}

export function pidsOf(id, folder, seen = lookAround()) {
  const mark = `\0${MARK}=${id}\0`;
  const found = new Set(seen.filter((one) => one.environ.includes(mark) ||
    one.folder === folder || one.folder.startsWith(`${folder}/`)).map((one) => one.pid));
  for (let size = -1; size !== found.size;) {
    size = found.size;
    for (const { pid, parent } of seen) {
      if (found.has(parent)) {
        found.add(pid);
      }
    }
  }
  return [...found];
}

// Until there is none: one that forks meanwhile is met in the next round.
export function killAll(id, folder) {
  const end = Date.now() + KILL_MOST;
  const never = new Int32Array(new SharedArrayBuffer(4));
  for (let pids = pidsOf(id, folder); pids.length > 0; pids = pidsOf(id, folder)) {
    if (Date.now() > end) {
      throw new Error(`SIGKILL does not end ${pids}`);
    }
    for (const pid of pids) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It has ended by itself.
      }
    }
    Atomics.wait(never, 0, 0, 2); // ms
  }
}
