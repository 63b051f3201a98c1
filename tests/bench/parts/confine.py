# SPDX-License-Identifier: MIT
"""
What confinement costs (`--confine`), beside no confinement, bubblewrap, and sandbox-runtime, in one
run and in turns. Everything runs as an ordinary user, at ordinary priority. The network needs root,
which makes two hosts out of namespaces. A program that is not installed has no column.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import origin
import two_hosts

from editor import Editor
from harness import MARK, Bench, BenchError, Result, Row, median, median_and_spread, number
from parts.toolhost import ordinary_priority

NAME = "confine"
COLUMNS = {"direct": "direct", "bare": "bubblewrap", "other": "sandbox-runtime",
           "broker": "`--confine`", "compared": "`--confine` to direct"}
HERE = pathlib.Path(__file__).resolve().parents[1]
USER = 12345  # root measures as this user
PATH = "/usr/local/bin:/usr/bin:/bin"  # every user reaches these folders, and a cell shows them
PYTHON = shutil.which("python3", path=PATH) or sys.executable
PROGRAMS = ("load_client", "load_agent")

START_MS, CONNECT_MS, LOAD_LEAST, NPM_MOST, TRIP_MOST = 25, 1, 0.9, 1.15, 1.1
STARTS = 2  # this many times the repetitions, because a start is short
TRIPS, CONNECTIONS, LOAD_BYTES, PACKAGES = 5000, 100, 128 << 20, 300
KEYS = {
    "plain": {"isolation": "copy"},
    "blocked": {"confine": "yes", "network": "blocked"},
    "allow": {"confine": "yes", "network": "allow"},
}
# Programs without this kind of network: bubblewrap has all of it or none, sandbox-runtime has its
# proxies.
LACKS = {"blocked": "other", "allow": "bare"}


def find_reference():
    """The program of sandbox-runtime, or None."""
    ours = HERE / "references/node_modules/.bin/srt"
    return str(ours) if ours.exists() else shutil.which("srt")


class Place:
    """The folders and the user, and each way to run a command."""

    def __init__(self, bench, folder):
        self.folder = pathlib.Path(folder)
        self.bench = Bench(bench.broker, str(self.folder / "programs"), folder, bench.repeat,
                           bench.quick)
        self.bench.env["PATH"] = PATH
        self.work = pathlib.Path(self.bench.work)
        self.front = []
        programs = self.folder / "programs"
        programs.mkdir()
        for name in PROGRAMS:
            shutil.copy(bench.tool(name), programs)
        shutil.copy(HERE / "inside.py", self.work)
        if bench.broker:
            self.bench.broker = str(programs / "acp-broker")
            self.copy_broker(os.path.realpath(bench.broker))
        self.write_settings()
        for name in KEYS:
            self.write_profile(name)
        self.give()
        if not self.has_namespaces():
            self.bench.broker = None

    def copy_broker(self, path):
        """
        Copies the broker in the form that packages have: each cell gets a copy of the program.
        """
        if shutil.which("strip"):
            two_hosts.run("strip", "-o", self.bench.broker, path)
        else:
            shutil.copy(path, self.bench.broker)

    def write_settings(self):
        settings = {"network": {"allowedDomains": [*two_hosts.ADDRESSES], "deniedDomains": []},
                    "filesystem": {"denyRead": [], "allowWrite": [str(self.work)],
                                   "denyWrite": []}}
        (self.folder / "srt.json").write_text(json.dumps(settings), encoding="ascii")

    def write_profile(self, name):
        lines = [f"{key} = {value}" for key, value in KEYS[name].items()]
        if name != "plain":
            lines.append(f"allow-read = {self.folder / 'programs'}")
        if name == "allow":
            lines += [f"allow-host = {host}" for host in two_hosts.ADDRESSES]
            lines += [f"allow-cidr = {there}/32" for _, there in two_hosts.ADDRESSES.values()]
        text = f'[profile "{name}"]\n' + "".join(f"\t{line}\n" for line in lines)
        (self.folder / name).write_text(text, encoding="ascii")

    def give(self):
        """Gives the files to the user who runs everything that is measured."""
        if os.geteuid() == 0:
            self.front = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
            for path in (self.folder, *self.folder.rglob("*")):
                os.lchown(path, USER, USER)

    def has_namespaces(self):
        """Whether the user may make namespaces, which a cell needs."""
        done = subprocess.run([*self.front, "unshare", "-Urn", "true"], capture_output=True,
                              check=False)
        return done.returncode == 0

    def broker(self, name):
        return [self.bench.broker, "--config", str(self.folder / name), "--profile", name, "--"]

    def ways(self, name, shares_network):
        """{way: the words that go before the command}, for the installed programs."""
        found = {"direct": []}
        if shutil.which("bwrap"):
            found["bare"] = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
                             "--bind", str(self.work), str(self.work), "--unshare-all",
                             *(["--share-net"] if shares_network else []), "--die-with-parent"]
        if find_reference() and shutil.which("node"):
            found["other"] = [find_reference(), "--settings", str(self.folder / "srt.json"), "--"]
        if self.bench.broker:
            found["broker"] = self.broker(name)
        return found

    def run(self, front, way, words, *what):
        """Returns the value that inside.py prints when it is started in this way."""
        proxy = {"BENCH_PROXY": "1"} if way == "other" else {}
        argv = [*front, *words, PYTHON, "-B", "inside.py", *what]
        done = subprocess.run(argv, cwd=self.work, env={**self.bench.env, **proxy},
                              capture_output=True, text=True, timeout=600, check=False)
        if done.returncode != 0:
            raise BenchError(f"{' '.join(argv)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
        return json.loads(done.stdout)


# ---- start and messages ----

def start_row(place, name, result):
    ways = {way: place.front + words for way, words in place.ways(name, False).items()
            if way != LACKS[name]}
    place.bench.interleaved(["start"], repeat=1, routes=ways)  # fills the page cache
    taken = place.bench.interleaved(["start"], repeat=place.bench.repeat * STARTS, routes=ways)
    result.samples[f"start {name}"] = taken
    times = {way: [run["start_ms"] for run in runs] for way, runs in taken.items()}
    row = Row(f"start to the answer of `initialize`, beyond the agent's own; network = {name}")
    row.direct = number(median(times["direct"]), "ms")
    row.target = f"≤ {START_MS}{MARK}ms more"
    for way in ("bare", "other", "broker"):
        more = [ours - own for ours, own in zip(times.get(way, []), times["direct"])]
        if more:
            setattr(row, way, f"{median(more):.1f}{MARK}ms")
        if way == "broker" and more:
            row.compared = f"+ {median_and_spread(more, 'ms')}"
            row.met = median(more) <= START_MS
    result.rows.append(row)


def trip_row(place, result):
    """Both ways go through the broker; in one of them the agent is in a cell."""
    ways = {"direct": place.front + place.broker("plain"),
            "broker": place.front + place.broker("blocked")}
    row = Row("round trip 200 B, p50; direct: the broker without a cell")
    row.target = f"≤ {TRIP_MOST} ×"
    if place.bench.broker:
        measure = ["echo", "small", str(place.bench.count(TRIPS))]
        taken = place.bench.interleaved(measure, routes=ways)
        result.samples["echo"] = taken
        times = {way: [run["p50_us"] for run in runs] for way, runs in taken.items()}
        compare(row, times, "µs", lambda ratio: ratio <= TRIP_MOST)
    result.rows.append(row)


def compare(row, values, unit, is_met):
    """Compares the medians, and the ratios of neighbouring runs."""
    for way, taken in values.items():
        setattr(row, way, number(median(taken), unit))
    if "broker" in values:
        ratios = [ours / own for ours, own in zip(values["broker"], values["direct"])]
        row.compared = f"× {median_and_spread(ratios)}"
        row.met = is_met(median(ratios))


# ---- the network ----

class Session:
    """A session with an agent in a cell; `run` runs a command beside the agent."""

    def __init__(self, place, front):
        self.editor = Editor(place.bench, [*front, *place.broker("allow")])

    def __enter__(self):
        self.editor.__enter__()
        self.session = self.editor.open_session()
        return self

    def __exit__(self, *_):
        self.editor.__exit__()

    def run(self, *what):
        done = self.editor.call("_broker/exec", {
            "sessionId": self.session, "timeoutMs": 600000,
            "command": [PYTHON, "-B", "inside.py", *what]})
        if done["exitCode"] != 0:
            raise BenchError(f"inside.py {' '.join(what)}: {done['stdout']}{done['stderr']}")
        return json.loads(done["stdout"])


def measure_network(place, hosts, ports, result):
    """Measures all ways in turns; returns {what: {way: [value, ...]}}."""
    bench = place.bench
    cases = {
        "connect": ("connect", two_hosts.NEAR, str(ports["greeting"]),
                    str(bench.count(CONNECTIONS))),
        "load": ("load", two_hosts.FAR, str(ports["http"]),
                 str(LOAD_BYTES // (100 if bench.quick else 1))),
        "npm": ("npm", registry_of(ports)),
    }
    front = [*hosts.enter(place.work), *place.front]
    ways = place.ways("allow", True)
    taken = {what: {way: [] for way in ways} for what in cases if can_measure(what)}
    with contextlib.ExitStack() as stack:
        session = stack.enter_context(Session(place, front)) if bench.broker else None
        for what in taken:
            for _ in range(bench.repeat):
                for way, words in ways.items():
                    value = (session.run(*cases[what]) if way == "broker" else
                             place.run(front, way, words, *cases[what]))
                    taken[what][way].append(value)
    result.samples.update(taken)
    return taken


def registry_of(ports):
    return f"https://{two_hosts.NEAR}:{ports['https']}"


def can_measure(what):
    return what != "npm" or shutil.which("npm", path=PATH) is not None


def connect_row(taken):
    row = Row("a connection by name, to the first byte of the server")
    row.target = f"≤ {CONNECT_MS}{MARK}ms more"
    middles = {way: [median(run) for run in runs] for way, runs in taken.items()}
    for way, values in middles.items():
        setattr(row, way, number(median(values), "ms"))
    if "broker" in middles:
        more = [ours - own for ours, own in zip(middles["broker"], middles["direct"])]
        row.compared = f"+ {median_and_spread(more, 'ms')}"
        row.met = median(more) <= CONNECT_MS
    return row


def network_rows(taken):
    rows = [connect_row(taken["connect"])]
    row = Row(f"download, 1{MARK}Gbit/s, 20{MARK}ms away", target=f"≥ {LOAD_LEAST} ×")
    compare(row, taken["load"], "MiB/s", lambda ratio: ratio >= LOAD_LEAST)
    rows.append(row)
    if "npm" in taken:
        row = Row(f"`npm ci` of {PACKAGES} packages", target=f"≤ {NPM_MOST} ×")
        compare(row, taken["npm"], "s", lambda ratio: ratio <= NPM_MOST)
        rows.append(row)
    return rows


def make_certificate(path):
    """Makes a certificate for TLS that nobody checks; it takes as long as with a real registry."""
    two_hosts.run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                  "-subj", f"/CN={two_hosts.NEAR}", "-keyout", path, "-out", f"{path}.own")
    with open(path, "ab") as file:
        file.write(pathlib.Path(f"{path}.own").read_bytes())


@contextlib.contextmanager
def serve(hosts, count, folder):
    """Starts origin.py on the other host; returns its ports."""
    certificate = str(folder / "registry.pem")
    make_certificate(certificate)
    process = subprocess.Popen(
        [*hosts.there.enter("-n"), sys.executable, "-B", str(HERE / "origin.py"), str(count),
         certificate], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait()


def add_network(place, result):
    count = place.bench.count(PACKAGES)
    with two_hosts.TwoHosts(str(place.folder), place.bench.quick) as hosts, \
            serve(hosts, count, place.folder) as ports:
        packages = [origin.make_package(number) for number in range(count)]
        origin.write_project(place.work, registry_of(ports), packages)
        place.give()
        result.rows += network_rows(measure_network(place, hosts, ports, result))


def run(bench):
    result = Result(columns=COLUMNS)
    with ordinary_priority(), tempfile.TemporaryDirectory(prefix="acp-bench-confine-") as folder:
        place = Place(bench, folder)
        for name in ("blocked", "allow"):
            start_row(place, name, result)
        trip_row(place, result)
        if two_hosts.is_possible():
            add_network(place, result)
    return result
