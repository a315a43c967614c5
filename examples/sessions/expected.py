#!/usr/bin/env python3
"""What sessions must write, computed without it, sorted by bytes:

    expected.py [EVENTS [USERS [SEED [GAP_MS]]]] > golden/sessions.csv

The defaults are those of the job.
"""

import sys

START_MS = 1_704_067_200_000
CLICK_EVERY_MS = 15
DISORDER_MS_MAX = 4_999
MASK = (1 << 64) - 1


def split_mix(state):
    mixed = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & MASK
    return mixed ^ (mixed >> 31)


def main():
    given = [int(argument) for argument in sys.argv[1:]]
    events, users, seed, gap_ms = given + [200_000, 500, 42, 30_000][len(given):]
    clicks = {}
    for index in range(events):
        random = split_mix((seed + index * 0x9E3779B97F4A7C15) & MASK)
        time = START_MS + index * CLICK_EVERY_MS - (random & 0xFFFFFFFF) % (DISORDER_MS_MAX + 1)
        clicks.setdefault((random >> 32) % users, []).append(time)

    lines = []
    for user, times in clicks.items():
        times.sort()
        start = previous = times[0]
        count = 0
        for time in times:
            if time - previous > gap_ms:
                lines.append(f"{user},{start},{previous + gap_ms},{count}\n")
                start, count = time, 0
            count += 1
            previous = time
        lines.append(f"{user},{start},{previous + gap_ms},{count}\n")
    sys.stdout.writelines(sorted(lines))


if __name__ == "__main__":
    main()
