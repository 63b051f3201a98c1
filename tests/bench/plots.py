#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Draws the ratios in the tables of docs/performance.md as SVG files beside it.

A plot belongs to the first table after its image in the page.
"""

import html
import math
import pathlib
import re

PAGE = pathlib.Path(__file__).resolve().parents[2] / 'docs' / 'performance.md'

IMAGE = re.compile(r'^!\[([^\]]+)\]\(([\w-]+\.svg)\)$', re.M)
ROW = re.compile(r'^\| (.+) \|$', re.M)
RATIO = re.compile(r'× ([\d.]+) \(([\d.]+)–([\d.]+)\)')

WIDTH, NAMES, RIGHT = 900, 470, 70  # of the picture, of the names, beside the bars
LINE, TOP = 22, 34
LOWEST, HIGHEST = 0.05, 64.0  # ratios at the ends of the axis
TICKS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32)

STYLE = '''
text { font: 13px sans-serif; fill: #222 }
.number, .tick { font-size: 11px }
.tick { fill: #666 }
.grid { stroke: #8884; stroke-width: 1 }
.equal { stroke: #888; stroke-width: 2 }
.bar { fill: #2a7ab8 }
.missed { fill: #c4641c }
.spread { stroke: #666; stroke-width: 1 }
@media (prefers-color-scheme: dark) {
text { fill: #ddd } .tick { fill: #aaa } .bar { fill: #5aa9e0 } .missed { fill: #e8935a }
.spread { stroke: #bbb }
}
'''


def x_of(ratio):
    """The place of a ratio on the logarithmic axis."""
    bounded = min(max(ratio, LOWEST), HIGHEST)
    share = math.log(bounded / LOWEST) / math.log(HIGHEST / LOWEST)
    return round(NAMES + share * (WIDTH - NAMES - RIGHT), 1)


def ratios(table):
    """(what, ratio, lowest, highest, whether its target is missed) of each row that has a ratio."""
    for cells in ROW.findall(table):
        found = RATIO.search(cells)
        if found:
            what = cells.split(' | ')[0].replace('`', '')
            yield what, *map(float, found.groups()), '**missed**' in cells


def bar(number, row):
    """One line of the plot."""
    what, ratio, lowest, highest, is_missed = row
    y = TOP + number * LINE
    left, right = sorted((x_of(1), x_of(ratio)))
    kind = 'bar missed' if is_missed else 'bar'
    shown = what if len(what) <= 72 else what[:71] + '…'
    return (f'<text x="{NAMES - 8}" y="{y + 14}" text-anchor="end">{html.escape(shown)}</text>\n'
            f'<rect class="{kind}" x="{left}" y="{y + 4}" width="{max(right - left, 1):.1f}" '
            f'height="{LINE - 8}"/>\n'
            f'<line class="spread" x1="{x_of(lowest)}" x2="{x_of(highest)}" '
            f'y1="{y + LINE / 2}" y2="{y + LINE / 2}"/>\n'
            f'<text class="number" x="{max(right, x_of(highest)) + 5:.1f}" y="{y + 14}">'
            f'× {ratio:g}</text>\n')


def draw(title, rows):
    """The plot of a table."""
    height = TOP + len(rows) * LINE + 8
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
             f'role="img" aria-label="{html.escape(title)}">\n<style>{STYLE}</style>\n']
    for tick in TICKS:
        kind = 'equal' if tick == 1 else 'grid'
        parts.append(f'<line class="{kind}" x1="{x_of(tick)}" x2="{x_of(tick)}" y1="{TOP - 6}" '
                     f'y2="{height - 4}"/>\n<text class="tick" x="{x_of(tick)}" y="{TOP - 12}" '
                     f'text-anchor="middle">× {tick:g}</text>\n')
    parts += [bar(number, row) for number, row in enumerate(rows)]
    return ''.join(parts) + '</svg>\n'


def plots():
    """(file, text) of each plot of the page."""
    page = PAGE.read_text(encoding='utf-8')
    for found in IMAGE.finditer(page):
        table = re.search(r'(?:^\|.*\n)+', page[found.end():], re.M).group()
        yield PAGE.parent / found.group(2), draw(found.group(1), list(ratios(table)))


def main():
    for path, text in plots():
        path.write_text(text, encoding='utf-8')
        print(path)


if __name__ == '__main__':
    main()
