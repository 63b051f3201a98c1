# SPDX-License-Identifier: MIT
"""
Looks at processes through /proc: which ones run, which is whose child, how much private memory one
has. Everything that a test starts has the test's mark in its environment: this run of the program,
and the test's name.
"""

import itertools
import contextlib
import os
import signal
import threading
import time
import uuid

# Seconds; how long a test waits for any event. It goes on as soon as the event comes, so the whole
# time passes only if there is a defect.
PATIENCE = 120.0

MARK = 'ACP_TEST_MARK'  # the name of the variable
RUN = uuid.uuid4().hex
numbers = itertools.count(1)
current = threading.local()


# nohup and a shell's & make a program ignore some signals, and every process that we start would
# inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)


def new_mark(test):
    """A new value for a mark; tests may run beside each other in several threads."""
    current.mark = f'{RUN}.{next(numbers)}.{test}'
    return current.mark


def marked_environment():
    """Our environment with the mark of the running test, for code that does not know the test."""
    return {**os.environ, MARK: getattr(current, 'mark', f'{RUN}.0.none')}


def read_file(path):
    try:
        with open(path, 'rb') as file:
            return file.read()
    except OSError:
        return b''


def stat_of(pid):
    """(name, state, parent), or None if there is no such process."""
    text = read_file(f'/proc/{pid}/stat').decode('utf-8', 'replace')
    if not text:
        return None
    name = text[text.index('(') + 1:text.rindex(')')]
    rest = text[text.rindex(')') + 2:].split()
    return name, rest[0], int(rest[1])


def is_running(pid):
    """Whether the process has not ended yet; a zombie has ended."""
    stat = stat_of(pid)
    return stat is not None and stat[1] not in 'ZX'


def all_pids():
    return [int(name) for name in os.listdir('/proc') if name.isdigit()]


def marked(mark):
    """Running processes whose environment has the mark, the oldest first."""
    needle = mark.encode()
    return [pid for pid in sorted(all_pids())
            if needle in read_file(f'/proc/{pid}/environ') and is_running(pid)]


def of_this_run():
    """The processes that the tests of this program have started and that still run."""
    return marked(f'{MARK}={RUN}.')


def descendants(pid):
    """Every process below this one."""
    children = {}
    for other in all_pids():
        stat = stat_of(other)
        if stat is not None:
            children.setdefault(stat[2], []).append(other)
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found.extend(below)
        waiting.extend(below)
    return found


def name_of(pid):
    stat = stat_of(pid)
    return stat[0] if stat else ''


def parent_of(pid):
    stat = stat_of(pid)
    return stat[2] if stat else 0


def describe(pids):
    lines = []
    for pid in pids:
        command = read_file(f'/proc/{pid}/cmdline').replace(b'\0', b' ').decode('utf-8', 'replace')
        marks = [text[len(MARK) + 1:] for text in
                 read_file(f'/proc/{pid}/environ').decode('utf-8', 'replace').split('\0')
                 if text.startswith(f'{MARK}={RUN}.')]
        test = marks[0].split('.', 2)[2] if marks else 'a test without a mark'
        lines.append(f'{pid} {stat_of(pid)} {command[:120]} (of {test})')
    return '\n'.join(lines)


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def wait_until(condition, seconds=PATIENCE, step=0.02):
    """Polls until the condition holds; returns its last value."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() >= end:
            return value
        time.sleep(step)


def wait_at_rest(measure, seconds=0.7):
    """
    Waits until a number has not changed for a while, and returns it. If something goes on after a
    longer pause, this returns too early: then the test shows less, but it does not fail more often.
    """
    last = [None, time.monotonic()]

    def rests():
        value = measure()
        if value != last[0]:
            last[:] = value, time.monotonic()
        return time.monotonic() - last[1] > seconds
    if not wait_until(rests, step=0.05):
        raise AssertionError(f'it never came to rest: {last[0]}')
    return last[0]


def private_bytes(pid):
    """The memory that only this process holds (USS)."""
    total = 0
    for line in read_file(f'/proc/{pid}/smaps_rollup').splitlines():
        if line.startswith((b'Private_Clean:', b'Private_Dirty:', b'Private_Hugetlb:')):
            total += int(line.split()[1]) * 1024
    return total


def open_files(pid):
    try:
        return len(os.listdir(f'/proc/{pid}/fd'))
    except OSError:
        return 0


def files_of(pid):
    """A line "NUMBER FILE" for each descriptor that is still open when we look at it."""
    folder, files = f'/proc/{pid}/fd', []
    with contextlib.suppress(OSError):
        for number in sorted(os.listdir(folder)):
            with contextlib.suppress(OSError):
                files.append(f'{number} {os.readlink(os.path.join(folder, number))}')
    return files


class Watcher:
    """Reads all command lines over and over; for `with`."""

    def __init__(self, needle):
        self.needle = needle.encode()
        self.found = []
        self.looks = 0
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join(PATIENCE)

    def _look(self):
        while not self.is_over.wait(0.005):
            self.looks += 1
            for pid in all_pids():
                line = read_file(f'/proc/{pid}/cmdline')
                if self.needle in line:
                    self.found.append(line)
