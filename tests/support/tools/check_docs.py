#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Checks that the map (docs/*.md, docs/decisions/) is true: files, links, folders, stages, keys."""

import pathlib
import re
import sys

from check_layers import LAYERS

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'bench'))
import plots  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
README = ROOT / 'README.md'
DOCS = ROOT / 'docs'
MAP = DOCS / 'architecture.md'

COLUMNS_MAX = 180
GLOSSARY_WORDS = 20
README_LINES_MAX = 150
EXAMPLE = 'NAME'  # stands for a name of the reader's choice

CODE = re.compile(r'`([^`\n]+)`')
FENCE = re.compile(r'^```.*?^```$', re.M | re.S)
LINK = re.compile(r'\]\(([^)#\s]*)(#[^)\s]*)?\)')
HEADING = re.compile(r'^#+ (.*)$', re.M)
NAME = re.compile(r'(?:struct |enum )?[a-z][a-z0-9]*(?:[._][a-z0-9_]+)+|[A-Z]+_[A-Z_]+')
WORD = re.compile(r'\w+')
PATH = re.compile(r'(?:base|acp|providers|sync|broker|tests|docs)/[\w./-]*\w/?')
STAGE = re.compile(r'^\t(STAGE_[A-Z]+),\s+//', re.M)
ROW = re.compile(r'^\| (.*) \|$', re.M)


def pages():
    """The pages of the map; (path, text)."""
    written = ('errors.md', 'daemons.md')  # their tables hold whole messages
    paths = sorted(DOCS.glob('*.md')) + sorted(DOCS.glob('decisions/*.md'))
    return [(path, path.read_text()) for path in paths if path.name not in written]


def name_of(path):
    return path.relative_to(ROOT)


def section(text, heading):
    """The text below a heading, up to the next heading of its level."""
    return text.split(f'\n## {heading}\n', 1)[1].split('\n## ', 1)[0]


def rows(text):
    """The rows of the tables of a text, as cells; without their heads."""
    cells = [[cell.strip() for cell in row.split(' | ')] for row in ROW.findall(text)]
    return cells[1:]


def missing_files():
    """Names of files and folders, from the root, that do not exist."""
    for path, text in pages():
        for code in CODE.findall(FENCE.sub('', text)):
            if PATH.fullmatch(code) and EXAMPLE not in code and not (ROOT / code).exists():
                yield f'{name_of(path)}: there is no {code}'


def missing_names():
    """Names of functions, fields and constants that no source has."""
    known = set()
    for folder in ('base', 'acp', 'providers', 'sync', 'broker', 'tests'):
        for path in (ROOT / folder).rglob('*.*'):
            if path.suffix in ('.c', '.h', '.sh', '.py') and 'node_modules' not in path.parts:
                known.update(WORD.findall(path.read_text()))
    for path, text in pages():
        for code in CODE.findall(FENCE.sub('', text)):
            is_name = NAME.fullmatch(code) and EXAMPLE not in code
            if is_name and not set(WORD.findall(code)) <= known:
                yield f'{name_of(path)}: no source has {code}'


def anchors(text):
    """The anchors that forges make of headings."""
    for heading in HEADING.findall(FENCE.sub('', text)):
        yield '#' + re.sub(r'[^\w -]', '', heading.lower()).replace(' ', '-')


def broken_links():
    """Links to pages, or to headings in them, that do not exist."""
    for path, text in [*pages(), (README, README.read_text())]:
        for target, anchor in LINK.findall(FENCE.sub('', text)):
            if '://' in target:
                continue
            place = path.parent / target if target else path
            if not place.exists():
                yield f'{name_of(path)}: there is no {target}'
            elif anchor and anchor not in anchors(place.read_text()):
                yield f'{name_of(path)}: {target} has no heading for {anchor}'


def untold_pages():
    """Pages to which no other page has a link."""
    known = pages()
    linked = {(path.parent / target).resolve()
              for path, text in [*known, (README, README.read_text())]
              for target, _ in LINK.findall(text) if target}
    for path, _ in known:
        if path != MAP and path.resolve() not in linked:
            yield f'{name_of(path)}: no page leads to it'


def other_folders():
    """Folders in the map, and what each may include, that differ from check_layers.py."""
    told = {cells[0].strip('`').rstrip('/'): cells[1]
            for cells in rows(section(MAP.read_text(), 'The parts'))}
    above = []
    for folder, allowed in LAYERS.items():
        names = [name.removeprefix('broker/') for name in allowed]
        texts = {', '.join(f'`{name}`' for name in names) or '–'}
        if sorted(allowed) == sorted(above):
            texts.add('all above')
        above.append(folder)
        if told.pop(folder, None) not in texts:
            yield f'{name_of(MAP)}: the row of {folder}/ differs from check_layers.py'
    for folder in told:
        yield f'{name_of(MAP)}: check_layers.py has no {folder}/'


def other_stages():
    """Differences between the stages in the code and those on the page, in order."""
    stages = STAGE.findall((ROOT / 'broker/desk/call.h').read_text())[1:]  # without STAGE_NONE
    page = (DOCS / 'message.md').read_text()
    told = [cells[0].strip('`')
            for cells in rows(section(page, 'Where a message waits'))]
    drawn = re.findall(r'─→ ([A-Z]+)', page)
    if told != stages or [f'STAGE_{name}' for name in drawn] != stages:
        yield f'docs/message.md: the stages are {", ".join(stages)}'


def other_words():
    """Checks that the glossary has twenty words, each once."""
    words = [cells[0] for cells in rows(section(MAP.read_text(), 'Glossary'))]
    if len(words) != GLOSSARY_WORDS or len(set(words)) != len(words):
        yield f'{name_of(MAP)}: the glossary has {len(set(words))} words'


def long_lines():
    """Lines of prose that are too long; a row of a table is one line."""
    for path, text in pages():
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > COLUMNS_MAX and not line.startswith('|'):
                yield f'{name_of(path)}:{number}: longer than {COLUMNS_MAX} columns'


def other_versions():
    """Checks that files that cannot read the version in meson.build have the same version."""
    version = re.search(r"^  version: '([^']+)'", (ROOT / 'meson.build').read_text(), re.M).group(1)
    places = (('debian/changelog', r'\Aacp-broker \(([^)]+)\)'),
              ('CHANGELOG.md', r'^## ([\d.]+)'),
              ('docs/daemons.md', r'"broker":\{"version":"([\d.]+)"'))
    for name, pattern in places:
        found = re.search(pattern, (ROOT / name).read_text(), re.M)
        if not found or found.group(1) != version:
            yield f'{name}: the version is not {version}, which meson.build has'
    for page in sorted(DOCS.glob('*.scd')):
        if 'acp-broker @VERSION@' not in page.read_text().splitlines()[0]:
            yield f'{name_of(page)}: its first line has no @VERSION@'


def long_readme():
    """The README is short: anything beyond an overview belongs on a page."""
    lines = len(README.read_text().splitlines())
    if lines > README_LINES_MAX:
        yield f'README.md has {lines} lines: move something to a page of docs/'


def other_plots():
    """Plots that differ from the tables on which they are based."""
    for path, text in plots.plots():
        if not path.exists() or path.read_text() != text:
            yield f'{name_of(path)} differs from its table: run ./dev bench --plots'


RULES = (missing_files, missing_names, broken_links, untold_pages, other_folders, other_stages,
         other_words, long_lines, other_versions, long_readme, other_plots)


def main():
    passed = failed = 0
    for rule in RULES:
        complaints = list(rule())
        for complaint in complaints:
            print(complaint)
        passed += not complaints
        failed += bool(complaints)
    print(f'cases: {passed} passed, {failed} failed, 0 skipped')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
