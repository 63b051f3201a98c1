# SPDX-License-Identifier: MIT
"""
Which system calls a session makes, and in which process: these are the calls that can be made to
fail.
"""

import re

from faults_trial import Fault, Trial, judge

# The first calls of main. The dynamic linker makes all calls before them, so they are not ours.
OURS = re.compile(r'"/proc/self/fd/2"|SIGPIPE')
CALL = re.compile(r'(?:(\d+) +)?([a-z][a-z0-9_]*)\(')

DESCRIPTORS = ('EMFILE', 'ENFILE')
# The errors to inject: the system may have no more of a resource, or a device may refuse.
ERRORS = {
    'chdir': ('EIO',),
    'clone': ('EAGAIN', 'ENOMEM'),
    'clone3': ('EAGAIN', 'ENOMEM'),
    'close_range': ('ENOSYS',),
    'dup2': ('EMFILE',),
    'dup3': ('EMFILE',),
    'epoll_create1': DESCRIPTORS,
    'epoll_ctl': ('ENOMEM', 'ENOSPC'),
    'eventfd2': DESCRIPTORS,
    'execve': ('ENOMEM', 'EIO', 'EAGAIN'),
    'fcntl': ('EMFILE',),
    'fork': ('EAGAIN', 'ENOMEM'),
    'fstat': ('EIO',),
    'fstatfs': ('EIO',),
    'getcwd': ('ENOENT',),
    'getrandom': ('ENOSYS',),
    'ioctl': ('EIO',),
    'memfd_create': ('EMFILE', 'ENOMEM'),
    'newfstatat': ('EIO',),
    'openat': ('EMFILE', 'EIO', 'ENOMEM'),
    'openat2': ('EMFILE', 'EIO', 'EAGAIN'),
    'pidfd_open': DESCRIPTORS,
    'pipe2': DESCRIPTORS,
    'poll': ('ENOMEM',),
    'ppoll': ('ENOMEM',),
    'prctl': ('EPERM',),
    'pread64': ('EIO',),
    'read': ('EIO',),
    'recvfrom': ('ENOMEM',),
    'recvmsg': ('ENOMEM',),
    'sendmsg': ('ENOMEM', 'ENOBUFS'),
    'sendto': ('ENOMEM',),
    'setsid': ('EPERM',),
    'signalfd4': DESCRIPTORS,
    'socketpair': ('EMFILE', 'ENOMEM'),
    'timerfd_create': DESCRIPTORS,
    'vfork': ('EAGAIN', 'ENOMEM'),
    'write': ('ENOSPC', 'EIO'),
    'writev': ('ENOSPC', 'EIO'),
}
# Calls that a signal may interrupt; neither the editor nor the agent may notice that.
INTERRUPTED = {name: ('EINTR',) for name in (
    'epoll_wait', 'poll', 'ppoll', 'read', 'recvfrom', 'recvmsg', 'sendmsg', 'sendto', 'wait4',
    'write', 'writev')}
# Writes that take no bytes: this time (retval=0), or until there is room again (EAGAIN).
SHORT_WRITES = {'writev': ('error=EAGAIN', 'retval=0'), 'sendmsg': ('error=EAGAIN',)}
# Other orders of events: one call of one process takes longer than everything else.
SLOWNESS = {name: ('delay_enter=50000', 'delay_exit=50000') for name in (
    'clone', 'clone3', 'close', 'execve', 'poll', 'prctl', 'read', 'recvfrom', 'recvmsg',
    'sendmsg', 'sendto', 'wait4', 'write', 'writev')}
UNKILLABLE = ('restart_syscall',)  # not a call of its own: the kernel continues an interrupted one


SESSIONS = 3  # sessions that a survey looks at


class Survey:
    """
    The calls of an undisturbed session, in order, for each traced process. How often a process
    waits or wakes up depends on timing. So the survey looks at further sessions to find the calls
    that every session makes.
    """

    def __init__(self, where, skip_start=False):
        self.where, self.skip_start = where, skip_start
        self.processes, self.skipped = self.look()
        self.others = [self.look()[0] for _ in range(SESSIONS - 1)]

    def look(self):
        """(calls of each process, how often each call was made before ours) in one session."""
        trial = Trial(Fault(self.where, quiet=True)).run()
        wrong = judge(trial)
        if wrong:
            raise AssertionError(f'a session that nothing disturbs: {wrong}')
        processes, skipped = {}, {}
        ours = not self.skip_start
        for line in trial.outcome.log.splitlines():
            match = CALL.match(line)
            if not match:
                continue
            ours = ours or OURS.search(line) is not None
            name = match.group(2)
            if not ours:
                skipped[name] = skipped.get(name, 0) + 1
                continue
            processes.setdefault(match.group(1), []).append(name)
        return processes, skipped

    def is_sure(self, name, number):
        """Whether in each of the other sessions, too, some process made as many of these calls."""
        made = number - self.skipped.get(name, 0)
        return all(any(calls.count(name) >= made for calls in processes.values())
                   for processes in self.others)

    def numbers(self, name, most):
        """
        Up to `most` numbers of calls with this name at which to inject a fault, counted as strace
        does.
        """
        total = max((calls.count(name) for calls in self.processes.values()), default=0)
        first = self.skipped.get(name, 0) + 1
        return [first + place for place in spread(total, most)]

    def faults(self, table, most, after='', quiet=False):
        """
        One fault for each way in which each call can fail, at each selected time; `after` is what
        strace does to the later calls.
        """
        return [Fault(self.where, f'{name}:{inject(way)}:when={number}{after}', quiet=quiet)
                for name, ways in sorted(table.items()) for way in ways
                for number in self.numbers(name, most)]

    def storm(self, names, way):
        """Every second call with one of these names fails in this way."""
        return Fault(self.where, *(f'{name}:{inject(way)}:when={self.numbers(name, 2)[0]}+2'
                                   for name in names if self.numbers(name, 2)), quiet=True)

    def stages(self, most):
        """Faults that kill each process, at up to `most` places of its life."""
        found = {}
        for calls in self.processes.values():
            counted = dict(self.skipped)
            places = []
            for name in calls:
                counted[name] = counted.get(name, 0) + 1
                if name not in UNKILLABLE:
                    places.append((name, counted[name]))
            for place in spread(len(places), most):
                found[places[place]] = None
        return [Fault(self.where, f'{name}:signal=KILL:when={number}',
                      is_sure=self.is_sure(name, number)) for name, number in found]


def inject(way):
    return way if '=' in way else f'error={way}'


def spread(total, most):
    """Places 0 to total - 1: all of them, or evenly chosen ones with the first and the last."""
    if total <= most:
        return list(range(total))
    return sorted({round(index * (total - 1) / (most - 1)) for index in range(most)})
