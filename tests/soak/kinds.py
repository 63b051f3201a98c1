# SPDX-License-Identifier: MIT
"""
Kinds of repositories. Each kind says which tools make it, which edits its turns have besides the
common ones, and where a session's two sides differ today from a plain clone with the same edits.
"""

import dataclasses
import shutil
import subprocess

BASE = r'''
set -e
base() {
    mkdir -p h t
    for i in 0 1 2 3 4 5; do echo $i >h/$i; echo $i >t/$i; done
    seq 1 40 >both
    echo 'ignored*' >.gitignore
}
first() {
    git init -q "$@" .
    base
    git add -A
    git commit -qm first
}
source() {
    mkdir source
    (cd source; first; seq 1 41 >both; git commit -qam second
     git config uploadpack.allowFilter true)
}
diverge() {
    git checkout -q -b other; echo theirs >clash; git add -A; git commit -qm theirs
    git checkout -q main; echo ours >clash; git add -A; git commit -qm ours
}
'''

# Each turn has an edit of the user's and one of the agent's; {n} is the turn's number.
HERE = ['echo {n} >>h/0', 'echo new >h/new', 'rm h/1', "sed -i '5s/$/ here/' both",
        'mv h/2 h/moved',
        'chmod +x h/3', 'mkdir -p h/deep/er; echo x >h/deep/er/f', 'rm -r h/deep; echo {n} >>h/0',
        'echo {n} >>h/new', 'ln -s new h/link']
THERE = ['echo {n} >>t/0', 'rm t/1', 'echo new >t/new', 'mv t/2 t/moved', 'echo {n} >ignored',
         "sed -i '35s/$/ there/' both", 'chmod +x t/3', 'mkdir -p t/deep/er; echo x >t/deep/er/f',
         'ln -s new t/link', 'rm -r t/deep; echo {n} >>t/new']
COMMITTED = (4, 8)  # the user commits everything in these turns


@dataclasses.dataclass
class Kind:
    make: str                    # a script of sh, in an empty folder
    work: str = 'work'           # the workspace, below that folder
    here: str = ''               # an edit of each turn
    there: str = ''
    needs: str = ''              # a program
    commits: bool = True         # the user commits in some turns
    differs: dict = dataclasses.field(default_factory=dict)  # 'SIDE WHAT': why




def without_history(why):
    return dict.fromkeys(('there status', 'there log', 'there commit'), why)


FILTERED = 'the key stays here, so git there takes the file for unchanged, and no commit has it'
STATES = 'what git is in the middle of stays here: there the files are edits of HEAD'
KINDS = {
    'plain': Kind('mkdir work; cd work; first'),
    'no-repository': Kind('mkdir work; cd work; base'),
    'empty': Kind('mkdir work; cd work; git init -q; base'),
    'detached': Kind('mkdir work; cd work; first; git checkout -q --detach; echo 1 >>both; '
                     'git commit -qam more'),
    'submodule': Kind('source; mkdir work; cd work; first; '
                      'git submodule --quiet add ../source lib; git commit -qm module',
                      here='echo {n} >>lib/h/0', there='echo {n} >>lib/t/0'),
    'submodule-not-there': Kind('source; mkdir made; cd made; first; '
                                'git submodule --quiet add ../source lib; git commit -qm module; '
                                'cd ..; git clone -q made work'),
    'nested': Kind('mkdir work; cd work; first; mkdir inner; cd inner; first',
                   here='echo {n} >>inner/h/0', there='echo {n} >>inner/t/0'),
    'lfs': Kind("mkdir work; cd work; git init -q; git lfs install --local >/dev/null; "
                "git lfs track '*.bin' >/dev/null; first; "
                "seq 1 20000 >h.bin; seq 1 30000 >t.bin; git add -A; git commit -qm large",
                here='seq 1 2000{n} >h.bin', there='seq 1 3000{n} >t.bin', needs='git-lfs'),
    'git-crypt': Kind('[ -e "$SHARED/key" ] || git-crypt keygen "$SHARED/key" >/dev/null; '
                      'mkdir work; cd work; first; git-crypt unlock "$SHARED/key"; '
                      "echo '*.key filter=git-crypt diff=git-crypt' >.gitattributes; "
                      'echo secret >h.key; echo secret >t.key; git add -A; git commit -qm secrets',
                      here='echo {n} >>h.key', there='echo {n} >>t.key', needs='git-crypt',
                      differs={'there status': FILTERED, 'there commit': FILTERED}),
    'worktree': Kind('mkdir main; cd main; first; git worktree add -q ../work -b side'),
    'bare-worktree': Kind('source; git clone -q --bare source bare.git; '
                          'git -C bare.git worktree add -q ../work -b side'),
    'sparse': Kind('mkdir work; cd work; first; mkdir out; echo 1 >out/o; git add -A; '
                   'git commit -qm out; git sparse-checkout set h t'),
    'partial': Kind('source; git clone -q --filter=blob:none "file://$PWD/source" work'),
    'shallow': Kind('source; git -C source commit -q --allow-empty -m third; '
                    'git clone -q --depth 2 "file://$PWD/source" work'),
    'sha256': Kind('mkdir work; cd work; first --object-format=sha256',
                   differs=without_history('the store has SHA-1 alone; the session says so')),
    'reftable': Kind('mkdir work; cd work; first --ref-format=reftable', needs='reftable'),
    'subfolder': Kind('mkdir work; cd work; first; mkdir sub; cd sub; base; git add -A; '
                      'git commit -qm sub', work='work/sub'),
    'monorepo': Kind('mkdir work; cd work; first; '
                     'for i in $(seq 0 499); do mkdir -p many/$i; done; '
                     "awk 'BEGIN { for (i = 0; i < 50000; i++) { f = \"many/\" i % 500 \"/\" i; "
                     "print i >f; close(f) } }'; git add -A; git commit -qm many",
                     here='echo {n} >>many/{n}/{n}', there='echo {n} >>many/2{n}/2{n}'),
    'alternates': Kind('source; git clone -q --shared source work'),
    'rebasing': Kind('mkdir work; cd work; first; diverge; git checkout -q other; '
                     'git rebase -q main >/dev/null 2>&1 || true', commits=False,
                     differs={'there status': STATES}),
    'merging': Kind('mkdir work; cd work; first; diverge; git merge -q other >/dev/null || true',
                    commits=False, differs={'there status': STATES, 'there commit': STATES}),
    'crlf': Kind(r"mkdir work; cd work; git init -q; git config core.autocrlf true; "
                 r"printf '*.txt text eol=crlf\n*.sh text eol=lf\n' >.gitattributes; "
                 r"printf 'a\r\nb\r\n' >h.txt; printf 'a\r\nb\r\n' >t.txt; first",
                 here=r"printf '{n}\r\n' >>h.txt", there=r"printf '{n}\r\n' >>t.txt"),
    'hooks': Kind("mkdir work; cd work; first; mkdir hooks; "
                  "printf '#!/bin/sh\necho hooked >>hooked\ngit add hooked\n' >hooks/pre-commit; "
                  "chmod +x hooks/pre-commit; git add -A; git commit -qm hooks; "
                  "git config core.hooksPath hooks",
                  differs={'there commit': 'the hooks that the user has set up stay here'}),
    'symlinks': Kind('mkdir work; cd work; first; '
                     'for i in $(seq 0 99); do ln -s ../h/$i l$i; done; '
                     'ln -s nowhere lost; ln -s h folder; ln -s . self; git add -A; '
                     'git commit -qm links',
                     here='ln -sfn t/{n} l{n}', there='ln -sfn h/{n} l5{n}'),
    'case': Kind('mkdir work; cd work; first; for i in readme README Readme; do echo $i >$i; done; '
                 'mkdir d D; echo 1 >d/f; echo 2 >D/F; git add -A; git commit -qm case',
                 here='echo {n} >>README; echo {n} >>d/f',
                 there='echo {n} >>readme; echo {n} >>D/F'),
}


def is_possible(kind):
    """Whether the programs that make it are installed."""
    if kind.needs == 'reftable':
        done = subprocess.run(['git', 'init', '-h'], capture_output=True, text=True, check=False)
        return '--ref-format' in done.stdout
    return not kind.needs or bool(shutil.which(kind.needs))
