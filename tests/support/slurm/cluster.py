#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A Slurm cluster of one node for tests. It has munged, slurmctld and slurmd with everything below one
folder, bound to loopback, and needs root. The folder has slurm.conf, to which SLURM_CONF must lead,
and home, which is the home of all steps. There are two partitions: "main", and "down", in which
jobs stay pending.

    cluster.py FOLDER            prints "ready"; stops the cluster when its stdin ends
    cluster.py --run COMMAND     runs COMMAND with such a cluster, and exits with its status;
                                 77 if there is no Slurm or if it is not root
"""

import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE = 180
DAEMONS = ('munged', 'slurmctld', 'slurmd')
COMMANDS = ('sbatch', 'srun', 'squeue', 'scancel', 'sinfo')
PATH = f'{os.environ.get("PATH", "")}:/usr/sbin:/usr/bin'
PR_SET_PDEATHSIG = 1
SKIPPED = 77  # for meson

CONFIGURATION = '''ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge.sock
CredType=cred/munge
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.pid
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2
MpiDefault=none
ReturnToService=2
TaskProlog={dir}/prolog
SlurmdTimeout=0
MessageTimeout=100
TCPTimeout=30
BatchStartTimeout=100
KillWait=2
SlurmdParameters=config_overrides
NodeName=n0 NodeHostname={host} NodeAddr=127.0.0.1 CPUs=512 State=UNKNOWN
PartitionName=main Nodes=n0 Default=YES MaxTime=INFINITE State=UP
PartitionName=down Nodes=n0 MaxTime=INFINITE State=DOWN
'''


def is_there():
    """Whether this machine has the programs of Slurm."""
    return all(shutil.which(name, path=PATH) for name in DAEMONS + COMMANDS)


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
    def __init__(self, folder):
        self.dir = pathlib.Path(folder)
        self.running = []
        self.env = {'PATH': PATH, 'SLURM_CONF': str(self.dir / 'slurm.conf')}
        for name in ('state', 'spool', 'home'):
            (self.dir / name).mkdir(parents=True)
        key = self.dir / 'munge.key'
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        prolog = self.dir / 'prolog'
        prolog.write_text(f'#!/bin/sh\necho "export HOME={self.dir}/home"\n')
        prolog.chmod(0o755)
        controller, daemon = free_ports(2)
        (self.dir / 'slurm.conf').write_text(CONFIGURATION.format(
            host=socket.gethostname().split('.')[0], dir=self.dir, controller=controller,
            daemon=daemon))

    def command(self, *words):
        return subprocess.run(words, env=self.env, stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, check=False, timeout=PATIENCE)

    def spawn(self, *words):
        with open(self.dir / f'{words[0]}.log', 'wb') as log:
            self.running.append(subprocess.Popen(
                words, cwd=self.dir, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                preexec_fn=die_with_parent))

    def wait(self, what, is_so):
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            if time.monotonic() > deadline or any(one.poll() is not None for one in self.running):
                logs = [path.read_text(errors='replace')[-2000:] for path in self.dir.glob('*.log')]
                raise RuntimeError('\n'.join([f'Slurm: not {what}', *logs]))
            time.sleep(0.1)

    def start(self):
        self.spawn('munged', '--foreground', '--force', '--key-file', f'{self.dir}/munge.key',
                   '--socket', f'{self.dir}/munge.sock', '--pid-file', f'{self.dir}/munged.pid',
                   '--log-file', f'{self.dir}/munged.log', '--seed-file', f'{self.dir}/munge.seed')
        self.wait('a socket of munged', (self.dir / 'munge.sock').exists)
        self.spawn('slurmctld', '-D', '-f', self.env['SLURM_CONF'])
        self.spawn('slurmd', '-D', '-N', 'n0', '-f', self.env['SLURM_CONF'])
        self.wait('an idle node', lambda: self.command(
            'sinfo', '--noheader', '--partition=main', '--format=%T').stdout.strip() == 'idle')

    def stop(self):
        if len(self.running) == len(DAEMONS):
            self.command('scancel', '--me')
            self.wait('without jobs', lambda: not self.command('squeue', '--noheader').stdout)
        for one in reversed(self.running):
            one.terminate()
            one.wait(PATIENCE)
        self.running = []


def serve(folder, use):
    """Starts the cluster, calls `use`, and stops the cluster."""
    made = Cluster(folder)
    try:
        made.start()
        return use(made)
    finally:
        made.stop()


def run(words):
    if not is_there() or os.geteuid() != 0:
        print('cluster.py: Slurm is not installed, or this is not root', file=sys.stderr)
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix='acp-slurm-', ignore_cleanup_errors=True) as folder:
        return serve(folder, lambda made: subprocess.run(
            words, env={**os.environ, **made.env}, check=False).returncode)


def wait_for_end(_):
    print('ready', flush=True)
    sys.stdin.read()
    return 0


def main():
    if sys.argv[1] == '--run':
        sys.exit(run(sys.argv[2:]))
    sys.exit(serve(sys.argv[1], wait_for_end))


if __name__ == '__main__':
    main()
