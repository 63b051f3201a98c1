# SPDX-License-Identifier: MIT
"""
The limits of a profile on the emulated machine, where cgroup v2 has every controller. The tests of
the limits run there as root and as an ordinary user, without a cell and in one. No case may skip,
and no cgroup may be left.
"""

import re
import shutil
import sys

from package import ROOT, Failed

sys.path[1:1] = [str(ROOT / 'tests/support/tools')]

import run_tests  # noqa: E402

PACKAGES = ['libcmocka-dev', 'python3-minimal', 'libpython3-stdlib']
PYTHON = 'python3.11'
UNIT = 'tests/unit/test_limit_group'
FOLDER = 'opt/acp-broker/tests/integration'

UNIT_COMMAND = 'test_limit_group'
TEST_COMMAND = f'python3 -B /{FOLDER}/test_%s.py'

# Title, who runs it, command. The titles are in the output.
RUNS = (
    ('the unit program, root', 'root', UNIT_COMMAND),
    ('the unit program, user', 'user', UNIT_COMMAND),
    ('no cell, root', 'root', TEST_COMMAND % 'limits'),
    ('no cell, user', 'user', TEST_COMMAND % 'limits'),
    ('a cell, root', 'root', TEST_COMMAND % 'limits_root'),
    ('a cell, user', 'user', TEST_COMMAND % 'limits_confined'),
)

# The user's cgroups are those that systemd and its user manager make. The user gets none from root
# but user@1000.service.
SCRIPT = '''cd /sys/fs/cgroup || exit
all='+memory +pids +cpu'
root=system.slice/ssh.service
own=user.slice/user-1000.slice/user@1000.service
user=$own/login.scope
mkdir -p $root $own
for folder in . system.slice user.slice user.slice/user-1000.slice; do
    echo "$all" >$folder/cgroup.subtree_control
done
chown 1000:1000 $own $own/cgroup.procs $own/cgroup.subtree_control $own/cgroup.threads
su {user} -c "mkdir $user; echo '$all' >$own/cgroup.subtree_control"
run() {{ # TITLE USER CGROUP COMMAND
    echo "begin of $1"
    (echo 0 >$3/cgroup.procs && cd / && exec su $2 -c "export ACP_WALL=40s \\
        PATH=/usr/local/bin:/usr/bin:/bin \\
        ACP_BROKER=/usr/local/bin/acp-broker ACP_SCRIPTED_AGENT=/usr/local/bin/scripted-agent
        $4")
    echo "status of $1: $?"
    find . -name 'acp-broker-*'
    echo "end of $1"
}}
'''


def script(user):
    """For root; runs everything."""
    return SCRIPT.format(user=user) + ''.join(
        f"run '{title}' {user if who == 'user' else who} ${who} '{command}'\n"
        for title, who, command in RUNS)


def put_programs(image, source, place, root):
    """Python, the tests and the unit program, into the root folder of the machine."""
    for program, name in ((root / 'usr/bin' / PYTHON, 'usr/bin/python3'),
                          (place / UNIT, 'usr/local/bin/test_limit_group')):
        shutil.copy(program, image / name)
    shutil.copytree(root / 'usr/lib' / PYTHON, image / 'usr/lib' / PYTHON, symlinks=True)
    shutil.copytree(source / 'tests/integration', image / FOLDER)


def check(told):
    """Each program has run all its cases, and the search after it has found no cgroup."""
    wrong = []
    for title, _, _ in RUNS:
        found = re.search(f'^begin of {title}$(.*)^status of {title}: ([0-9]+)$'
                          f'(.*)^end of {title}$', told, re.M | re.S)
        output, status, left = found.groups() if found else ('', 'none', '')
        passed, failed, skipped = run_tests.count_cases('OK' if status == '0' else 'FAIL', output)
        print(f'limits, {title}: {passed} passed, {failed} failed, {skipped} skipped')
        if passed == 0 or failed or skipped or left.strip():
            wrong.append(f'{title}{": left " + " ".join(left.split()) if left.strip() else ""}')
    if wrong:
        raise Failed(f'the limits are wrong in the machine: {"; ".join(wrong)}')
