#!/usr/bin/env python3
"""Reads a partitioned table in Parquet as anyone would who has never heard of Flott, and writes it again:

    sql_files.py TABLE COPY

prints a line `reader|id|…` for each row and reader.
"""

import sys

import duckdb
import pyarrow.dataset


def shown(row):
    row = dict(row)
    counts = row["counts"]
    row["counts"] = None if counts is None else dict(counts)["k"]
    inner = row["inner_row"]
    row["inner_row"] = None if inner is None else inner["x"]
    return row.values()


def by_duckdb(table):
    duckdb.sql("SET TimeZone = 'UTC'")
    found = duckdb.sql(
        f"SELECT * REPLACE (strftime(instant AT TIME ZONE 'UTC', '%Y-%m-%d %H:%M:%S.%f+00:00') AS instant)"
        f" FROM read_parquet('{table}/*/*.parquet', hive_partitioning = true) ORDER BY id"
    )
    for row in found.fetchall():
        yield dict(zip(found.columns, row))


def by_pyarrow(table):
    found = pyarrow.dataset.dataset(table, format="parquet", partitioning="hive").to_table()
    yield from found.sort_by("id").to_pylist()


def main():
    table, copy = sys.argv[1:]
    for reader in [by_duckdb, by_pyarrow]:
        for row in reader(table):
            print(reader.__name__.removeprefix("by_"), *shown(row), sep="|")
    found = pyarrow.dataset.dataset(table, format="parquet", partitioning="hive").to_table()
    # Other types than ours for the same values, and columns in another order.
    at = found.schema.get_field_index("seen")
    found = found.set_column(at, "seen", found.column("seen").cast(pyarrow.timestamp("ns")))
    found = found.select(list(reversed(found.column_names)))
    partitioning = pyarrow.dataset.partitioning(pyarrow.schema([("dt", pyarrow.string())]), flavor="hive")
    pyarrow.dataset.write_dataset(found, copy, format="parquet", partitioning=partitioning)


if __name__ == "__main__":
    main()
