#!/usr/bin/env python3
"""What flights must write, computed without it:

    expected.py flights-events.csv FOLDER

writes FOLDER/hourly.csv and FOLDER/late.csv, sorted by bytes. A row is late when the watermark has reached the end of its
hour before it. After a row, the watermark is the highest event time so far less the bound and a millisecond; it is
sent when it has moved by at least the interval.
"""

import csv
import datetime
import pathlib
import sys

HOUR_MS = 3_600_000
BOUND_MS = HOUR_MS
INTERVAL_MS = 200  # the default of pipeline.auto-watermark-interval


def mean(minutes, departures):
    """Two decimals, halves away from zero, in integers; nothing without departures."""
    if departures == 0:
        return ""
    hundredths = (200 * abs(minutes) + departures) // (2 * departures)
    sign = "-" if minutes < 0 and hundredths > 0 else ""
    return f"{sign}{hundredths // 100}.{hundredths % 100:02}"


def expected(rows):
    """The lines of both outputs for the rows of the input, without its header."""
    highest = watermark = None
    hours, late = {}, []
    for row in rows:
        departure, origin, _, _, _, delay = row
        departure = int(departure)
        start = departure - departure % HOUR_MS
        if watermark is not None and start + HOUR_MS - 1 <= watermark:
            late.append(",".join(row))
        else:
            total = hours.setdefault((start, origin), [0, 0])
            if delay:
                total[0] += 1
                total[1] += int(delay)
        highest = departure if highest is None else max(highest, departure)
        reached = highest - BOUND_MS - 1
        if watermark is None or reached >= watermark + INTERVAL_MS:
            watermark = reached
    hourly = []
    for (start, origin), (departures, minutes) in hours.items():
        time = datetime.datetime.fromtimestamp(start // 1000, datetime.timezone.utc)
        hourly.append(f"{time:%Y-%m-%dT%H:%M:%SZ},{origin},{departures},{mean(minutes, departures)}")
    return hourly, late


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: expected.py flights-events.csv FOLDER")
    with open(sys.argv[1], newline="") as file:
        reader = csv.reader(file)
        next(reader)
        hourly, late = expected(reader)
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in [("hourly.csv", hourly), ("late.csv", late)]:
        # All of it is ASCII, so sorting text is sorting bytes.
        (folder / name).write_text("".join(f"{line}\n" for line in sorted(lines)))


if __name__ == "__main__":
    main()
