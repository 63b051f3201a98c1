# SPDX-License-Identifier: MIT
"""The workspaces for the measurements of syncs, and a comparison of trees."""

import os
import random
import subprocess

from harness import BenchError

KIB, MIB = 1024, 1024 * 1024
FILES_IN_FOLDER = 100
SAMPLE_BYTES = 4 * MIB


def words(seed):
    """Text that compresses about as well as source code."""
    chance = random.Random(seed)
    known = [bytes(chance.choices(b"abcdefghijklmnopqrstuvwxyz_", k=chance.randint(2, 11)))
             for _ in range(3000)]
    ends = [b" ", b" ", b" ", b"(", b") ", b", ", b";\n\t", b"\n"]
    pieces = []
    for _ in range(SAMPLE_BYTES // 8):
        pieces += [chance.choice(known), chance.choice(ends)]
    return b"".join(pieces)[:SAMPLE_BYTES]


def path_of(root, number):
    folder = os.path.join(root, f"part{number // FILES_IN_FOLDER:03}")
    return os.path.join(folder, f"file{number:05}.c")


def make_files(root, count, size):
    """`count` files of about `size` bytes, no two of them the same."""
    text = words(count)
    chance = random.Random(size)
    for number in range(count):
        path = path_of(root, number)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        length = min(chance.randint(size // 2, size * 3 // 2), len(text))
        begin = chance.randrange(len(text) - length + 1)
        with open(path, "wb") as file:
            file.write(b"/* %d */\n" % number + text[begin:begin + length])


def change_files(root, count, total, mark):
    """Adds a line to `count` of the files, spread over all of them."""
    for i in range(count):
        with open(path_of(root, i * (total // count)), "ab") as file:
            file.write(b"/* %s */\n" % mark.encode())


def run(bench, *argv, cwd=None):
    """Runs a program that has to succeed; returns its output."""
    done = subprocess.run(argv, cwd=cwd, env=bench.env, capture_output=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(argv)}\nended with {done.returncode}:\n"
                         f"{done.stderr.decode(errors='replace')[-2000:]}")
    return done.stdout


def make_repository(bench, root):
    """Commits all files at once, in a pack as after a clone."""
    git = ["git", "-C", root, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0"]
    run(bench, *git, "init", "-q")
    run(bench, *git, "add", "-A")
    run(bench, *git, "commit", "-qm", "all")
    run(bench, *git, "repack", "-adq", "--window=0")


def make_big(path, size, is_sparse):
    text = words(size)
    with open(path, "wb") as file:
        file.truncate(size)
        for offset in range(0, size, size // 16 if is_sparse else len(text)):
            file.seek(offset)
            file.write(b"%016d" % offset + text[:min(len(text), size - offset) - 16])


def change_big(path, size, mark):
    """1 MiB, or a part of a small file, in the middle."""
    with open(path, "r+b") as file:
        file.seek(size // 2)
        file.write((mark * MIB).encode()[:min(MIB, size // 4)])


def check_same(bench, one, other):
    """Checks that everything was synced; otherwise nothing was measured."""
    run(bench, "diff", "-rq", "--no-dereference", "--exclude=.git", one, other)
