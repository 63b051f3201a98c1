#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Checks what a packager does: `meson dist`, then a build of the archive without tests and man pages.

    packager.py BUILD    BUILD: a build directory of a git work tree

The archive has what is committed. Nothing is compiled: ninja only says whether every file is there.
"""

import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]


def run(*argv, cwd):
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f'{" ".join(map(str, argv))}: status {done.returncode}\n'
                 f'{done.stdout}{done.stderr}')
    return done.stdout


def unpack_archive(build, folder):
    """Makes the archive of the sources, and unpacks it into the folder."""
    run('meson', 'dist', '-C', build, '--no-tests', '--allow-dirty', '--formats', 'gztar', cwd='.')
    project = json.loads(run('meson', 'introspect', '--projectinfo', build, cwd='.'))
    name = f'{project["descriptive_name"]}-{project["version"]}'
    with tarfile.open(pathlib.Path(build, 'meson-dist', f'{name}.tar.gz')) as archive:
        archive.extractall(folder)
    return folder / name


def main():
    told = subprocess.run(['git', 'rev-parse', '--verify', 'HEAD'], cwd=ROOT, check=False,
                          capture_output=True)
    if told.returncode != 0:
        print('packager ... skipped: meson dist needs a git work tree')
        print('cases: 0 passed, 0 failed, 1 skipped')
        return
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        source = unpack_archive(sys.argv[1], pathlib.Path(folder))
        run('meson', 'setup', '--buildtype=plain', '-Dtests=disabled', '-Ddocs=disabled', 'build',
            cwd=source)
        run('ninja', '-C', 'build', '-n', cwd=source)
        installed = json.loads(run('meson', 'introspect', '--installed', 'build', cwd=source))
        names = sorted(pathlib.Path(name).name for name in installed.values())
        # The program, and the completions of bash, fish and zsh.
        if names != ['_acp-broker', 'acp-broker', 'acp-broker', 'acp-broker.fish']:
            failed.append(f'it installs {", ".join(names)}')
        tests = json.loads(run('meson', 'introspect', '--tests', 'build', cwd=source))
        if tests:
            failed.append(f'it has {len(tests)} tests')
        options = {option['name']: option['value'] for option in
                   json.loads(run('meson', 'introspect', '--buildoptions', 'build', cwd=source))}
        if options['werror']:
            failed.append('warnings of other compilers are errors')
    for line in failed:
        print(line)
    print(f'cases: {int(not failed)} passed, {int(bool(failed))} failed, 0 skipped')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
