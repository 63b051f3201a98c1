#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A Kubernetes cluster for tests: a real etcd and kube-apiserver, and kwok as its only node, "n0".
Everything is below one folder and bound to loopback. The folder has config, the kubeconfig, with
the contexts "test" (an administrator) and "nobody" (who may do nothing), and the namespace
"agents". kwok lets pods run at once; `kubectl exec` starts a process on this machine whose HOME is
the folder's home. Three parts of a cluster are missing: the scheduler is a loop of this file, which
knows node selectors alone; no controller counts quotas or binds claims, and a claim that a pod uses
is not protected; and no container has a root of its own.

    cluster.py PROGRAMS FOLDER    with kube-apiserver, kwok and kubectl in PROGRAMS; prints "ready",
                                  and stops the cluster when its stdin ends
"""

import ctypes
import json
import os
import pathlib
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

PATIENCE = 180
PROGRAMS = ('kube-apiserver', 'kwok', 'kubectl')
PATH = f'{os.environ.get("PATH", "")}:/usr/sbin:/usr/bin'
PR_SET_PDEATHSIG = 1

EXEC = '''apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterExec
metadata:
  name: here
spec:
  execs:
  - local:
      workDir: /
      envs:
      - name: HOME
        value: {dir}/home
      - name: PATH
        value: /usr/local/bin:/usr/bin:/bin
'''
NODE = {'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'n0', 'labels': {'disk': 'hdd'}}}
NAMESPACE = {'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': 'agents'}}
UNSCHEDULABLE = {'status': {'phase': 'Pending', 'conditions': [{
    'type': 'PodScheduled', 'status': 'False', 'reason': 'Unschedulable',
    'message': "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."}]}}


def is_there(programs):
    """Whether the programs are in the folder, and etcd and openssl on this machine."""
    return (all((pathlib.Path(programs) / name).exists() for name in PROGRAMS) and
            all(shutil.which(name, path=PATH) for name in ('etcd', 'openssl')))


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(('127.0.0.1', 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Cluster:
    def __init__(self, programs, folder):
        self.programs = pathlib.Path(programs)
        self.dir = pathlib.Path(folder)
        self.running = []
        self.is_over = threading.Event()
        (self.dir / 'home').mkdir(parents=True)
        self.etcd, self.peer, self.port, self.node = free_ports(4)
        self.token = secrets.token_hex(16)
        nobody = secrets.token_hex(16)
        (self.dir / 'tokens').write_text(
            f'{self.token},admin,1,"system:masters"\n{nobody},nobody,2\n')
        (self.dir / 'exec.yaml').write_text(EXEC.format(dir=self.dir))
        (self.dir / 'config').write_text(json.dumps({
            'apiVersion': 'v1', 'kind': 'Config', 'current-context': 'test',
            'clusters': [{'name': 'here', 'cluster': {
                'server': f'https://127.0.0.1:{self.port}', 'insecure-skip-tls-verify': True}}],
            'users': [{'name': name, 'user': {'token': token}}
                      for name, token in (('admin', self.token), ('nobody', nobody))],
            'contexts': [{'name': name, 'context': {'cluster': 'here', 'user': user}}
                         for name, user in (('test', 'admin'), ('nobody', 'nobody'))]}))

    def call(self, method, path, thing=None, kind='application/json'):
        request = urllib.request.Request(
            f'https://127.0.0.1:{self.port}{path}', method=method,
            data=json.dumps(thing).encode() if thing else None,
            headers={'Authorization': f'Bearer {self.token}', 'Content-Type': kind})
        trust = ssl.create_default_context()
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        with urllib.request.urlopen(request, timeout=PATIENCE, context=trust) as answer:
            return json.load(answer)

    def spawn(self, *words):
        with open(self.dir / f'{pathlib.Path(words[0]).name}.log', 'wb') as log:
            self.running.append(subprocess.Popen(
                words, cwd=self.dir, env={'PATH': PATH, 'HOME': str(self.dir)},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent))

    def wait(self, what, is_so):
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            if time.monotonic() > deadline or any(one.poll() is not None for one in self.running):
                logs = [path.read_text(errors='replace')[-3000:] for path in self.dir.glob('*.log')]
                raise RuntimeError('\n'.join([f'Kubernetes: not {what}', *logs]))
            time.sleep(0.2)

    def answers(self, path, is_so=lambda answer: True):
        try:
            return is_so(self.call('GET', path))
        except (OSError, ValueError):
            return False

    def start(self):
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2',
                        '-subj', '/CN=test', '-keyout', 'key', '-out', 'certificate'], cwd=self.dir,
                       check=True, capture_output=True, timeout=PATIENCE)
        here = 'http://127.0.0.1'
        self.spawn('etcd', '--data-dir', f'{self.dir}/etcd', '--unsafe-no-fsync',
                   f'--listen-client-urls={here}:{self.etcd}',
                   f'--advertise-client-urls={here}:{self.etcd}',
                   f'--listen-peer-urls={here}:{self.peer}',
                   f'--initial-advertise-peer-urls={here}:{self.peer}',
                   f'--initial-cluster=default={here}:{self.peer}')
        self.spawn(f'{self.programs}/kube-apiserver', f'--etcd-servers={here}:{self.etcd}',
                   '--bind-address=127.0.0.1', f'--secure-port={self.port}',
                   '--advertise-address=127.0.0.1', f'--cert-dir={self.dir}/certificates',
                   '--service-account-issuer=https://test', '--service-account-key-file=key',
                   '--service-account-signing-key-file=key', '--token-auth-file=tokens',
                   '--authorization-mode=RBAC', '--service-cluster-ip-range=10.0.0.0/24',
                   '--kubelet-preferred-address-types=InternalIP',
                   '--disable-admission-plugins=ServiceAccount,StorageObjectInUseProtection')
        self.wait('an API server that works', lambda: self.answers('/api/v1/namespaces/default'))
        self.call('POST', '/api/v1/namespaces', NAMESPACE)
        self.call('POST', '/api/v1/nodes', NODE)
        self.spawn(f'{self.programs}/kwok', f'--kubeconfig={self.dir}/config',
                   f'--config={self.dir}/exec.yaml', '--manage-all-nodes=true',
                   '--node-ip=127.0.0.1', f'--node-port={self.node}',
                   f'--server-address=127.0.0.1:{self.node}', '--tls-cert-file=certificate',
                   '--tls-private-key-file=key')
        self.wait('a node that is ready', lambda: self.answers('/api/v1/nodes/n0', lambda node: any(
            one['type'] == 'Ready' and one['status'] == 'True'
            for one in node['status'].get('conditions', []))))
        threading.Thread(target=self.schedule, daemon=True).start()

    def schedule(self):
        while not self.is_over.wait(0.2):
            try:
                labels = self.call('GET', '/api/v1/nodes/n0')['metadata']['labels']
                for pod in self.call('GET', '/api/v1/pods?fieldSelector=spec.nodeName%3D')['items']:
                    self.place(pod, labels)
            except OSError:
                pass  # it was deleted meanwhile

    def place(self, pod, labels):
        path = f'/api/v1/namespaces/agents/pods/{pod["metadata"]["name"]}'
        if pod['spec'].get('nodeSelector', {}).items() <= labels.items():
            self.call('POST', f'{path}/binding', {
                'apiVersion': 'v1', 'kind': 'Binding',
                'metadata': {'name': pod['metadata']['name']},
                'target': {'apiVersion': 'v1', 'kind': 'Node', 'name': 'n0'}})
        elif 'conditions' not in pod['status']:
            self.call('PATCH', f'{path}/status', UNSCHEDULABLE, 'application/merge-patch+json')

    def stop(self):
        self.is_over.set()
        for one in reversed(self.running):
            one.terminate()
        for one in self.running:
            one.wait(PATIENCE)
        self.running = []


def main():
    cluster = Cluster(sys.argv[1], sys.argv[2])
    try:
        cluster.start()
        print('ready', flush=True)
        sys.stdin.read()
    finally:
        cluster.stop()


if __name__ == '__main__':
    main()
