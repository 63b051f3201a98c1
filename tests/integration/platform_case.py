# SPDX-License-Identifier: MIT
"""A session in a box of a platform that is a shell script: `backend = exec`."""

import json
import os
import pathlib
import subprocess

import processes

from case import AGENT, BROKER, ROOT, Case
from processes import PATIENCE

SCRIPT = ROOT / 'tests/support/exec/box.sh'
VERBS = ('start', 'exec', 'stop', 'destroy', 'list', 'state')
LINK = {'answer-timeout': '10m', 'create-timeout': '10m', 'command-timeout': '10m',
        'prepare-timeout': '10m', 'link-grace': '10m'}


def fill_root(root):
    """Makes the folders of a root into which this machine's programs are mounted."""
    for name in ('usr', 'etc', 'proc', 'dev', 'sys', 'tmp', 'root', 'run'):
        (root / name).mkdir(parents=True)
    for name in ('bin', 'sbin', 'lib', 'lib64'):
        if os.path.islink(f'/{name}'):
            (root / name).symlink_to(os.readlink(f'/{name}'))
    (root / 'tmp').chmod(0o1777)


class Instances(Case):
    """What tests of `backend = exec` and `backend = container` have in common."""

    def agent_argv(self, *flags):
        return [AGENT, *flags]

    def end(self, client):
        client.close_stdin()
        self.assertEqual(client.wait(), 0, client.stderr)

    def refused(self, code, **keys):
        """Checks that `initialize` fails, and returns the error."""
        client = self.broker(options=self.config(**keys))
        error = self.failure(client.response(client.start('initialize', {
            'protocolVersion': 1, 'clientCapabilities': {}})), code)
        client.finish()
        return error


class PlatformCase(Instances):
    """The boxes have namespaces and a root of their own, and show the agent's program."""

    def setUp(self):
        super().setUp()
        self.platform = self.dir / 'platform'
        self.state = self.dir / 'home/state/acp-broker'

    def clean_up(self):
        for client in self.clients:
            client.finish()
        for box in self.boxes():
            self.box('destroy', box)
        super().clean_up()

    # ---- the platform ----

    KIND = f'apart:{pathlib.Path(AGENT).parent}'

    def words(self, verb):
        named = '' if verb == 'list' else ' %i'
        return f"sh '{SCRIPT}' '{self.platform}' '{self.KIND}' {verb}{named}"

    def box(self, verb, *words):
        return subprocess.run(['sh', str(SCRIPT), str(self.platform), self.KIND, verb, *words],
                              env=self.environment(), stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, check=False, timeout=PATIENCE)

    def boxes(self):
        folder = self.platform / 'boxes'
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def inside(self, box=None):
        """The root of a box, as a path on this machine."""
        return self.platform / 'boxes' / (box or self.boxes()[0]) / 'root'

    def log(self):
        """The calls of the platform's commands in order, except exec, state and list."""
        path = self.platform / 'log'
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if line.split()[0] not in ('state', 'list')]

    def in_boxes(self):
        """The processes in a box, except its init. A name has a hash of this test's folder."""
        return sorted(pid for box in self.boxes() for pid in processes.marked(f'IN_BOX={box}'))

    def running(self):
        return sorted(set(super().running()) | set(self.in_boxes()))

    # ---- the broker ----

    def config(self, deadlines=True, policy=None, backend='exec', **keys):
        named = {name.replace('_', '-'): value for name, value in keys.items()}
        commands = {verb: f'"{self.words(verb)}"' for verb in VERBS}
        merged = {**commands, **LINK, **named}
        return super().config(deadlines, policy, backend,
                              **{name: value for name, value in merged.items() if value})

    def opened(self, *flags, **keys):
        client = self.broker(*flags, options=self.config(**keys))
        client.initialize()
        return client, client.new_session(self.work)

    def runtime(self, client, session):
        """The folder of the workspace in the box, as a path on this machine."""
        status = client.call('_broker/session/status', {'sessionId': session})
        return pathlib.Path(f'{self.inside()}{status["runtimeRoot"]}')

    def command(self, *words, status=0, **keys):
        done = subprocess.run([BROKER, *self.config(**keys), *words], cwd=self.work,
                              env=self.environment(), stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, check=False, timeout=PATIENCE)
        self.assertEqual(done.returncode, status, (done.stdout, done.stderr))
        return done

    def listed(self, **keys):
        return json.loads(self.command('sandboxes', 'list', '--json', **keys).stdout)['sandboxes']

    def notes(self):
        return [json.loads(path.read_text())
                for path in sorted((self.state / 'exec').glob('*.json'))]
