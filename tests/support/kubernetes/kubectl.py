#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A stand-in for kubectl and a cluster, for tests on machines without one. It takes exactly the words
with which the broker calls kubectl, and refuses others. The folder of $KUBECONFIG has the cluster:
pods/NAME.json and claims/NAME.json. A test edits the status in them, and writes these files:

    refusal    what the API server says when it refuses a pod
    pending    the status of new pods, which otherwise run at once
    stuck      deleted pods stay Terminating, as on a node that is lost
    log        one line for each call: its words

A pod is no more than a mark, IN_POD=NAME, in the environment of its processes, which run on this
machine. Its volume is the folder at its mount path.

The outputs are those of kubectl 1.33: documented, or printed by a real one.
"""

import json
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import sys
import time

CLUSTER = pathlib.Path(os.environ['KUBECONFIG']).parent
PODS, CLAIMS = CLUSTER / 'pods', CLUSTER / 'claims'
SELECTOR = '--selector=acp-broker/sandbox='
RUNNING = {'phase': 'Running',
           'containerStatuses': [{'name': 'agent', 'state': {'running': {}}, 'ready': True}]}


def fail(text, status=1):
    print(text, file=sys.stderr)
    sys.exit(status)


def text_of(name):
    path = CLUSTER / name
    return path.read_text() if path.exists() else ''


def write(path, thing):
    """As a whole: another call may read it meanwhile."""
    part = path.with_name(f'.{path.name}.{os.getpid()}')
    part.write_text(json.dumps(thing))
    part.rename(path)


def mount_of(pod):
    return pathlib.Path(pod['spec']['containers'][0]['volumeMounts'][0]['mountPath'])


def is_claimed(pod):
    return 'persistentVolumeClaim' in pod['spec']['volumes'][0]


def make_pod(pod):
    if text_of('refusal'):
        fail(f'Error from server (Forbidden): error when creating "STDIN": {text_of("refusal")}')
    name = pod['metadata'].pop('generateName') + secrets.token_hex(3)[:5]
    status = json.loads(text_of('pending') or json.dumps(RUNNING))
    pod['metadata'].update(name=name, creationTimestamp=f'{time.time_ns():020d}')
    pod['status'] = status
    if not is_claimed(pod):
        shutil.rmtree(mount_of(pod), ignore_errors=True)
    mount_of(pod).mkdir(parents=True, exist_ok=True)
    write(PODS / f'{name}.json', pod)
    print(name)


def make_claim(claim):
    name = claim['metadata']['name']
    if (CLAIMS / f'{name}.json').exists():
        fail(f'Error from server (AlreadyExists): error when creating "STDIN": '
             f'persistentvolumeclaims "{name}" already exists')
    write(CLAIMS / f'{name}.json', claim)
    print(name)


def create(words):
    if words != ['--filename=-', '--output=go-template={{.metadata.name}}{{"\\n"}}']:
        fail(f'error: unknown words {words}')
    given = json.load(sys.stdin)
    for one in given['items'] if given['kind'] == 'List' else [given]:
        {'Pod': make_pod, 'PersistentVolumeClaim': make_claim}[one['kind']](one)


def selected(kinds, word):
    if not word.startswith(SELECTOR):
        fail(f'error: no selector in {word}')
    folders = {'pods': [PODS], 'pods,persistentvolumeclaims': [PODS, CLAIMS]}[kinds]
    for path in sorted(one for folder in folders for one in folder.glob('*.json')):
        try:
            thing = json.loads(path.read_text())
        except FileNotFoundError:
            continue
        if thing['metadata']['labels']['acp-broker/sandbox'] == word[len(SELECTOR):]:
            yield path, thing


def get(words):
    kinds, selector, output = words
    if output != '--output=json':
        fail(f'error: unknown words {words}')
    print(json.dumps({'apiVersion': 'v1', 'kind': 'List', 'metadata': {'resourceVersion': ''},
                      'items': [thing for _, thing in selected(kinds, selector)]}, indent=4))


def processes_of(name):
    for path in pathlib.Path('/proc').glob('[0-9]*'):
        try:
            if f'IN_POD={name}'.encode() in (path / 'environ').read_bytes().split(b'\0'):
                yield int(path.name)
        except OSError:
            pass


def kill_all(name):
    """Until none is left: one may have forked meanwhile."""
    while left := list(processes_of(name)):
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)


def delete(words):
    kinds, selector, *options = words
    if options != ['--wait=true', '--interactive=false']:
        fail(f'error: unknown words {words}')
    for path, thing in list(selected(kinds, selector)):
        name = thing['metadata']['name']
        thing['metadata']['deletionTimestamp'] = 'now'
        write(path, thing)
        while thing['kind'] == 'Pod' and (CLUSTER / 'stuck').exists():
            time.sleep(0.1)
        if thing['kind'] == 'Pod':
            kill_all(name)
        if thing['kind'] == 'Pod' and not is_claimed(thing):
            shutil.rmtree(mount_of(thing), ignore_errors=True)
        path.unlink(missing_ok=True)
        kind = {'Pod': 'pod'}.get(thing['kind'], 'persistentvolumeclaim')
        print(f'{kind} "{name}" deleted')


def run(words):
    stdin, container, name, dashes, *argv = words
    if (stdin, container, dashes) != ('--stdin', '--container=agent', '--'):
        fail(f'error: unknown words {words}')
    path = PODS / f'{name}.json'
    if not path.exists():
        fail(f'Error from server (NotFound): pods "{name}" not found')
    pod = json.loads(path.read_text())
    if pod['status']['phase'] != 'Running':
        fail('error: cannot exec into a container in a completed pod; current phase is '
             f'{pod["status"]["phase"]}')
    env = {'PATH': '/usr/local/bin:/usr/bin:/bin', 'HOME': str(CLUSTER / 'home'),
           'HOSTNAME': name, 'KUBERNETES_SERVICE_HOST': '10.96.0.1', 'IN_POD': name}
    process = subprocess.Popen(argv, env=env, cwd='/', start_new_session=True)
    status = process.wait()
    if status:
        fail(f'command terminated with exit code {status % 256}', status % 256)


def main():
    context, namespace, verb, *words = sys.argv[1:]
    if (context, namespace) != ('--context=test', '--namespace=agents'):
        fail(f'error: context {context} or namespace {namespace} does not exist')
    for folder in (PODS, CLAIMS, CLUSTER / 'home'):
        folder.mkdir(exist_ok=True)
    with open(CLUSTER / 'log', 'a', encoding='utf-8') as log:
        log.write(' '.join([verb, *words]).replace('\n', ' ') + '\n')
    {'create': create, 'get': get, 'delete': delete, 'exec': run}[verb](words)


if __name__ == '__main__':
    main()
