#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
`backend = kubernetes` with a stand-in for kubectl and its cluster
(support/kubernetes/kubectl.py): sessions in pods, pods that wait, are refused, end or stay, and the
end of kubectl and of the broker.
"""

import json
import os
import signal
import subprocess

import processes

from case import BROKER, ROOT, main
from platform_case import LINK, Instances
from processes import PATIENCE

SECRET = 'c0ffee-5ecret'
STORAGE = {'storage': '1g', 'persistence': 'reuse'}
UNSCHEDULABLE = {'phase': 'Pending', 'conditions': [{
    'type': 'PodScheduled', 'status': 'False', 'reason': 'Unschedulable',
    'message': '0/3 nodes are available: 3 Insufficient cpu.'}]}
NO_IMAGE = {'phase': 'Pending', 'containerStatuses': [{'name': 'agent', 'state': {'waiting': {
    'reason': 'ImagePullBackOff', 'message': 'Back-off pulling image "nothing:1"'}}}]}
RUNNING = {'phase': 'Running', 'containerStatuses': [{'name': 'agent', 'state': {'running': {}}}]}
KILLED = {'phase': 'Failed', 'containerStatuses': [{'name': 'agent', 'state': {'terminated': {
    'reason': 'OOMKilled', 'exitCode': 137}}}]}
QUOTA = ('pods "acp-broker-x" is forbidden: exceeded quota: small, requested: pods=1, '
         'used: pods=4, limited: pods=4')


class Pods(Instances):
    def setUp(self):
        super().setUp()
        self.cluster = self.dir / 'cluster'
        self.there = self.dir / 'there'
        self.state = self.dir / 'home/state/acp-broker'
        programs = self.dir / 'programs'
        for folder in (self.cluster, programs):
            folder.mkdir()
        (programs / 'kubectl').symlink_to(ROOT / 'tests/support/kubernetes/kubectl.py')
        self.path = f'{programs}:{os.environ.get("PATH", "/usr/bin:/bin")}'

    def clean_up(self):
        for client in self.clients:
            client.finish()
        for pid in self.in_pods():
            os.kill(pid, signal.SIGKILL)
        super().clean_up()

    # ---- the cluster ----

    def environment(self):
        return {**super().environment(), 'PATH': self.path,
                'KUBECONFIG': str(self.cluster / 'config')}

    def named(self, kind):
        return sorted(path.stem for path in (self.cluster / kind).glob('[!.]*.json'))

    def pods(self):
        return self.named('pods')

    def tell(self, name, text):
        """What the cluster does from now on; kubectl.py lists the names."""
        part = self.cluster / f'.{name}'
        part.write_text(text if isinstance(text, str) else json.dumps(text))
        part.rename(self.cluster / name)

    def set_status(self, status):
        name, = self.pods()
        path = self.cluster / f'pods/{name}.json'
        part = path.with_name('.status')
        part.write_text(json.dumps({**json.loads(path.read_text()), 'status': status}))
        part.rename(path)

    def calls(self, verb):
        return [line for line in (self.cluster / 'log').read_text().splitlines()
                if line.split()[0] == verb]

    def in_pods(self):
        """The processes in pods."""
        return [pid for pid in processes.marked(f'HOME={self.cluster}/home')
                if processes.is_running(pid)]

    def is_kubectl(self, pid):
        return b'kubectl' in processes.read_file(f'/proc/{pid}/cmdline')

    def running(self):
        return sorted(set(super().running()) | set(self.in_pods()))

    def end_pod(self, status):
        """First its processes end, as with kubelet, and then the API server is told."""
        self.set_status({**RUNNING, 'containerStatuses': status['containerStatuses']})
        for pid in self.in_pods():
            processes.kill(pid)
        self.set_status(status)

    def assert_nothing_is_left(self):
        self.assertEqual((self.pods(), self.named('claims'), self.notes()), ([], [], []))
        self.assert_nothing_runs()

    # ---- the broker ----

    def config(self, deadlines=True, policy=None, backend='kubernetes', **keys):
        given = {'context': 'test', 'namespace': 'agents', 'image': 'debian:12',
                 'persistence': 'transient', 'runtime-root': self.there, **LINK, **keys}
        return super().config(deadlines, policy, backend, **given)

    def opened(self, **keys):
        client = self.broker(options=self.config(**keys))
        client.initialize()
        return client, client.new_session(self.work)

    def begin(self, **keys):
        """A broker whose `initialize` is not answered yet."""
        client = self.broker(options=self.config(**keys))
        return client, client.start('initialize', {'protocolVersion': 1, 'clientCapabilities': {}})

    def in_a_prompt(self, **keys):
        client, session = self.opened(**keys)
        waiting = client.start_prompt(
            session, 'terminal echo there > made; (setsid sleep 500 &) ; sleep 600')
        self.assertTrue(processes.wait_until(
            lambda: list((self.there / 'workspaces').glob('*/work/made'))))
        return client, session, waiting

    def sandboxes(self, *words, **keys):
        done = subprocess.run([BROKER, 'sandboxes', *words, *self.config(**keys)], cwd=self.work,
                              env=self.environment(), stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, check=False, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, (done.stdout, done.stderr))
        return done.stdout

    def listed(self, **keys):
        return json.loads(self.sandboxes('list', '--json', **keys))['sandboxes']

    def notes(self):
        return list((self.state / 'kubernetes').glob('*.json'))


class SessionsAnywhere:
    """soak/kubernetes.py has these with a real API server, too."""

    def test_a_pod_of_one_session_leaves_nothing(self):
        (self.work / 'mine').write_text('mine\n')
        client, session = self.opened(storage='1g')
        self.assertEqual([one['state'] for one in self.listed(storage='1g')], ['running'])
        self.assertEqual((len(self.pods()), len(self.named('claims'))), (1, 1))
        client.prompt(session, 'terminal cat mine; echo made > made')
        self.assertIn('"output":"mine\\n"', client.wait_text('terminal/output ->'))
        self.end(client)
        self.assertEqual((self.work / 'made').read_text(), 'made\n')
        self.assert_nothing_is_left()

    def test_the_next_session_gets_another_pod_and_the_same_files(self):
        seen = set()
        for turn in ('one', 'two'):
            client, session = self.opened(**STORAGE)
            seen.update(self.pods())
            client.prompt(session, 'terminal cat kept; echo kept > kept')
            self.assertIn('kept\\n' if turn == 'two' else 'directory',
                          client.wait_text('terminal/output ->'))
            self.end(client)
            self.assertEqual((self.pods(), len(self.named('claims'))), ([], 1))
            self.assert_nothing_runs()
        self.assertEqual(len(seen), 2)
        one, = self.listed(**STORAGE)
        self.assertEqual(one['state'], 'stopped')
        self.sandboxes('delete', one['name'], **STORAGE)
        self.assert_nothing_is_left()


class EndsAnywhere:
    """The same."""

    def test_the_pod_is_out_of_memory_and_the_session_goes_on_in_another(self):
        client, session, waiting = self.in_a_prompt(**STORAGE)
        first, = self.pods()
        self.end_pod(KILLED)
        error = self.failure(client.response(waiting), 'LINK_LOST')
        self.assertNames(error['message'], f'{first} | OOMKilled')
        client.prompt(session, 'terminal cat made')
        self.assertIn('"output":"there', client.wait_text('terminal/output ->'))
        self.assertEqual(len(set(self.pods()) - {first}), 1)
        self.end(client)
        self.assertEqual(self.pods(), [])
        self.assert_nothing_runs()

    def test_kubectl_is_killed_and_what_it_ran_ends(self):
        client, session, waiting = self.in_a_prompt(**STORAGE)
        first, before = self.pods(), self.in_pods()
        for pid in processes.descendants(client.pid):
            if self.is_kubectl(pid):
                processes.kill(pid)
        self.failure(client.response(waiting), 'LINK_LOST')
        client.prompt(session, 'terminal cat made')
        self.assertIn('"output":"there', client.wait_text('terminal/output ->'))
        self.assertEqual(self.pods(), first)
        self.assertTrue(processes.wait_until(
            lambda: not any(processes.is_running(pid) for pid in before)),
                        processes.describe([pid for pid in before if processes.is_running(pid)]))
        self.end(client)
        self.assert_nothing_runs()

    def test_the_broker_is_killed_and_the_next_one_deletes_the_pod(self):
        client, _, _ = self.in_a_prompt(storage='1g')
        left, = self.pods()
        os.kill(client.pid, signal.SIGKILL)
        client.wait()
        self.assertEqual(self.pods(), [left])
        client = self.broker(options=self.config(storage='1g'))
        client.initialize()
        client.wait_log('is collected', PATIENCE)
        self.assertEqual((self.work / 'made').read_text(), 'there\n')
        self.assertTrue(processes.wait_until(lambda: len(self.notes()) == 1))
        self.assertNotIn(left, self.pods())
        self.end(client)
        self.assert_nothing_is_left()


class Sessions(SessionsAnywhere, Pods):
    def test_a_sandbox_is_not_looked_for_where_it_is_not(self):
        client, _, _ = self.in_a_prompt(storage='1g')
        os.kill(client.pid, signal.SIGKILL)
        client.wait()
        left, claims, (note,) = self.pods(), self.named('claims'), self.notes()
        for keys in ({'storage': None}, {'storage': '1g', 'namespace': 'others'}):
            config = self.config(**{name: value for name, value in keys.items() if value})
            for words in (['sandboxes', 'stop', note.stem],
                          ['sandboxes', 'delete', note.stem, '--discard']):
                done = subprocess.run([BROKER, *words, *config], cwd=self.work,
                                      env=self.environment(), stdin=subprocess.DEVNULL, text=True,
                                      capture_output=True, check=False, timeout=PATIENCE)
                self.assertEqual(done.returncode, 2, (words, done.stdout, done.stderr))
                self.assertNames(done.stdout + done.stderr, f'{note.stem} | namespace = agents')
            self.assertEqual((self.pods(), self.named('claims'), self.notes()),
                             (left, claims, [note]))
        client = self.broker(options=self.config(storage='1g'))
        client.initialize()
        client.wait_log('is collected', PATIENCE)
        self.assertEqual((self.work / 'made').read_text(), 'there\n')
        self.end(client)
        self.assertTrue(processes.wait_until(lambda: not self.notes()))
        self.assert_nothing_is_left()

    def test_brokers_with_other_state_folders_have_other_pods(self):
        keys = {'storage': '1g', 'persistence': 'reuse'}
        one, session, _ = self.in_a_prompt(**keys)
        first = self.pods()
        env = {**self.environment(), 'XDG_STATE_HOME': str(self.dir / 'other')}
        two = self.start(self.broker_argv(*self.config(**keys), agent=self.agent_argv()), env=env)
        two.initialize()
        two.prompt(two.new_session(self.work), 'say hello')
        self.assertEqual((len(self.pods()), len(self.named('claims'))), (2, 2))
        self.end(two)
        self.assertEqual(self.pods(), first)
        one.notify('session/cancel', {'sessionId': session})
        self.end(one)
        self.assertEqual(self.pods(), [])

    def test_without_a_claim_the_pod_stays_for_the_next_session(self):
        for turn in ('one', 'two'):
            client, session = self.opened(persistence='reuse')
            client.prompt(session, 'terminal cat kept; echo kept > kept')
            self.assertIn('kept\\n' if turn == 'two' else 'directory',
                          client.wait_text('terminal/output ->'))
            self.end(client)
            self.assertEqual(len(self.calls('create')), 1)
            self.assert_nothing_runs()
        one, = self.listed(persistence='reuse')
        self.assertEqual(one['state'], 'running')
        self.sandboxes('delete', one['name'], persistence='reuse')
        self.assert_nothing_is_left()

    def test_no_secret_is_in_a_manifest_or_a_command(self):
        env = {**self.environment(), 'THE_KEY': SECRET, 'MINE': 'only-here'}
        client = self.start(self.broker_argv(
            *self.config(**{'secret-env': 'THE_KEY'}), agent=self.agent_argv()), env=env)
        client.initialize()
        session = client.new_session(self.work)
        client.prompt(session, 'terminal echo "$MINE:$HOME"')
        self.assertIn(f'"output":":{self.cluster}/home\\n', client.wait_text('terminal/output ->'))
        agent, = [pid for pid in self.in_pods() if processes.name_of(pid) == 'scripted-agent']
        self.assertIn(SECRET.encode(), processes.read_file(f'/proc/{agent}/environ'))
        callers = [pid for pid in processes.descendants(client.pid) if self.is_kubectl(pid)]
        self.assertTrue(callers)
        for pid in callers:
            for name in ('cmdline', 'environ'):
                self.assertNotIn(SECRET.encode(), processes.read_file(f'/proc/{pid}/{name}'))
        for path in [*self.cluster.rglob('*'), *self.state.rglob('*')]:
            if path.is_file() and not path.is_symlink():
                self.assertNotIn(SECRET.encode(), path.read_bytes(), path)
        self.end(client)
        self.assert_nothing_is_left()

    def test_the_api_server_says_why_it_takes_no_pod(self):
        self.tell('refusal', QUOTA)
        error = self.refused('EXEC_COMMAND_FAILED', storage='1g')
        self.assertNames(error['message'], 'start (kubectl) | Forbidden | exceeded quota: small')
        self.assert_nothing_is_left()


class Waiting(Pods):
    def test_a_pod_waits_and_the_session_begins_when_it_runs(self):
        self.tell('pending', UNSCHEDULABLE)
        client, waiting = self.begin()
        client.wait_log('Pending (Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.)',
                        PATIENCE)
        self.assertEqual([one['state'] for one in self.listed()], ['waiting'])
        self.set_status(RUNNING)
        self.assertIn('result', client.response(waiting).value)
        client.prompt(client.new_session(self.work), 'terminal echo made > made')
        self.end(client)
        self.assertEqual((self.work / 'made').read_text(), 'made\n')
        self.assert_nothing_is_left()

    def test_a_pod_that_waits_too_long_is_deleted(self):
        self.tell('pending', UNSCHEDULABLE)
        error = self.refused('TIMEOUT_EXCEEDED', storage='1g', **{'pod-timeout': '2s'})
        self.assertNames(error['message'], '2000 ms | pod-timeout | Unschedulable')
        self.assert_nothing_is_left()

    def test_an_image_that_cannot_be_pulled_ends_the_wait(self):
        self.tell('pending', NO_IMAGE)
        error = self.refused('EXEC_NOT_STARTED')
        self.assertNames(error['message'], 'ImagePullBackOff | nothing:1')
        self.assert_nothing_is_left()

    def test_the_broker_is_killed_while_the_pod_waits(self):
        self.tell('pending', UNSCHEDULABLE)
        client, _ = self.begin(storage='1g')
        client.wait_log('Unschedulable', PATIENCE)
        os.kill(client.pid, signal.SIGKILL)
        client.wait()
        left, = self.pods()
        self.tell('pending', RUNNING)
        client, session = self.opened(storage='1g')
        client.prompt(session, 'say hello')
        self.assertTrue(processes.wait_until(lambda: len(self.notes()) == 1))
        self.assertNotIn(left, self.pods())
        self.end(client)
        self.assert_nothing_is_left()


class Ends(EndsAnywhere, Pods):
    def test_without_a_claim_the_end_of_the_pod_is_the_end_of_the_files(self):
        client, _, waiting = self.in_a_prompt()
        self.end_pod(KILLED)
        error = self.failure(client.response(waiting), 'SANDBOX_NOT_FOUND')
        self.assertNames(error['message'], 'gone | OOMKilled')
        client.finish()
        client, session = self.opened()
        client.prompt(session, 'say hello')
        self.end(client)
        self.assert_nothing_is_left()

    def test_a_pod_of_a_lost_node_stays_known_until_it_is_gone(self):
        client, session = self.opened(**{'command-timeout': '3s'})
        client.prompt(session, 'terminal echo made > made')
        self.tell('stuck', '')
        client.close_stdin()
        client.wait()
        client.wait_log('command-timeout', PATIENCE)
        self.assertEqual([one['state'] for one in self.listed()], ['waiting'])
        self.assertEqual(len(self.notes()), 1)
        self.assertEqual((self.work / 'made').read_text(), 'made\n')
        (self.cluster / 'stuck').unlink()
        self.sandboxes('delete', '--discard', self.listed()[0]['name'])
        self.assert_nothing_is_left()


if __name__ == '__main__':
    main()
