#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Builds the image of examples/container/Containerfile from the commit, and runs a session in it, as
its user, with a mounted agent. debootstrap makes the base image. Everything lies in a temporary
folder. It needs root, and Debian's mirror, as apt on this machine has it.

    container.py [--mirror URL] [--suite NAME]
"""

import os
import subprocess

from package import AGENT, ROOT, SECONDS, Failed, count_one, of_debian, run

BASE = 'docker.io/library/debian:bookworm-slim'  # the base image that the Containerfile names
IMAGE = 'localhost/acp-broker'
USER = 1000  # the user in the container
CONFIG = '[profile "job"]\n\tagent = mounted\n[agent "mounted"]\n\tcommand = /opt/agent\n'


class Buildah:
    """buildah, with its images in a folder of ours."""
    def __init__(self, folder):
        self.stores = ['--storage-driver', 'vfs', '--root', folder / 'images', '--runroot',
                       folder / 'run']

    def __call__(self, *words, **more):
        return run('buildah', *self.stores, *words, **more)

    def session(self, container, mounts, *argv):
        """Runs a program in a container by runc, with this machine's network."""
        flags = [word for mount in mounts for word in ('-v', mount)]
        return self('run', '--isolation', 'oci', '--network', 'host', *flags, container, '--',
                    *argv)

    def end(self):
        """Unmounts what it has mounted in the folder."""
        subprocess.run(['buildah', *map(str, self.stores), 'rm', '--all'], check=False,
                       capture_output=True, timeout=SECONDS)


def make_base(folder, buildah, options):
    root, archive = folder / 'base', folder / 'base.tar'
    run('debootstrap', '--variant=minbase', options.suite, root, options.mirror)
    run('tar', '-C', root, '--numeric-owner', '-cf', archive, '.')
    container = buildah('from', 'scratch').strip()
    buildah('add', container, archive, '/')
    buildah('commit', '--disable-compression', container, BASE)
    buildah('rm', container)


def make_image(folder, buildah):
    source = folder / 'source'
    source.mkdir()
    archive = subprocess.run(['git', 'archive', 'HEAD'], cwd=ROOT, capture_output=True, check=True,
                             timeout=SECONDS).stdout
    subprocess.run(['tar', '-x', '-C', source], input=archive, check=True, timeout=SECONDS)
    buildah('bud', '--pull-never', '--isolation', 'chroot', '-f',
            'examples/container/Containerfile', '-t', IMAGE, '.', cwd=source)


def use(folder, buildah):
    """
    Runs a session as the Containerfile's own user; checks that its edit is in the mounted
    workspace.
    """
    work, config = folder / 'work', folder / 'config'
    work.mkdir()
    work.chmod(0o777)
    config.write_text(CONFIG)
    container = buildah('from', '--pull-never', IMAGE).strip()
    mounts = [f'{AGENT}:/opt/agent:ro', f'{work}:/work',
              f'{config}:/config/acp-broker/config:ro']
    told = buildah.session(container, mounts, '/usr/bin/acp-broker', 'exec', '--profile', 'job',
                           'write /work/made here\nsay Done.', '--approve', 'all')
    if not told.strip().endswith('Done.'):
        raise Failed(f'exec printed {told!r}')
    if (work / 'made').stat().st_uid != USER:
        raise Failed('the session did not run as the user of the image')
    # Checks that each library is there that the program opens when it first needs it.
    for words in (['--version'], ['check', '--profile', 'job'], ['doctor', '--profile', 'job']):
        buildah.session(container, mounts, '/usr/bin/acp-broker', *words)


def try_image(folder, options):
    os.environ['TMPDIR'] = str(folder)
    buildah = Buildah(folder)
    try:
        make_base(folder, buildah, options)
        print(f'made a base image of {options.suite}')
        make_image(folder, buildah)
        print('built the image')
        use(folder, buildah)
        print('sessions have run in a container')
    finally:
        buildah.end()


def main():
    options = of_debian(__doc__).parse_args()
    count_one('container', lambda folder: try_image(folder, options))


if __name__ == '__main__':
    main()
