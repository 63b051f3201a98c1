#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
`backend = exec` with a real podman and runc: sessions in containers whose root is a folder with the
programs of this machine; and what is left if podman's command, the broker or a container is killed.
Skips if podman, runc or root's rights are missing.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import unittest

import processes

from case import AGENT, main
from platform_case import PlatformCase, fill_root
from processes import PATIENCE

SCRIPT = '''#!/bin/sh
# podman with storage of its own, and the limits that runc needs told on some hosts
unset ACP_TEST_MARK # a container outlives the broker, and its test
verb=$1 name=${{2-}}
pod() {{
    podman --root {dir}/storage --runroot {dir}/run --cgroup-manager cgroupfs --runtime runc "$@"
}}
case $verb in
start)
    if pod container exists "$name"; then
        pod start "$name"
    else
        pod run --detach --name "$name" --network none --env "IN_BOX=$name" \\
            --ulimit nofile=1024:1024 --ulimit nproc=4096:4096 \\
            --volume /usr:/usr:ro --volume {agent}:{agent}:ro \\
            --rootfs {dir}/roots/root /usr/bin/sleep infinity
    fi ;;
exec) shift 2 && pod exec -i "$name" "$@" ;;
stop) pod stop --time 0 "$name" ;;
destroy) pod rm --force --time 0 "$name" ;;
list) pod ps --all --format '{{{{.Names}}}}' ;;
state)
    pod container exists "$name" || exit 4
    [ "$(pod container inspect --format '{{{{.State.Running}}}}' "$name")" = true ] || exit 3 ;;
esac
'''


@unittest.skipUnless(shutil.which('podman') and shutil.which('runc'), 'there is no podman or runc')
@unittest.skipUnless(os.geteuid() == 0, 'a container with the programs of this machine needs root')
class Podman(PlatformCase):
    def setUp(self):
        super().setUp()
        root = self.dir / 'roots/root'
        fill_root(root)
        self.script = self.dir / 'box'
        self.script.write_text(SCRIPT.format(dir=self.dir, agent=pathlib.Path(AGENT).parent))
        self.script.chmod(0o755)

    def clean_up(self):
        super().clean_up()
        subprocess.run(['umount', str(self.dir / 'storage/overlay')], check=False,
                       stderr=subprocess.DEVNULL)
        shutil.rmtree(self.dir, ignore_errors=True)

    def words(self, verb):
        return f'{self.script} {verb}' + ('' if verb == 'list' else ' %i')

    def box(self, verb, *words):
        return subprocess.run([str(self.script), verb, *words], env=self.environment(),
                              stdin=subprocess.DEVNULL, text=True, capture_output=True,
                              check=False, timeout=PATIENCE)

    def boxes(self):
        return self.box('list').stdout.split() if self.script.exists() else []

    def inside(self, box=None):
        return self.dir / 'roots/root'

    def in_a_prompt(self, **keys):
        client, session = self.opened(**keys)
        root = self.runtime(client, session)
        waiting = client.start_prompt(
            session, 'terminal echo there > made; (setsid sleep 500 &) ; sleep 600')
        self.assertTrue(processes.wait_until((root / 'made').exists))
        return client, session, waiting

    def test_sessions_in_a_container_that_is_stopped_and_started(self):
        for turn in ('one', 'two'):
            client, session = self.opened()
            client.prompt(session, f'terminal cat /proc/1/comm; echo {turn} > made')
            self.assertIn('sleep', client.wait_text('terminal/output ->'))
            self.end(client)
            self.assertEqual((self.work / 'made').read_text(), f'{turn}\n')
            self.assertEqual(len(self.boxes()), 1)
            self.assertEqual([one['state'] for one in self.listed()], ['stopped'])
        self.assert_nothing_runs()

    def test_podman_exec_is_killed(self):
        """
        `podman exec` would leave its process running, but the runner there ends with its channel.
        """
        client, session, waiting = self.in_a_prompt(persistence='transient')
        before = self.in_boxes()
        command, = [pid for pid in processes.descendants(client.pid)
                    if processes.name_of(pid) == 'podman']
        os.kill(command, signal.SIGKILL)
        self.failure(client.response(waiting), 'LINK_LOST')
        alive = [pid for pid in before if processes.name_of(pid) != 'sleep' or
                 processes.parent_of(pid) != 1]
        client.prompt(session, 'terminal cat made')
        self.assertIn('there', client.wait_text('terminal/output ->'))
        self.assertTrue(processes.wait_until(lambda: not any(
            processes.name_of(pid) in ('acp-runner', 'scripted-agent') for pid in alive
            if processes.is_running(pid))))
        self.end(client)
        self.assertEqual((self.boxes(), self.notes()), ([], []), client.stderr)
        self.assert_nothing_runs()

    def test_the_broker_is_killed(self):
        client, _, _ = self.in_a_prompt(persistence='transient')
        left, = self.boxes()
        os.kill(client.pid, signal.SIGKILL)
        client.wait()
        client = self.broker(options=self.config(persistence='transient'))
        client.initialize()
        client.wait_log('is collected', PATIENCE)
        self.assertEqual((self.work / 'made').read_text(), 'there\n')
        self.assertTrue(processes.wait_until(lambda: left not in self.boxes()))
        self.end(client)
        self.assertEqual((self.boxes(), self.notes()), ([], []))
        self.assert_nothing_runs()

    def test_the_container_is_stopped_by_somebody_else(self):
        client, session, waiting = self.in_a_prompt()
        self.box('stop', self.boxes()[0])
        self.assertIn('error', client.response(waiting).value)
        client.prompt(session, 'terminal cat made')
        self.assertIn('there', client.wait_text('terminal/output ->'))
        self.end(client)
        self.assert_nothing_runs()


if __name__ == '__main__':
    main()
