# SPDX-License-Identifier: MIT
"""A session that is cut off: one process is killed at one point, while both sides have edits."""

import json
import os
import pathlib
import signal
import subprocess

import case
import processes
import sync_room
from acp import RpcError
from case import Case
from processes import PATIENCE
from sshd import Sshd

PROFILES = {
    'local': {'checkpoints': 'true', 'toolhost': 'broker'},
    'copy': {'isolation': 'copy'},
    'ssh': {'backend': 'ssh', 'host': 'box', 'ssh-client': 'libssh2', 'link-grace': '20s',
            'channel-timeout': '10m'},
}
PROFILES['ssh-scripts'] = {**PROFILES['ssh'], 'runner': 'never'}
PROFILES['ssh-rsync'] = {**PROFILES['ssh'], 'transport': 'rsync'}
PROFILES['ssh-transient'] = {**PROFILES['ssh'], 'persistence': 'transient'}


class Room(Case):
    """A workspace and its sandbox, used by one broker after the other; each of them is cut off."""

    def __init__(self, provider):
        super().__init__()
        self.provider = provider
        self.number = 0

    def runTest(self):
        """Never run: unittest requires it."""

    def setUp(self):
        super().setUp()
        keys = dict(case.DEADLINES, **PROFILES[self.provider])
        self.sshd = Sshd() if self.provider.startswith('ssh') else None
        if self.sshd:
            self.sshd.__enter__()
            keys['ssh-config'] = str(self.sshd.config)
        self.state = self.dir / 'home/state/acp-broker'
        self.path = self.dir / 'config-cut'
        self.path.write_text('[profile "cut"]\n' + ''.join(
            f'\t{name} = {value}\n' for name, value in keys.items()))
        self.options = ['--config', str(self.path), '--profile', 'cut']
        for name in ('here', 'there'):
            (self.work / name).write_text('at first\n')
        self.wanted = {}

    def clean_up(self):
        """Stops the host last."""
        try:
            super().clean_up()
        finally:
            if self.sshd:
                self.sshd.stop()

    def running(self):
        there = processes.marked(f'HOME={self.sshd.home}') if self.sshd else []
        return sorted(set(super().running()) | set(there))

    # ---- processes to kill ----

    def agents(self):
        return [pid for pid in self.agent_pids() if processes.is_running(pid)]

    def outside(self):
        """
        Processes of the sandbox on the other host. The first is the control, which ends the others.
        """
        return sorted(processes.marked(f'HOME={self.sshd.home}'))

    def guard(self, client):
        return self.outside()[0] if self.sshd else processes.parent_of(self.agents()[-1])

    def child(self, client):
        """The newest process in the sandbox, started by the agent or by a sync."""
        if self.sshd:
            return max(set(self.outside()[1:]) - set(self.agents()))
        own = ('acp-guard', 'acp-broker', 'acp-broker-poin', 'scripted-agent')
        return max(pid for pid in processes.descendants(client.pid)
                   if processes.name_of(pid) not in own)

    def victim(self, client, what):
        return {'broker': lambda: client.pid,
                'guard': lambda: self.guard(client),
                'agent': lambda: self.agents()[-1],
                'child': lambda: self.child(client),
                'sshd': lambda: self.sshd.connections()[-1]}[what]()

    # ---- a session ----

    def edit(self, root, label):
        """Writes a new file and an existing file on each side."""
        for folder, side in ((self.work, 'here'), (root, 'there')):
            text = f'{label} {side}\n'
            for name in (side, f'{label}-{side}'):
                (folder / name).write_text(text)
                self.wanted[name] = text

    def begin(self, point):
        self.number += 1
        self.when = self.dir / f'when-{self.number}'
        env = {**self.environment(), 'ACP_POINT': f'{point}:1:stop',
               'ACP_POINT_WHEN': str(self.when)}
        argv = [sync_room.POINTS, *self.options, '--', *self.agent_argv()]
        client = self.start(argv, env=env)
        client.initialize(seconds=PATIENCE)
        session = client.call('session/new', {'cwd': str(self.work), 'mcpServers': []},
                              seconds=PATIENCE)['sessionId']
        # A child of the agent that runs all the time, in a session of its own.
        client.prompt(session, 'terminal (setsid sleep 300 >/dev/null 2>&1 &) ; sleep 0',
                      seconds=PATIENCE)
        status = client.call('_broker/session/status', {'sessionId': session}, PATIENCE)
        return client, session, pathlib.Path(status['runtimeRoot'] or self.work)

    def cut(self, phase, point, victim):
        """Edits both sides, and kills the victim during a turn or during the end."""
        client, session, root = self.begin(point)
        self.edit(root, f'cut{self.number}')
        self.when.touch()
        asked = None
        if phase == 'turn':
            asked = client.start_prompt(session, 'say hello')
        else:
            client.close_stdin()
        stopped = processes.wait_until(
            lambda: (processes.stat_of(client.pid) or ' Z')[1] in 'TZ', PATIENCE)
        self.assertTrue(stopped and processes.is_running(client.pid),
                        f'the point was not reached\n{client.stderr[-800:]}')
        processes.kill(self.victim(client, victim))
        if victim != 'broker':
            os.kill(client.pid, signal.SIGCONT)
        self.end(client, asked)

    def end(self, client, asked):
        """Waits for an answer, whatever it is, and for the broker's end."""
        if asked is not None and processes.is_running(client.pid):
            try:
                client.answer(asked, PATIENCE)
            except (RpcError, AssertionError):
                pass
        client.close_stdin()
        client.wait(PATIENCE)

    # ---- afterwards ----

    def sessions(self, *words):
        argv = [case.BROKER, '--config', str(self.path), 'sessions', *words]
        return subprocess.run(argv, env=self.environment(), cwd=self.dir, text=True, check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)

    def check(self):
        """Checks that nothing runs, lies about or is held, and that every edit is here."""
        self.assert_nothing_runs()
        done = self.sessions('collect')
        self.assertEqual(done.returncode, 0, done.stderr)
        found = {name: (self.work / name).read_text() if (self.work / name).exists() else None
                 for name in self.wanted}
        self.assertEqual(found, self.wanted)
        listed = json.loads(self.sessions('list', '--json').stdout)['sessions']
        self.assertEqual([(e['id'], e['state'], e['isHeld']) for e in listed
                          if e['isHeld'] or e['state'] != 'stopped'], [])
        roots = [self.work, self.state] + ([self.sshd.home] if self.sshd else [])
        litter = [str(path) for root in roots for pattern in ('.acp-broker-*', '*.new')
                  for path in root.rglob(pattern)]
        if self.provider == 'ssh-transient':
            litter += map(str, self.sshd.home.glob('.local/share/acp-broker/workspaces/*'))
        self.assertEqual(litter, [])
        self.assertEqual(list(self.work.rglob('*.acp-conflict')), [])
        self.assertEqual(sync_room.parked_files(self.state), [])
