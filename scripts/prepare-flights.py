#!/usr/bin/env python3
"""Turns the flights table into a stream that is as late as the flights were.

    prepare-flights.py flights.csv > flights-events.csv

One row a flight, ordered by when it was reported: a flight is reported when it leaves, which is its scheduled
departure plus its delay; a cancelled one at its scheduled departure. The event time is the scheduled departure, so
a row is out of order by exactly the delay of its flight. Flights reported in the same minute keep the table's order.

Columns:
  departure  scheduled departure in milliseconds since 1970; New York's local time taken as UTC, so that an hour of
             the day is the same hour on every machine and no day has 23 or 25 of them
  origin     EWR, JFK or LGA
  dest       code of the destination
  carrier    two letters
  flight     number
  dep_delay  minutes late, negative when early, empty when cancelled
"""

import calendar
import csv
import io
import sys

COLUMNS = ["departure", "origin", "dest", "carrier", "flight", "dep_delay"]


def prepare(table):
    """The text of the stream for the text of the table."""
    events = []
    for row in csv.DictReader(io.StringIO(table)):
        year, month, day, hour, minute = (int(row[name]) for name in ("year", "month", "day", "hour", "minute"))
        departure_s = calendar.timegm((year, month, day, hour, minute, 0))
        delay = "" if row["dep_delay"] in ("", "NA") else str(int(float(row["dep_delay"])))
        reported_s = departure_s + 60 * int(delay or 0)
        events.append((reported_s, [departure_s * 1000, row["origin"], row["dest"], row["carrier"], row["flight"], delay]))
    events.sort(key=lambda event: event[0])

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(values for _, values in events)
    return text.getvalue()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: prepare-flights.py flights.csv > flights-events.csv")
    with open(sys.argv[1], newline="") as file:
        sys.stdout.write(prepare(file.read()))
