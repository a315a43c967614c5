#!/usr/bin/env python3
"""What wordcount must write, computed without it: `expected.py FILE... > golden/licence.csv`."""

import collections
import re
import sys

if len(sys.argv) < 2:
    sys.exit("usage: expected.py FILE...")
counts = collections.Counter()
for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as file:
        counts.update(word.lower() for word in re.findall(r"[A-Za-z0-9]+", file.read()))
print("\n".join(sorted(f"{word},{count}" for word, count in counts.items())))
