#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`backend = container` with a real podman and runc (containers.py)."""

import json
import os
import shutil
import signal

import processes

from case import AGENT, main
from containers import IMAGE, Containers
from processes import PATIENCE


class Sessions(Containers):
    def test_a_container_of_an_image_is_stopped_and_started_again(self):
        for turn in ('one', 'two'):
            client, session = self.opened(image=IMAGE)
            client.prompt(session, f'terminal cat /proc/1/cmdline; echo {turn} > made')
            self.assertIn('acp-runner\\u0000hold', client.wait_text('terminal/output ->'))
            self.end(client)
            self.assertEqual((self.work / 'made').read_text(), f'{turn}\n')
            name, = self.containers()
            self.assertEqual(self.running_containers(), [])
            self.assertEqual(self.seen('{{.HostConfig.Privileged}}'), 'false')
            self.assertIn('/.acp-broker false;', self.seen(
                '{{range .Mounts}}{{.Destination}} {{.RW}};{{end}}'))
            self.assertEqual(self.seen('{{index .Config.Labels "acp-broker.sandbox"}}'), name)
        self.assert_nothing_runs()
        listed = json.loads(self.run_broker(
            'sandboxes', 'list', '--json', *self.config(image=IMAGE)).stdout)['sandboxes']
        self.assertEqual([one['state'] for one in listed], ['stopped'])
        self.run_broker('sandboxes', 'delete', name, *self.config(image=IMAGE))
        self.assertEqual((self.containers(), self.notes()), ([], []))

    def test_limits_hold_and_other_settings_make_another_container(self):
        limits = {'memory': '200m', 'cpu': '1', 'processes': '77', 'network': 'blocked'}
        client, session = self.opened(image=IMAGE, **limits)
        client.prompt(session, 'terminal tail -n +3 /proc/net/dev | cut -d: -f1')
        self.assertIn('"output":"    lo\\n"', client.wait_text('terminal/output ->'))
        self.assertEqual(
            self.seen('{{.HostConfig.Memory}} {{.HostConfig.PidsLimit}} '
                      '{{.HostConfig.NetworkMode}}'), f'{200 << 20} 77 none')
        self.end(client)
        client, _ = self.opened(image=IMAGE, memory='200m')
        self.assertEqual(len(self.containers()), 2)
        self.end(client)
        self.assert_nothing_runs()

    def test_a_session_goes_on_in_a_container_of_the_present_settings(self):
        client, session = self.opened(image=IMAGE)
        client.prompt(session, 'terminal echo made > made')
        self.end(client)
        client = self.broker(options=self.config(image=IMAGE, network='blocked'))
        client.initialize()
        client.call('session/load', {'sessionId': session, 'cwd': str(self.work),
                                     'mcpServers': []})
        client.prompt(session, 'terminal cat made; tail -n +3 /proc/net/dev | cut -d: -f1')
        self.assertIn('"output":"made\\n    lo\\n"', client.wait_text('terminal/output ->'))
        self.end(client)
        self.assertEqual(len(self.containers()), 2)

    def test_a_container_that_is_there_is_used_and_left_alone(self):
        self.podman('run', '--detach', '--name', 'mine', IMAGE, '/usr/bin/sleep', 'infinity')
        client, session = self.opened(container='mine')
        client.prompt(session, 'terminal cat /proc/1/comm; echo made > made')
        self.assertIn('sleep', client.wait_text('terminal/output ->'))
        self.end(client)
        self.assertEqual((self.work / 'made').read_text(), 'made\n')
        self.assertEqual(self.running_containers(), ['mine'])
        self.assertEqual(self.notes(), [])
        self.assertEqual(self.podman('exec', 'mine', 'ls', '/.acp-broker').stdout, 'acp-runner\n')
        self.podman('rm', '--force', '--time', '0', 'mine')
        error = self.refused('EXEC_COMMAND_FAILED', container='mine')
        self.assertNames(error['message'], 'mine')

    def test_a_container_into_which_the_engine_copies_nothing(self):
        """As if its root were read-only: a shell there takes the runner."""
        self.podman('run', '--detach', '--name', 'mine', IMAGE, '/usr/bin/sleep', 'infinity')
        client = self.with_podman("""if [ "$1" = cp ]; then
            echo 'cannot copy' >&2
            exit 125
        fi""", container='mine')
        client.initialize()
        session = client.new_session(self.work)
        client.prompt(session, 'terminal echo made > made')
        self.end(client)
        self.assertEqual((self.work / 'made').read_text(), 'made\n')


class Option(Containers):
    """`acp-broker --container IMAGE -- AGENT`, without a configuration."""

    OPTIONS = ['--container', IMAGE]

    def test_a_container_is_of_one_session(self):
        (self.work / 'mine').write_text('mine\n')
        client = self.broker(options=self.OPTIONS)
        client.initialize()
        session = client.new_session(self.work)
        client.prompt(session, 'terminal cat mine /proc/1/cmdline; echo made > made')
        self.assertIn('mine\\n/.acp-broker', client.wait_text('terminal/output ->'))
        self.assertEqual(len(self.containers()), 1)
        self.end(client)
        self.assertEqual((self.work / 'made').read_text(), 'made\n')
        self.assertEqual((self.containers(), self.notes()), ([], []))
        self.assert_nothing_runs()

    def test_one_prompt_from_a_shell(self):
        done = self.run_broker('exec', *self.OPTIONS, '--approve', 'all', 'terminal echo x > made',
                               '--', AGENT)
        self.assertIn('terminal/release', done.stdout)
        self.assertEqual((self.work / 'made').read_text(), 'x\n')
        self.assertEqual((self.containers(), self.notes()), ([], []))

    def test_the_broker_is_killed(self):
        client = self.broker(options=self.OPTIONS)
        client.initialize()
        session = client.new_session(self.work)
        client.prompt(session, 'say hello')
        client.start_prompt(session, 'terminal echo there > made; sleep 600')
        name, = self.containers()
        self.wait_for_sleep(name)
        os.kill(client.pid, signal.SIGKILL)
        client.wait()
        client = self.broker(options=self.OPTIONS)
        client.initialize()
        client.wait_log('is collected', PATIENCE)
        self.assertEqual((self.work / 'made').read_text(), 'there\n')
        self.assertTrue(processes.wait_until(lambda: name not in self.containers()))
        self.end(client)
        self.assertEqual((self.containers(), self.notes()), ([], []))


class Ends(Containers):
    def in_a_prompt(self, persistence='transient'):
        client, session = self.opened(image=IMAGE, persistence=persistence)
        waiting = client.start_prompt(session, 'terminal echo there > made; sleep 600')
        name, = self.containers()
        self.wait_for_sleep(name)
        return client, session, waiting

    def test_the_broker_is_killed_and_the_next_one_removes_the_container(self):
        client, _, _ = self.in_a_prompt()
        left, = self.containers()
        os.kill(client.pid, signal.SIGKILL)
        client.wait()
        client = self.broker(options=self.config(image=IMAGE, persistence='transient'))
        client.initialize()
        client.wait_log('is collected', PATIENCE)
        self.assertEqual((self.work / 'made').read_text(), 'there\n')
        self.assertTrue(processes.wait_until(lambda: left not in self.containers()))
        self.end(client)
        self.assertEqual((self.containers(), self.notes()), ([], []))
        self.assert_nothing_runs()

    def test_the_broker_is_killed_while_the_engine_makes_the_container(self):
        """The container that is left has the name that the next broker needs."""
        client = self.with_podman(f"""if [ "$1" = run ]; then
            {shutil.which('podman')} "$@"
            exec sleep 500
        fi""", image=IMAGE)
        client.start('initialize', {'protocolVersion': 1, 'clientCapabilities': {}})
        self.assertTrue(processes.wait_until(self.running_containers))
        os.kill(client.pid, signal.SIGKILL)
        client.wait()
        before = self.seen('{{.Id}}')
        client, session = self.opened(image=IMAGE)
        client.prompt(session, 'terminal echo made > made')
        self.assertEqual(len(self.containers()), 1)
        self.assertNotEqual(self.seen('{{.Id}}'), before)
        self.end(client)
        self.assertEqual((self.work / 'made').read_text(), 'made\n')
        self.assert_nothing_runs()

    def test_the_engines_exec_is_killed(self):
        client, session, waiting = self.in_a_prompt('reuse')
        name, = self.containers()
        command, = [pid for pid in processes.descendants(client.pid)
                    if processes.name_of(pid) == 'podman']
        os.kill(command, signal.SIGKILL)
        self.failure(client.response(waiting), 'LINK_LOST')
        client.prompt(session, 'terminal pgrep -x sleep; cat made')
        self.assertIn('"output":"there', client.wait_text('terminal/output ->'), client.stderr)
        self.assertEqual(self.containers(), [name])
        self.end(client)
        self.assert_nothing_runs()

    def test_the_runner_is_killed_and_what_it_ran_ends_before_the_next_turn(self):
        client, session, waiting = self.in_a_prompt('reuse')
        name, = self.containers()
        runners = self.runners(name)
        for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped, none acts on another's end
            for pid in runners:
                os.kill(pid, number)
        self.failure(client.response(waiting), 'LINK_LOST')
        self.assertEqual(self.podman('exec', name, 'pgrep', '-x', 'sleep').returncode, 0)
        client.prompt(session, 'terminal pgrep -x sleep; cat made')
        self.assertIn('"output":"there', client.wait_text('terminal/output ->'))
        self.assertIn('still ran', client.stderr)
        self.end(client)
        self.assert_nothing_runs()

    def test_somebody_else_removes_the_container(self):
        client, session, waiting = self.in_a_prompt()
        self.podman('rm', '--force', '--time', '0', self.containers()[0])
        self.assertIn('error', client.response(waiting).value)
        client.finish()
        client, session = self.opened(image=IMAGE, persistence='transient')
        client.prompt(session, 'say back')
        self.end(client)
        self.assertEqual(self.containers(), [])
        self.assert_nothing_runs()


class Refusals(Containers):
    def test_an_image_that_does_not_exist(self):
        error = self.refused('EXEC_COMMAND_FAILED', image='localhost/nothing:1')
        self.assertNames(error['message'], 'start | podman | nothing')
        self.assertEqual((self.containers(), self.notes()), ([], []))

    def test_an_engine_that_makes_it_otherwise(self):
        """As docker does if the kernel lacks the controller."""
        client = self.with_podman("""if [ "$1" = inspect ]; then
            printf 'memory=0\\033[2J\\n'
            exit
        fi""", image=IMAGE, memory='200m')
        error = self.failure(client.response(client.start('initialize', {
            'protocolVersion': 1, 'clientCapabilities': {}})), 'EXEC_MADE_OTHERWISE')
        client.finish()
        self.assertNames(error['message'], f'memory={200 << 20} | memory=0')
        self.assertNotIn('\x1b', error['message'])
        self.assertEqual((self.containers(), self.notes()), ([], []))


if __name__ == '__main__':
    main()
