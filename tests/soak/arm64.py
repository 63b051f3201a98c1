#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Runs sessions of the program for arm64 on an emulated machine. qemu boots Debian's kernel with a
small root folder that has busybox, the program built from the commit, its libraries and the
scripted agent. One session works in the workspace itself, one in a copy, one in a cell, and doctor
tries all three. Then the tests of the limits run (arm64_limits.py). Everything lies in a temporary
folder. It needs Debian's mirror, as apt on this machine has it.
"""

import re
import shutil
import subprocess
import sys

import arm64_limits
from package import ROOT, Failed, count_one, run

sys.path[1:1] = [str(ROOT / 'tests/support/tools')]

import release  # noqa: E402

KERNEL = 'linux-image-cloud-arm64'
PACKAGES = ['busybox-static', 'rsync', *arm64_limits.PACKAGES]
MACHINE = ['-M', 'virt', '-cpu', 'cortex-a72', '-smp', '2', '-m', '2048', '-nographic',
           '-no-reboot', '-nic', 'none']
SLOW_SECONDS = 7200  # for the build, and for the emulated machine, beside other work
USER = 'kim'

# Linux 6.1 cannot separate a cell from abstract sockets, unless the cell has its own network.
PLACES = {'here': '', 'copy': '\tisolation = copy\n',
          'cell': '\tconfine = required\n\tnetwork = blocked\n'}
LATE = ''.join(f'\t{name}-timeout = 30m\n'  # the machine may be slow
               for name in ('prepare', 'start', 'session', 'sync', 'file', 'health'))
CONFIG = '[agent "scripted"]\n\tcommand = /usr/local/bin/scripted-agent\n'

# No cell can be made in the first root folder of a machine, so this moves on to a tmpfs.
INIT = '''#!/bin/busybox sh
/bin/busybox --install -s /bin
mkdir /next && mount -t tmpfs next /next && cd / &&
for name in bin etc lib usr opt home main limits; do cp -a $name /next; done
mkdir /next/proc /next/sys /next/dev /next/tmp /next/run
chmod 1777 /next/tmp
exec switch_root /next /main
'''
MAIN = '''#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts pts /dev/pts
ip link set lo up
su -l {user} -c 'sh /home/{user}/session 2>&1'
sh /limits 2>&1
poweroff -f
'''
SESSION = '''PATH=/usr/local/bin:/usr/bin:/bin
uname -m
acp-broker --version
for place in {places}; do
    mkdir -p /home/{user}/work-$place && cd /home/{user}/work-$place
    acp-broker exec --profile $place --approve all "terminal echo made >made
say Done."
    echo "status of exec in $place: $? $(cat made)"
    acp-broker doctor --profile $place
    echo "status of doctor in $place: $?"
done
'''


def build(folder):
    """The folder of the cross build, and the root folder of the libraries."""
    release.LIBRARIES += PACKAGES
    source, _ = release.sources(folder)
    root = release.foreign_libraries(folder)
    cross, place = folder / 'cross.ini', folder / 'build'
    cross.write_text(release.CROSS.format(root=root))
    run('meson', 'setup', '--buildtype=release', '-Ddocs=disabled', '--cross-file', cross, place,
        source)
    run('ninja', '-C', place, 'broker/acp-broker', 'tests/support/agent/scripted-agent',
        arm64_limits.UNIT, seconds=SLOW_SECONDS)
    return place, root


def fetch_kernel(folder):
    """Debian's kernel, without its modules."""
    options = release.apt_options(folder / 'apt')
    depends = run('apt-cache', *options, 'depends', KERNEL)
    name = re.search(r'Depends: (linux-image-\S+)', depends).group(1)
    run('apt-get', *options, 'download', name, cwd=folder)
    package, = folder.glob('linux-image-*.deb')
    run('dpkg-deb', '-x', package, folder / 'kernel')
    kernel, = folder.glob('kernel/boot/vmlinuz-*')
    return kernel


def put(path, text, mode=0o755):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def make_initrd(folder, place, root):
    image = folder / 'image'
    patterns = ('lib/*/*.so*', 'usr/lib/*/*.so*', 'lib/ld-*')
    for library in [path for pattern in patterns for path in root.glob(pattern)]:
        if library.is_file():
            target = image / library.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)  # copies the target of a link
    for program, name in ((root / 'bin/busybox', 'bin/busybox'),
                          (root / 'usr/bin/rsync', 'usr/bin/rsync'),
                          (place / 'broker/acp-broker', 'usr/local/bin/acp-broker'),
                          (place / 'tests/support/agent/scripted-agent',
                           'usr/local/bin/scripted-agent')):
        (image / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(program, image / name)
    words = {'user': USER, 'places': ' '.join(PLACES)}
    put(image / 'init', INIT)
    put(image / 'main', MAIN.format(**words))
    put(image / 'limits', arm64_limits.script(USER))
    arm64_limits.put_programs(image, folder / 'source', place, root)
    put(image / 'etc/passwd', f'root:x:0:0::/:/bin/sh\n{USER}:x:1000:1000::/home/{USER}:/bin/sh\n',
        0o644)
    put(image / 'etc/group', f'root:x:0:\n{USER}:x:1000:\n', 0o644)
    home = image / 'home' / USER
    put(home / 'session', SESSION.format(**words))
    profiles = ''.join(f'[profile "{name}"]\n\tagent = scripted\n{LATE}{lines}'
                       for name, lines in PLACES.items())
    put(home / '.config/acp-broker/config', CONFIG + profiles, 0o600)
    run('chown', '-R', '1000:1000', home)
    run('sh', '-c', 'find . | busybox cpio -o -H newc | gzip -1 >../initrd', cwd=image)
    return folder / 'initrd'


def boot(kernel, initrd):
    """Boots the machine; returns its output."""
    done = subprocess.run(
        ['qemu-system-aarch64', *MACHINE, '-kernel', str(kernel), '-initrd', str(initrd), '-append',
         'console=ttyAMA0 loglevel=1 panic=-1'], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, errors='replace', check=False, timeout=SLOW_SECONDS)
    return done.stdout.replace('\r', '') + done.stderr


def check(told):
    print(told.strip())
    wanted = ['aarch64'] + [line for place in PLACES for line in (
        f'status of exec in {place}: 0 made', f'status of doctor in {place}: 0')]
    missing = [line for line in wanted if line not in told.splitlines()]
    if missing:
        raise Failed(f'the machine has not written: {missing}')
    arm64_limits.check(told)


def try_program(folder):
    place, root = build(folder)
    print('built the program for arm64', flush=True)
    kernel = fetch_kernel(folder)
    check(boot(kernel, make_initrd(folder, place, root)))


def main():
    count_one('arm64', try_program)


if __name__ == '__main__':
    main()
