#!/usr/bin/env python3
"""Makes text like a language's: 50,000 words, the n-th as frequent as 1/n (Zipf), in lines of 5 to 15.

    make-text.py FOLDER [MEGABYTES] [FILES]

Writes text-0.txt, text-1.txt, ... of MEGABYTES (default 1000) together into FOLDER. The same arguments give the same bytes on
every machine; files that are there with the right length are kept.
"""

import itertools
import os
import pathlib
import random
import sys

WORDS = 50_000
# Lines are drawn from a pool: drawing every word of a gigabyte anew would take minutes, and no count of ours could
# tell. With a pool per 64 MB block the files do not repeat themselves.
BLOCK_BYTES = 64_000_000
LINES_IN_POOL = 40_000


def vocabulary(rng):
    """Words of 2 to 12 letters, the frequent ones shorter, as in a language; some begin with a capital letter."""
    words = dict()
    while len(words) < WORDS:
        longest = min(12, 3 + len(words).bit_length() // 2)
        word = "".join(rng.choices("etaoinshrdlucmfwypvbgkjqxz", weights=range(26, 0, -1), k=rng.randint(2, longest)))
        words[word.capitalize() if rng.random() < 0.1 else word] = None
    return list(words)


def pool(rng, words, cumulative):
    """Lines as bytes."""
    lengths = [rng.randint(5, 15) for _ in range(LINES_IN_POOL)]
    drawn = iter(rng.choices(words, cum_weights=cumulative, k=sum(lengths)))
    return [" ".join(itertools.islice(drawn, length)).encode() + rng.choice([b"\n", b".\n", b",\n"]) for length in lengths]


def write(path, size, seed, words, cumulative):
    if path.exists() and path.stat().st_size == size:
        return
    rng = random.Random(seed)
    partial = path.with_suffix(".partial")
    with open(partial, "wb") as file:
        while file.tell() < size:
            left = min(BLOCK_BYTES, size - file.tell())
            lines = pool(rng, words, cumulative)
            mean = sum(map(len, lines)) / len(lines)
            block = b"".join(rng.choices(lines, k=int(left / mean * 1.05) + 100))[:left]
            file.write(block[:-1] + b"\n")
    os.replace(partial, path)


def main():
    if not 2 <= len(sys.argv) <= 4:
        sys.exit("usage: make-text.py FOLDER [MEGABYTES] [FILES]")
    folder = pathlib.Path(sys.argv[1])
    size = int(sys.argv[2] if len(sys.argv) > 2 else 1000) * 1_000_000
    files = int(sys.argv[3] if len(sys.argv) > 3 else 4)
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(2013)
    words = vocabulary(rng)
    cumulative = list(itertools.accumulate(1 / rank for rank in range(1, WORDS + 1)))
    for number in range(files):
        share = size // files + (1 if number < size % files else 0)
        write(folder / f"text-{number}.txt", share, f"text-{number}", words, cumulative)


if __name__ == "__main__":
    main()
