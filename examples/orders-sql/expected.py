#!/usr/bin/env python3
"""What orders-sql must write, computed without it, sorted by bytes:

    expected.py [ORDERS [SEED]] > golden/hours.csv

The defaults are those of the job.
"""

import sys
import time

START_MS = 1_704_067_200_000
ORDER_EVERY_MS = 500
DISORDER_MS_MAX = 4_999
HOUR_MS = 3_600_000
TAGS = ["books", "garden", "music", "tools", "toys"]
MASK = (1 << 64) - 1


def split_mix(state):
    mixed = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & MASK
    return mixed ^ (mixed >> 31)


def main():
    given = [int(argument) for argument in sys.argv[1:]]
    orders, seed = given + [50_000, 42][len(given):]
    sums = {}
    for index in range(orders):
        random = split_mix((seed + index * 0x9E3779B97F4A7C15) & MASK)
        at = START_MS + index * ORDER_EVERY_MS - (random >> 40) % (DISORDER_MS_MAX + 1)
        cents, pieces = 100 + (random >> 16) % 9_900, random % 5
        if pieces == 0:
            continue
        size = "small" if cents * pieces < 10_000 else "large"
        for tag in {TAGS[(random >> 8) % len(TAGS)], TAGS[(random >> 24) % len(TAGS)]}:
            group = sums.setdefault((at // HOUR_MS, tag, size), [0, 0, 0])
            group[0] += 1
            group[1] += cents * pieces
            group[2] += pieces
    lines = []
    for (hour, tag, size), (count, cents, pieces) in sums.items():
        start = time.strftime("%Y-%m-%d %H:%M", time.gmtime(hour * HOUR_MS // 1000))
        lines.append(f'"{start}",{tag},{size},{count},{cents // pieces}\n')
    sys.stdout.writelines(sorted(lines))


if __name__ == "__main__":
    main()
