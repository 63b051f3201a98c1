#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Images that contain an agent, the libraries that it loads, and nothing else: no shell, no folders
for temporary files, no list of users.
"""

import os
import re
import shutil
import subprocess

import processes

from case import AGENT, main
from containers import IMAGE, Containers
from processes import PATIENCE


class Bare(Containers):
    VOLUMES = ()

    def fill_image(self, root):
        listed = subprocess.run(['ldd', AGENT], capture_output=True, text=True, check=True).stdout
        for path in (AGENT, *re.findall(r'(/\S+) \(0x', listed)):
            copy = root / path[1:]
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)

    def config(self, deadlines=True, policy=None, backend='container', **keys):
        return super().config(deadlines, policy, backend, **{'sync': 'none', **keys})

    def root_of(self, client, session):
        return client.call('_broker/session/status', {'sessionId': session})['runtimeRoot']

    def run_mine(self):
        """A container that is there."""
        done = self.podman('run', '--detach', '--interactive', '--name', 'mine', IMAGE, AGENT)
        self.assertEqual(done.returncode, 0, done.stderr)

    def agents(self):
        """The agents in that container, without its first process."""
        return {pid for pid in self.inside('mine')
                if processes.name_of(pid) == 'scripted-agent'}

    def write_and_read(self, client, session, root):
        client.prompt(session, f'write {root}/made some text')
        client.prompt(session, f'read {root}/made')
        self.assertIn('some text', client.wait_text('fs/read_text_file ->'))


class Sessions(Bare):
    def test_a_session_reads_and_writes_files(self):
        client, session = self.opened(image=IMAGE)
        root = self.root_of(client, session)
        self.write_and_read(client, session, root)
        self.end(client)
        name, = self.running_containers()  # nothing was collected, so it stays
        self.podman('cp', f'{name}:{root}/made', str(self.dir / 'made'))
        self.assertEqual((self.dir / 'made').read_text(), 'some text')

    def test_a_container_that_is_there_gets_the_runner(self):
        self.run_mine()
        client, session = self.opened(container='mine')
        root = self.root_of(client, session)
        self.write_and_read(client, session, root)
        self.end(client)
        self.assertEqual(self.running_containers(), ['mine'])

    def test_a_container_that_can_neither_be_copied_into_nor_has_a_shell(self):
        self.run_mine()
        client = self.with_podman("""if [ "$1" = cp ]; then
            echo 'cannot copy' >&2
            exit 125
        fi""", container='mine')
        error = self.failure(client.response(client.start('initialize', {
            'protocolVersion': 1, 'clientCapabilities': {}})), 'EXEC_COMMAND_FAILED')
        client.finish()
        self.assertNames(error['message'], 'exec | status | copy-in | cannot copy')

    def test_a_copied_note_ends_nothing_that_a_living_broker_uses(self):
        self.run_mine()
        client, session = self.opened(container='mine')
        before = self.agents()
        self.assertEqual(len(before), 1)
        state = self.dir / 'other'
        shutil.copytree(self.state / 'runs', state / 'acp-broker/runs')
        second = self.start(
            self.broker_argv(*self.config(container='mine'), agent=self.agent_argv()),
            env={**self.environment(), 'XDG_STATE_HOME': str(state)})
        second.initialize()
        other = second.new_session(self.work)
        second.wait_log('another broker uses', PATIENCE)
        second.prompt(other, 'say hello')
        self.assertEqual(before - self.agents(), set())
        self.end(second)
        client.prompt(session, 'say back')
        self.assertEqual(self.agents(), before)
        self.end(client)

    def test_the_runner_learns_how_long_the_ends_of_earlier_runs_may_take(self):
        self.run_mine()
        client = self.with_podman(f"""if [ "$1" = exec ]; then
            tee {self.dir}/sent | {shutil.which('podman')} "$@"
            exit
        fi""", container='mine', **{'answer-timeout': '60s'})
        client.initialize()
        self.assertEqual((self.dir / 'sent').read_bytes().split(b'\n')[:2],
                         [b'wait 40000', b'begin'])
        self.end(client)


if __name__ == '__main__':
    main()
