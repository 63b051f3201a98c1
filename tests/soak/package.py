#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Builds the Debian package of the commit, checks it with lintian, and in a fresh Debian installs,
runs and removes it. Everything lies in a temporary folder. It needs root, and Debian's mirror, as
apt on this machine has it.

    package.py [--mirror URL] [--suite NAME]
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
AGENT = ROOT / 'build/tests/support/agent/scripted-agent'
MIRROR = 'http://deb.debian.org/debian'
SECONDS = 1800  # for one step

# These folders may have no new files after the package was removed.
LOOKED_AT = ('etc', 'home', 'opt', 'root', 'run', 'srv', 'usr', 'var/spool')

INITIALIZE = {'protocolVersion': 1, 'clientCapabilities': {}}


class Failed(Exception):
    """A step failed that the others depend on."""


def run(*argv, cwd=None, text=None, seconds=SECONDS):
    done = subprocess.run([str(word) for word in argv], cwd=cwd, input=text, text=True,
                          capture_output=True, check=False, timeout=seconds,
                          stdin=None if text is not None else subprocess.DEVNULL,
                          env={**os.environ, 'DEBIAN_FRONTEND': 'noninteractive', 'LC_ALL': 'C'})
    if done.returncode != 0:
        raise Failed(f'{" ".join(map(str, argv))}: status {done.returncode}\n'
                     f'{done.stdout[-3000:]}{done.stderr[-3000:]}')
    return done.stdout


def build(folder):
    """Builds the package of the commit that is checked out; lintian must not complain."""
    source = folder / 'acp-broker'
    source.mkdir()
    archive = subprocess.run(['git', 'archive', 'HEAD'], cwd=ROOT, capture_output=True, check=True,
                             timeout=SECONDS).stdout
    subprocess.run(['tar', '-x', '-C', source], input=archive, check=True, timeout=SECONDS)
    run('dpkg-buildpackage', '-us', '-uc', '-b', cwd=source)
    changes, = folder.glob('*.changes')
    told = run('lintian', '--allow-root', '--fail-on', 'error,warning', '-EI', '--pedantic',
               changes)
    if told.strip():
        print(told.rstrip())
    package, = folder.glob('acp-broker_*.deb')
    return package


def inside(root, *argv, text=None):
    """Runs a command in the Debian, with its own /proc; processes that it leaves end with it."""
    return run('unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc=' +
               str(root / 'proc'), 'chroot', root, *argv, text=text)


def files(root):
    return {str(path.relative_to(root)) for name in LOOKED_AT
            for path in (root / name).rglob('*') if not path.name.endswith('.pyc')}


def converse(root):
    """A session of the installed program with an agent; returns the answer to one prompt."""
    shutil.copy(AGENT, root / 'tmp/agent')
    (root / 'tmp/work').mkdir()
    lines = inside(root, 'env', 'HOME=/tmp', 'acp-broker', 'exec', '--workspace', '/tmp/work',
                   'say Done.', '--', '/tmp/agent')
    if lines.strip() != 'Done.':
        raise Failed(f'exec printed {lines!r}')
    message = json.dumps({'jsonrpc': '2.0', 'id': 0, 'method': 'initialize', 'params': INITIALIZE})
    answer = inside(root, 'env', 'HOME=/tmp', 'acp-broker', '--', '/tmp/agent', text=message + '\n')
    if 'result' not in json.loads(answer.splitlines()[0]):
        raise Failed(f'initialize: {answer}')


def use(root, version):
    """What a user does first, with nothing but the package."""
    told = inside(root, 'acp-broker', '--version').strip()
    if told != f'acp-broker {version}':
        raise Failed(f'--version prints {told}, and the package is {version}')
    inside(root, 'env', 'HOME=/tmp', 'acp-broker', 'check', '--', 'true')
    converse(root)
    # Checks that each library is there that the program opens when it first needs it.
    for profile, lines in (('copy', 'isolation = copy\n'),
                           ('ssh', 'backend = ssh\nhost = localhost\n')):
        (root / 'tmp/config').write_text(f'[profile "{profile}"]\n{lines}')
        inside(root, 'env', 'HOME=/tmp', 'LOGNAME=root', 'acp-broker', '--config',
               '/tmp/config', '--profile', profile, 'check', '--', 'true')
    libraries = inside(root, 'sh', '-c', 'ldconfig -p')
    for name in ('libgit2.so', 'libssh2.so.1', 'libcrypto.so.3', 'libcurl.so.4', 'libseccomp.so.2',
                 'libedit.so.2', 'libsystemd.so.0'):
        if name not in libraries:
            raise Failed(f'{name} is not there')


def try_package(folder, options):
    package = build(folder)
    print(f'built {package.name}; lintian found no error and no warning')
    version = run('dpkg-deb', '-f', package, 'Version').strip()
    root = folder / 'root'
    run('debootstrap', '--variant=minbase', options.suite, root, options.mirror)
    inside(root, 'apt-get', 'update', '-q')
    # Installs the packages that it depends on first: they are Debian's and may stay.
    depends = run('dpkg-deb', '-f', package, 'Depends')
    names = [part.split()[0].split(':')[0] for part in depends.split(',')]
    inside(root, 'apt-get', 'install', '-y', '-q', '--no-install-recommends', *names)
    before = files(root)
    shutil.copy(package, root / 'tmp')
    inside(root, 'apt-get', 'install', '-y', '-q', '--no-install-recommends',
           f'/tmp/{package.name}')
    listed = set(inside(root, 'dpkg', '-L', 'acp-broker').split())
    print(f'installed {len(listed)} files and folders')
    if '/usr/bin/acp-broker' not in listed:
        raise Failed('the package has no /usr/bin/acp-broker')
    use(root, version)
    print('a session of the installed program has run')
    inside(root, 'apt-get', 'purge', '-y', '-q', 'acp-broker')
    left = sorted(files(root) - before)
    if left:
        raise Failed(f'left after the purge: {", ".join(left)}')
    print('removed; nothing is left')


def of_debian(doc):
    """The options of a trial that makes a Debian root folder."""
    parser = argparse.ArgumentParser(description=doc,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--mirror', default=MIRROR)
    parser.add_argument('--suite', default='bookworm')
    return parser


def count_one(kind, trial):
    """Runs the trial in a folder of its own; prints the count of one test at the end."""
    with tempfile.TemporaryDirectory(prefix=f'acp-{kind}-') as folder:
        try:
            trial(pathlib.Path(folder))
        except (Failed, subprocess.SubprocessError, ValueError) as why:
            print(why)
            print('0 passed, 1 failed')
            sys.exit(1)
    print('1 passed, 0 failed')


def main():
    options = of_debian(__doc__).parse_args()
    count_one('package', lambda folder: try_package(folder, options))


if __name__ == '__main__':
    main()
