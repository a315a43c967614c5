#!/usr/bin/env python3
"""What accounts must write, by either version or by one after the other, computed without them.

    expected.py COUNT > golden/entries.csv      the entries of the first COUNT transactions, sorted by bytes
    expected.py --check FOLDER                  refuses entries in FOLDER that are wrong, lost or there twice

A check prints how many entries there are. A job that was stopped may have got further in one stride of its generator
than in another, so an entry is lost if its number is missing below a later one of its stride.
"""

import pathlib
import sys

ACCOUNTS = 160
STRIDES = 16
SHOWN_MAX = 5
MASK = (1 << 64) - 1


def split_mix(state):
    mixed = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & MASK
    return mixed ^ (mixed >> 31)


def entries(count):
    """The line of each transaction, by number."""
    balances, counts = [0] * ACCOUNTS, [0] * ACCOUNTS
    for number in range(count):
        random = split_mix(number * 0x9E3779B97F4A7C15 & MASK)
        account = number % STRIDES + STRIDES * ((random >> 32) % (ACCOUNTS // STRIDES))
        balances[account] += (random & 0xFFFFFFFF) % 20_001 - 8_000
        counts[account] += 1
        yield f"{account},{number},{balances[account]},{counts[account]}"


def visible_lines(folder):
    """What a file sink has committed: names that begin with '.' or '_' are hidden."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "_")):
            continue
        if path.is_dir():
            yield from visible_lines(path)
        else:
            yield from path.read_text().splitlines()


def check(folder):
    found = {}
    twice = []
    for line in visible_lines(folder):
        number = int(line.split(",")[1])
        if number in found:
            twice.append(line)
        found[number] = line
    expected = list(entries(max(found, default=-1) + 1))
    wrong = [f"{line} instead of {expected[number]}" for number, line in found.items() if line != expected[number]]
    lost = [expected[n - STRIDES] for n in found if n >= STRIDES and n - STRIDES not in found]
    for what, lines in [("there twice", twice), ("wrong", wrong), ("lost", lost)]:
        if lines:
            sys.exit(f"{folder}: {len(lines)} of {len(found)} entries {what}, for example {lines[:SHOWN_MAX]}")
    print(len(found))


def main():
    given = sys.argv[1:]
    if len(given) == 2 and given[0] == "--check":
        check(pathlib.Path(given[1]))
    elif len(given) == 1 and given[0].isdigit():
        # All of it is ASCII, so sorting text is sorting bytes.
        sys.stdout.writelines(f"{line}\n" for line in sorted(entries(int(given[0]))))
    else:
        sys.exit("usage: expected.py COUNT, or expected.py --check FOLDER")


if __name__ == "__main__":
    main()
