#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
`backend = kubernetes` with a real kubectl, kube-apiserver and etcd, and kwok as the node
(support/kubernetes/cluster.py). `./dev soak kubernetes` builds the first, second and fourth from Go
modules, once, and then runs this.

    kubernetes.py PROGRAMS [TEST…]
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / 'tests/integration'), str(ROOT / 'tests/support/kubernetes')]

# pylint: disable=wrong-import-position,import-error
import cluster
import processes
import test_kubernetes
from processes import PATIENCE

PROGRAMS = pathlib.Path(sys.argv[1]).resolve()
PODS = '/api/v1/namespaces/agents/pods'
MERGE = 'application/merge-patch+json'


class Real(test_kubernetes.Pods):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix='acp-kubernetes-'))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.made = cluster.Cluster(PROGRAMS, cls.folder / 'cluster')
        cls.addClassCleanup(cls.made.stop)
        cls.made.start()

    def setUp(self):
        super().setUp()
        self.cluster = self.folder / 'cluster'
        self.path = f'{PROGRAMS}:{os.environ.get("PATH", "/usr/bin:/bin")}'

    def clean_up(self):
        for client in self.clients:
            client.finish()
        for kind in ('pods', 'persistentvolumeclaims', 'resourcequotas'):
            self.kubectl('delete', kind, '--all', '--wait=true')
        super().clean_up()

    def kubectl(self, *words, given=None):
        done = subprocess.run(['kubectl', '--namespace=agents', *words], env=self.environment(),
                              input=given and json.dumps(given), text=True, capture_output=True,
                              check=False, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, (words, done.stderr))
        return done.stdout

    def named(self, kind):
        kind = {'claims': 'persistentvolumeclaims'}.get(kind, kind)
        return sorted(self.kubectl('get', kind, '--output=jsonpath={.items[*].metadata.name}')
                      .split())

    def set_status(self, status):
        for name in self.pods():
            self.made.call('PATCH', f'{PODS}/{name}/status', {'status': status}, MERGE)


class Sessions(test_kubernetes.SessionsAnywhere, Real):
    def test_a_large_file_passes_in_both_directions(self):
        data = os.urandom(8 << 20)
        (self.work / 'mine').write_bytes(data)
        client, session = self.opened()
        client.prompt(session, 'terminal cat mine mine > made')
        self.end(client)
        self.assertEqual((self.work / 'made').read_bytes(), data + data)
        self.assert_nothing_is_left()

    def test_what_the_server_has_is_what_the_profile_says(self):
        client, _ = self.opened(storage='1g', cpu='2', memory='1g', user='1000', time='1h',
                                resource='example.com/gpu=1')
        pod, = self.made.call('GET', PODS)['items']
        spec, container = pod['spec'], pod['spec']['containers'][0]
        limits = {'cpu': '2', 'memory': '1073741824', 'example.com/gpu': '1'}
        self.assertEqual(container['resources'], {'limits': limits, 'requests': limits})
        self.assertEqual((spec['activeDeadlineSeconds'], spec['automountServiceAccountToken'],
                          spec['securityContext']['runAsUser']), (3600, False, 1000))
        self.assertNotIn('env', container)
        self.end(client)
        self.assert_nothing_is_left()

    def test_a_restricted_namespace_takes_the_pod_of_a_user(self):
        path = '/api/v1/namespaces/agents'
        name = 'pod-security.kubernetes.io/enforce'
        self.made.call('PATCH', path, {'metadata': {'labels': {name: 'restricted'}}}, MERGE)
        self.addCleanup(self.made.call, 'PATCH', path, {'metadata': {'labels': {name: None}}},
                        MERGE)
        error = self.refused('EXEC_COMMAND_FAILED')
        self.assertNames(error['message'], 'Forbidden | PodSecurity | runAsNonRoot')
        client, _ = self.opened(user='1000')
        self.end(client)
        self.assert_nothing_is_left()


class Refusals(Real):
    def test_a_quota_is_used_up(self):
        hard = {'pods': '0'}
        self.kubectl('create', '--filename=-', given={
            'apiVersion': 'v1', 'kind': 'ResourceQuota', 'metadata': {'name': 'small'},
            'spec': {'hard': hard}})
        self.made.call('PATCH', '/api/v1/namespaces/agents/resourcequotas/small/status',
                       {'status': {'hard': hard, 'used': {'pods': '0'}}}, MERGE)
        error = self.refused('EXEC_COMMAND_FAILED', storage='1g')
        self.assertNames(error['message'], 'start (kubectl) | Forbidden | exceeded quota: small')
        self.assert_nothing_is_left()

    def test_a_user_without_rights(self):
        error = self.refused('EXEC_COMMAND_FAILED', context='nobody')
        self.assertNames(error['message'], 'Forbidden | "nobody" cannot create | "agents"')

    def test_a_context_that_does_not_exist(self):
        error = self.refused('EXEC_COMMAND_FAILED', context='nowhere')
        self.assertNames(error['message'], 'context | "nowhere" does not exist')


class Waiting(Real):
    def test_a_pod_waits_and_the_session_begins_when_it_runs(self):
        client, waiting = self.begin(**{'node-selector': 'disk=ssd'})
        client.wait_log('Pending (Unschedulable: 0/1 nodes are available', PATIENCE)
        self.made.call('PATCH', '/api/v1/nodes/n0', {'metadata': {'labels': {'disk': 'ssd'}}},
                       MERGE)
        self.addCleanup(self.made.call, 'PATCH', '/api/v1/nodes/n0',
                        {'metadata': {'labels': {'disk': 'hdd'}}}, MERGE)
        self.assertIn('result', client.response(waiting).value)
        client.prompt(client.new_session(self.work), 'terminal echo made > made')
        self.end(client)
        self.assertEqual((self.work / 'made').read_text(), 'made\n')
        self.assert_nothing_is_left()

    def test_a_pod_that_waits_too_long_is_deleted(self):
        error = self.refused('TIMEOUT_EXCEEDED', storage='1g', **{
            'node-selector': 'disk=no', 'pod-timeout': '2s'})
        self.assertNames(error['message'], '2000 ms | pod-timeout | Unschedulable')
        self.assert_nothing_is_left()

    def test_an_image_that_cannot_be_pulled_ends_the_wait(self):
        client, waiting = self.begin(**{'node-selector': 'disk=no'})
        client.wait_log('Unschedulable', PATIENCE)
        self.set_status(test_kubernetes.NO_IMAGE)
        error = self.failure(client.response(waiting), 'EXEC_NOT_STARTED')
        self.assertNames(error['message'], 'ImagePullBackOff | nothing:1')
        client.finish()
        self.assert_nothing_is_left()

    def test_the_broker_is_killed_while_the_pod_waits(self):
        keys = {'node-selector': 'disk=no', 'storage': '1g'}
        client, _ = self.begin(**keys)
        client.wait_log('Unschedulable', PATIENCE)
        os.kill(client.pid, signal.SIGKILL)
        client.wait()
        left, = self.pods()
        client, session = self.opened(storage='1g')
        client.prompt(session, 'say hello')
        self.assertTrue(processes.wait_until(lambda: len(self.notes()) == 1))
        self.assertNotIn(left, self.pods())
        self.end(client)
        self.assert_nothing_is_left()


class Ends(test_kubernetes.EndsAnywhere, Real):
    pass


if __name__ == '__main__':
    if not cluster.is_there(PROGRAMS):
        sys.exit(f'{PROGRAMS} has no kube-apiserver, kwok and kubectl, or there is no etcd')
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
