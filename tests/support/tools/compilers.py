#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Compiles C files with compilers besides the one that builds everything, and counts one case for
each compiler: it has no error and no warning. clang compiles every file, the other two only those
of the program: packages for such machines contain no tests.

    compilers.py BUILD [NAME...]    BUILD: a build directory; NAME: clang, musl, arm64

It takes the files and flags from BUILD's compile_commands.json. Nothing is linked: musl and arm64
have none of the libraries here, and those headers of theirs that are the same for every system
are those that are installed. So this shows that the code compiles, not that it runs there.
"""

import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

# Checks a file without making an object. Every warning of clang comes from this part of it.
CHECK = ['-fsyntax-only']
COMPILERS = {
    'clang': ['clang', *CHECK, '-Wno-unknown-warning-option'],
    'musl': ['musl-gcc', *CHECK],
    'arm64': ['aarch64-linux-gnu-gcc', *CHECK],
}

# Folders for headers that both C libraries, and all architectures, may use.
SHARED = ['/usr/include', f'/usr/include/{os.uname().machine}-linux-gnu']
HEADERS = {
    'clang': [],
    # With the kernel's: musl has none of them.
    'musl': ['ev.h', 'jsmn.h', 'git2.h', 'git2', 'libssh2.h', 'seccomp.h',
             'seccomp-syscalls.h', 'histedit.h', 'systemd', 'curl', 'linux', 'asm', 'asm-generic'],
    'arm64': ['curl'],  # this compiler reads the others from /usr/include anyway
}

# Flags of the compile commands that do not matter here, and those followed by a word.
DROPPED = {'-c', '-g', '-MD', '-Werror', '-fdiagnostics-color=always'}
DROPPED_PAIRS = {'-o', '-MF', '-MQ'}


def flags_of(command):
    """The flags and the file of a compile command, without the compiler and its output."""
    words = iter(shlex.split(command))
    kept = []
    for word in words:
        if word in DROPPED_PAIRS:
            next(words)
        elif word not in DROPPED and not word.startswith('-I/usr/include'):
            kept.append(word)
    return kept[next(i for i, word in enumerate(kept) if word.startswith('-')):]


def commands_of(build):
    """The flags for each file; for one that is compiled several times, the first ones."""
    found = {}
    for entry in json.loads((build / 'compile_commands.json').read_text()):
        if entry['file'].endswith('.c'):
            found.setdefault(entry['file'], flags_of(entry['command']))
    return found


def make_generated(build):
    """Makes the files that C files include."""
    told = subprocess.run(['meson', 'introspect', '--targets', str(build)], check=True,
                          capture_output=True, text=True).stdout
    names = [os.path.relpath(name, build.resolve()) for target in json.loads(told)
             for name in target['filename'] if name.endswith('.inc')]
    subprocess.run(['ninja', '-C', str(build), *names], check=True, stdout=subprocess.DEVNULL)


def link_headers(folder, names):
    """A folder that has these headers and no others."""
    for name in names:
        found = [path for path in (pathlib.Path(place, name) for place in SHARED) if path.exists()]
        if not found:
            sys.exit(f'compilers.py: there is no header {name} in {" or ".join(SHARED)}')
        (folder / name).symlink_to(found[0])


def compile_all(name, build, commands):
    """Returns what the compiler reports, for each file about which it reports anything."""
    with tempfile.TemporaryDirectory() as headers:
        link_headers(pathlib.Path(headers), HEADERS[name])

        def compile_one(flags):
            done = subprocess.run([*COMPILERS[name], '-isystem', headers, *flags], cwd=build,
                                  capture_output=True, text=True, check=False)
            return done.stderr or ('' if done.returncode == 0 else f'{flags[-1]}: failed\n')

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return [said for said in pool.map(compile_one, commands) if said]


def main():
    build = pathlib.Path(sys.argv[1])
    names = sys.argv[2:] or list(COMPILERS)
    make_generated(build)
    commands = commands_of(build)
    failed = 0
    for name in names:
        chosen = [flags for file, flags in commands.items()
                  if name == 'clang' or not file.startswith('../tests/')]
        said = compile_all(name, build, chosen)
        failed += bool(said)
        print(f'{name}: {len(chosen)} files, {len(said)} with errors or warnings')
        print(''.join(said), end='')
    print(f'cases: {len(names) - failed} passed, {failed} failed, 0 skipped')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
