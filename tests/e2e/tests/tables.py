#!/usr/bin/env python3
"""Reads the state 'account' of a savepoint as anyone would who has never heard of Flott:

    tables.py SAVEPOINT

prints a line `reader,account,balance,transactions` for each account and reader. Columns and keys are checked on the way.
"""

import pathlib
import sys

import duckdb
import pyarrow.parquet

COLUMNS = ["key_group", "key", "value"]
FIELDS = ["balance_cents", "transactions", "largest_cents", "refunds"]
MAX_PARALLELISM = 128


def by_duckdb(files):
    """All files as one table, and its structs by field in SQL."""
    table = duckdb.read_parquet([str(file) for file in files])
    assert table.columns == COLUMNS, table.columns
    counts = table.query("states", "SELECT count(*), count(DISTINCT key), max(key_group) FROM states").fetchone()
    assert counts[0] == counts[1] and counts[2] < MAX_PARALLELISM, counts
    return table.query("states", "SELECT key, value.balance_cents, value.transactions FROM states").fetchall()


def by_pyarrow(files):
    """File by file, and its structs as Python's."""
    for file in files:
        table = pyarrow.parquet.ParquetFile(file).read()
        assert table.column_names == COLUMNS, table.schema
        fields = [field.name for field in table.schema.field("value").type]
        assert fields == FIELDS, table.schema
        for key, value in zip(table.column("key").to_pylist(), table.column("value").to_pylist()):
            assert value["largest_cents"] is not None and value["refunds"] <= value["transactions"], value
            yield key, value["balance_cents"], value["transactions"]


def main():
    files = sorted(pathlib.Path(sys.argv[1]).glob("accounts-*/account/*.parquet"))
    assert files, f"{sys.argv[1]} has no files of the state 'account'"
    for reader in [by_duckdb, by_pyarrow]:
        for row in reader(files):
            print(reader.__name__.removeprefix("by_"), *row, sep=",")


if __name__ == "__main__":
    main()
