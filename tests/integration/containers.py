# SPDX-License-Identifier: MIT
"""
What tests of `backend = container` start from: a real podman and runc with a storage of their own.
The image has only folders and links; the programs are those of this machine, which podman's own
configuration shows to every container. Skips if podman, runc or root's rights are missing.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import unittest

import processes

from case import AGENT, BROKER, ROOT
from platform_case import LINK, Instances, fill_root
from processes import PATIENCE

IMAGE = 'localhost/box:1'
ENGINE = ROOT / 'tests/support/exec/engine.sh'


def namespace(pid):
    """The PID namespace of a process; None if it has ended, or is nobody's to ask."""
    try:
        return os.readlink(f'/proc/{pid}/ns/pid')
    except OSError:
        return None


@unittest.skipUnless(shutil.which('podman') and shutil.which('runc'), 'there is no podman or runc')
@unittest.skipUnless(os.geteuid() == 0, 'a container with the programs of this machine needs root')
class Containers(Instances):
    # What the engine shows to every container.
    VOLUMES = ('/usr', pathlib.Path(AGENT).parent)

    def setUp(self):
        super().setUp()
        self.state = self.dir / 'home/state/acp-broker'
        subprocess.run(['sh', ENGINE, str(self.dir), '', *map(str, self.VOLUMES)], check=True)
        (self.dir / 'root').mkdir()
        self.fill_image(self.dir / 'root')
        self.import_image(self.dir / 'root')

    def clean_up(self):
        for client in self.clients:
            client.finish()
        for name in self.containers():
            self.podman('rm', '--force', '--time', '0', name)
        super().clean_up()
        subprocess.run(['umount', str(self.dir / 'storage/overlay')], check=False,
                       stderr=subprocess.DEVNULL)
        shutil.rmtree(self.dir, ignore_errors=True)

    # ---- the engine ----

    def environment(self):
        env = {**super().environment(), 'CONTAINERS_CONF': str(self.dir / 'engine.conf'),
               'CONTAINERS_STORAGE_CONF': str(self.dir / 'storage.conf')}
        env.pop('XDG_CONFIG_HOME')
        return env

    def fill_image(self, root):
        fill_root(root)

    def import_image(self, root):
        with tarfile.open(self.dir / 'root.tar', 'w') as tar:
            tar.add(root, arcname='.')
        done = self.podman('import', str(self.dir / 'root.tar'), IMAGE)
        self.assertEqual(done.returncode, 0, done.stderr)

    def podman(self, *words):
        env = {name: value for name, value in self.environment().items()
               if name != processes.MARK}  # a container may outlive the test's other processes
        return subprocess.run(['podman', *words], env=env, stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, check=False, timeout=PATIENCE)

    def containers(self):
        if not (self.dir / 'engine.conf').exists():
            return []
        return self.podman('ps', '--all', '--format', '{{.Names}}').stdout.split()

    def seen(self, template, name=None):
        return self.podman('inspect', '--format', template,
                           name or self.containers()[0]).stdout.strip()

    def running_containers(self):
        return self.podman('ps', '--format', '{{.Names}}').stdout.split()

    def inside(self, name):
        """The processes in a container, without its first one."""
        first = int(self.seen('{{.State.Pid}}', name))
        return {pid for pid in processes.all_pids()
                if pid != first and namespace(pid) == namespace(first)}

    def runners(self, name):
        """The runner's processes and guards among them."""
        return [pid for pid in self.inside(name) if processes.name_of(pid).startswith('acp-')]

    def wait_for_sleep(self, name):
        self.assertTrue(processes.wait_until(lambda: self.podman(
            'exec', name, 'pgrep', '-x', 'sleep').returncode == 0))

    # ---- the broker ----

    def config(self, deadlines=True, policy=None, backend='container', **keys):
        return super().config(deadlines, policy, backend, **{'engine': 'podman', **LINK, **keys})

    def opened(self, **keys):
        client = self.broker(options=self.config(**keys))
        client.initialize()
        return client, client.new_session(self.work)

    def with_podman(self, lines, **keys):
        """A broker that finds a podman on PATH that runs these lines first."""
        fake = self.dir / 'bin/podman'
        fake.parent.mkdir()
        fake.write_text(f'#!/bin/sh\n{lines}\nexec {shutil.which("podman")} "$@"\n')
        fake.chmod(0o755)
        return self.start(self.broker_argv(*self.config(**keys), agent=self.agent_argv()),
                          env={**self.environment(),
                               'PATH': f'{fake.parent}:{os.environ["PATH"]}'})

    def notes(self):
        return [json.loads(path.read_text())
                for path in sorted((self.state / 'container').glob('*.json'))]

    def run_broker(self, *words, status=0):
        done = subprocess.run([BROKER, *words], cwd=self.work, env=self.environment(), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, status, (done.stdout, done.stderr))
        return done
