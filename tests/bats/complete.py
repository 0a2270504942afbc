"""Prints what bash offers for a line, one word a line, as readline would insert it:
    complete.py SCRIPT 'openshell sandbox '
A bash of its own runs on a pseudo-terminal. All completions are inserted into the line, which then
becomes the arguments of a command that prints them."""
import os
import pty
import select
import signal
import sys
import time

script, line = sys.argv[1:]
start = (b'PS1= PS2=; stty -echo; source "%s"; bind \'"\\C-x": insert-completions\'\n'
         b'print() { printf "<%%s>\\n" "$@"; echo the "end"; }; echo the "beginning"\n'
         % script.encode())
child, terminal = pty.fork()
if child == 0:
    os.environ['INPUTRC'] = '/dev/null'
    os.environ['TERM'] = 'dumb'
    os.execvp('bash', ['bash', '--norc', '--noprofile', '-i'])


def read_until(end):
    seen, until = b'', time.monotonic() + 10
    while end not in seen:
        if not select.select([terminal], [], [], max(0, until - time.monotonic()))[0]:
            sys.exit('bash does not answer: ' + repr(seen))
        seen += os.read(terminal, 65536)
    return seen.decode(errors='replace')


os.write(terminal, start)
read_until(b'the beginning')
# Ctrl-A goes to the beginning of the line, before which the command is put.
os.write(terminal, line.encode() + b'\x18\x01print \n')
words = [text.strip('\r')[1:-1] for text in read_until(b'the end').split('\n')
         if text.startswith('<')]
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
# The words before the one that is completed were typed, not offered.
typed = len(line.split()) - (line[-1] != ' ')
offered = words[typed:]
if offered != line.split()[typed:]:
    print('\n'.join(offered))
