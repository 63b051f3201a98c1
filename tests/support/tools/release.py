#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Makes the archives of a version from what is committed: one of the program for amd64, one for arm64,
and their checksums. The archives of one commit are the same, byte for byte, on machines with the
same packages.

    release.py [DIR]    DIR: where they go; outside of the sources, ../acp-broker-release by default

arm64 is built by Debian's cross compiler. The libraries of that architecture are unpacked into a
temporary folder, which is all that is done with them: nothing is installed, and nothing is run here
(tests/soak/arm64.py does).
"""

import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
SECONDS = 1800  # for one step
LIBRARIES = ['libev-dev', 'libjsmn-dev', 'libgit2-dev', 'libssh2-1-dev', 'libcurl4-openssl-dev',
             'libseccomp-dev', 'libedit-dev', 'libsystemd-dev', 'libc6-dev']
ARCHITECTURES = ('amd64', 'arm64')
CROSS = '''[binaries]
c = 'aarch64-linux-gnu-gcc'
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
[built-in options]
c_args = ['--sysroot={root}', '-isystem', '{root}/usr/include/aarch64-linux-gnu']
c_link_args = ['--sysroot={root}', '-L{root}/usr/lib/aarch64-linux-gnu',
    '-L{root}/lib/aarch64-linux-gnu']
[properties]
sys_root = '{root}'
pkg_config_libdir = '{root}/usr/lib/aarch64-linux-gnu/pkgconfig:{root}/usr/share/pkgconfig'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
'''


def run(*argv, cwd=None, env=None):
    done = subprocess.run([str(word) for word in argv], cwd=cwd, env=env, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, check=False,
                          timeout=SECONDS)
    if done.returncode != 0:
        sys.exit(f'release: {" ".join(map(str, argv))}: status {done.returncode}\n'
                 f'{done.stdout[-3000:]}{done.stderr[-3000:]}')
    return done.stdout


def sources(folder):
    """The committed files, and the time of the commit."""
    archive = subprocess.run(['git', 'archive', 'HEAD'], cwd=ROOT, capture_output=True, check=True,
                             timeout=SECONDS).stdout
    source = folder / 'source'
    source.mkdir()
    subprocess.run(['tar', '-x', '-C', source], input=archive, check=True, timeout=SECONDS)
    return source, run('git', 'log', '-1', '--format=%ct', cwd=ROOT).strip()


def apt_options(state):
    """Options of apt for arm64, with a state of its own."""
    return ['-oAPT::Architecture=arm64', '-oAPT::Architectures=arm64', f'-oDir::State={state}',
            f'-oDir::State::lists={state}/lists', f'-oDir::State::status={state}/status',
            f'-oDir::Cache={state}/cache', '-oDebug::NoLocking=1', '-oAPT::Sandbox::User=']


def foreign_libraries(folder):
    """
    Unpacks Debian's packages for arm64 and their dependencies; apt's own state stays as it is.
    """
    state = folder / 'apt'
    root = folder / 'arm64'
    for name in ('lists/partial', 'cache/archives/partial'):
        (state / name).mkdir(parents=True)
    root.mkdir()
    (state / 'status').touch()
    options = apt_options(state)
    run('apt-get', *options, 'update', '-q')
    run('apt-get', *options, 'install', '-y', '-q', '--download-only', '--no-install-recommends',
        *LIBRARIES)
    for package in sorted((state / 'cache/archives').glob('*.deb')):
        run('dpkg-deb', '-x', package, root)
    make_links_relative(root)
    return root


def make_links_relative(root):
    """Makes absolute links relative: otherwise they would lead to files of this machine."""
    for path in root.rglob('*'):
        if path.is_symlink() and os.readlink(path).startswith('/'):
            target = root / os.readlink(path).lstrip('/')
            path.unlink()
            path.symlink_to(os.path.relpath(target, path.parent))


def build(folder, source, architecture):
    """Builds and installs into a folder; returns the folder that has usr/local."""
    options = []
    if architecture == 'arm64':
        cross = folder / 'cross.ini'
        cross.write_text(CROSS.format(root=foreign_libraries(folder)))
        options = ['--cross-file', cross]
    place = folder / f'build-{architecture}'
    image = folder / f'image-{architecture}'
    run('meson', 'setup', '--buildtype=release', '--prefix=/usr/local', '-Dtests=disabled',
        *options, place, source)
    run('ninja', '-C', place)
    run('meson', 'install', '-C', place, '--no-rebuild', '--strip',
        env={**os.environ, 'DESTDIR': str(image)})
    return image


def check(image, architecture):
    """Checks that it is a program for this architecture, linked as docs/packaging.md says."""
    program = image / 'usr/local/bin/acp-broker'
    told = run('readelf', '-hd', program)
    machine = re.search(r'Machine:\s+(.*)', told).group(1)
    wanted = {'amd64': 'X86-64', 'arm64': 'AArch64'}[architecture]
    needed = set(re.findall(r'NEEDED.*\[([^]]+)\]', told))
    if wanted not in machine or not needed <= {'libev.so.4', 'libc.so.6', 'ld-linux-aarch64.so.1'}:
        sys.exit(f'release: {program} is of {machine} and needs {", ".join(sorted(needed))}')


def pack(source, image, name, seconds, place):
    """Packs usr/local as NAME/, with the pages about the whole program."""
    folder = image / 'usr/local'
    for page in ('README.md', 'LICENSE', 'CHANGELOG.md', 'SECURITY.md'):
        (folder / page).write_bytes((source / page).read_bytes())
    archive = place / f'{name}.tar'
    run('tar', '--sort=name', f'--mtime=@{seconds}', '--owner=0', '--group=0', '--numeric-owner',
        '--mode=u+rw,go+r-w', f'--transform=s|^\\.|{name}|', '-cf', archive, '.', cwd=folder)
    run('gzip', '-9nf', archive)
    return place / f'{name}.tar.gz'


def main():
    place = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT.parent / 'acp-broker-release')
    place = place.resolve()
    if place == ROOT or ROOT in place.parents:
        sys.exit('release: the archives go outside of the sources')
    place.mkdir(parents=True, exist_ok=True)
    version = re.search(r"^  version: '([^']+)'", (ROOT / 'meson.build').read_text(), re.M).group(1)
    sums = []
    with tempfile.TemporaryDirectory(prefix='acp-release-') as name:
        folder = pathlib.Path(name)
        source, seconds = sources(folder)
        for architecture in ARCHITECTURES:
            image = build(folder, source, architecture)
            check(image, architecture)
            archive = pack(source, image, f'acp-broker-{version}-linux-{architecture}', seconds,
                           place)
            sums.append(f'{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}\n')
            print(f'{archive}: {archive.stat().st_size} bytes', flush=True)
    (place / 'SHA256SUMS').write_text(''.join(sums))
    print(place / 'SHA256SUMS')


if __name__ == '__main__':
    main()
