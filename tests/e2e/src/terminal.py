"""Runs a command on a terminal of its own: what comes on standard input is typed, what it shows goes to standard output.

usage: terminal.py LINES COLUMNS COMMAND [ARGUMENT...]
"""

import fcntl
import os
import pty
import select
import struct
import sys
import termios

lines, columns = int(sys.argv[1]), int(sys.argv[2])
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    os.execvp(sys.argv[3], sys.argv[3:])
while True:
    ready, _, _ = select.select([terminal, 0], [], [])
    if terminal in ready:
        try:
            shown = os.read(terminal, 65536)
        except OSError:  # the command has ended
            break
        if not shown:
            break
        os.write(1, shown)
    if 0 in ready:
        typed = os.read(0, 65536)
        if not typed:
            break
        os.write(terminal, typed)
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status) % 256)
