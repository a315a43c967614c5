#!/usr/bin/env python3
"""Records what Apache Flink gives for the queries of *.slt, in place.

    FLINK_SQL=path/to/flink-sql tests/sql/functions/record.py [file.slt…]

flink-sql prints the changelog of each SELECT of the scripts that it is given: row kind and values, separated by tabs. What is
left when all changes are applied is written, sorted. Queries behind a comment that begins with "# Differs" stay as they are, and
so do those that must fail: flink-sql ends with the first that does.
"""

import collections
import os
import pathlib
import subprocess
import sys
import tempfile

MARK = "####"


def shown(value):
    if value == "":
        return "(empty)"
    return f'"{value}"' if value != value.strip(" ") else value


def is_recorded(block):
    lines = block.split("\n")
    return "\n----" in block and not any(line.startswith("# Differs") for line in lines)


def query_of(block):
    lines = [line for line in block.split("\n----")[0].split("\n") if not line.startswith("#")]
    return "\n".join(lines[1:])


def record(file, flink_sql):
    blocks = file.read_text().split("\n\n")
    script = []
    for index, block in enumerate(blocks):
        if block.startswith("statement ok"):
            script.append(query_of(block))
        elif is_recorded(block):
            script += [f"SELECT '{MARK} {index}'", query_of(block)]
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as out:
        out.write(";\n".join(script))
        out.flush()
        changes = subprocess.run([flink_sql, out.name], check=True, stdout=subprocess.PIPE, text=True).stdout
    found, current = {}, None
    for line in changes.splitlines():
        kind, _, row = line.partition("\t")
        if row.startswith(MARK):
            current = found.setdefault(int(row.split()[1]), collections.Counter())
        else:
            current[row] += 1 if kind.startswith("+") else -1
    for index, rows in found.items():
        table = sorted(rows.elements())
        head = blocks[index].split("\n----")[0]
        lines = [" ".join(shown(value) for value in row.split("\t")) for row in table]
        blocks[index] = "\n".join([head, "----", *lines])
    file.write_text("\n\n".join(block.rstrip("\n") for block in blocks) + "\n")


def main():
    folder = pathlib.Path(__file__).parent
    files = [pathlib.Path(name) for name in sys.argv[1:]] or sorted(folder.glob("*.slt"))
    for file in files:
        record(file, os.environ["FLINK_SQL"])


if __name__ == "__main__":
    main()
