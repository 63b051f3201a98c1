// SPDX-License-Identifier: MIT
// The processes of a sandbox: found by /proc through a variable in their environment, by the
// folder they work in, and by whose children they are, so that a stop leaves none, as the end of a
// container does.
import fs from "node:fs";

export const MARK = "DAYTONA_SANDBOX_ID";
const ROUNDS = 200;

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

export function pidsOf(id, folder) {
  const mark = `${MARK}=${id}\0`;
  const living = new Map();
  for (const name of fs.readdirSync("/proc")) {
    const stat = /^\d+$/.test(name) && Number(name) !== process.pid ? statOf(name) : null;
    if (stat) {
      living.set(Number(name), stat[1]);
    }
  }
  const found = new Set();
  for (const pid of living.keys()) {
    const where = folderOf(pid);
    if (`\0${read(`/proc/${pid}/environ`)}`.includes(`\0${mark}`) || where === folder ||
        where.startsWith(`${folder}/`)) {
      found.add(pid);
    }
  }
  for (let size = -1; size !== found.size;) {
    size = found.size;
    for (const [pid, parent] of living) {
      if (found.has(parent)) {
        found.add(pid);
      }
    }
  }
  return [...found];
}

// Until there is none: one that forks meanwhile is met in the next round.
export function killAll(id, folder) {
  for (let round = 0; round < ROUNDS; round++) {
    const pids = pidsOf(id, folder);
    if (pids.length === 0) {
      return;
    }
    for (const pid of pids) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It has ended by itself.
      }
    }
  }
}
