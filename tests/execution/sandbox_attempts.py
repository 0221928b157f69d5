"""Ways out of a sandbox that programs have tried. Each says ESCAPED, or leaves a trace, where it succeeds.

`<name>` stands for what the host puts there: paths (`<secret>`, `<outside>`, `<readable>`, `<writable>`), addresses
(`<port>`, `<udp>`, `<socket>`, `<abstract>`), the process id of somebody else (`<victim>`), a word that marks
the attempt's own processes (`<mark>`), and the key of a shared memory segment (`<key>`).
"""

from __future__ import annotations

from typing import NamedTuple


class Attempt(NamedTuple):
    """`works_unconfined` attempts escape where nothing confines them, which shows that they are real ones."""

    sentence: str
    code: str
    shell: bool = False
    works_unconfined: bool = True
    timeout_ms: int = 20_000


def python(sentence: str, code: str, *, works_unconfined: bool = True, timeout_ms: int = 20_000) -> Attempt:
    return Attempt(sentence, code, False, works_unconfined, timeout_ms)


def shell(sentence: str, code: str, *, works_unconfined: bool = True, timeout_ms: int = 20_000) -> Attempt:
    return Attempt(sentence, code, True, works_unconfined, timeout_ms)


SYSTEM_CALL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *rest):
    return libc.syscall(ctypes.c_long(number), *[ctypes.c_long(x) if isinstance(x, int) else x for x in rest])
"""

WRITING = [
    shell("makes a file outside", "echo x > <outside>/new"),
    shell("appends to a file outside", "echo x >> <outside>/file"),
    shell("copies over a file outside", "echo x > mine; cp mine <outside>/file"),
    python("empties a file outside by its path", "import os; os.truncate('<outside>/file', 0)"),
    python("empties a file that it may read", "import os; os.truncate('<readable>/public', 0)"),
    python("opens a file outside for emptying", "import os; os.open('<outside>/file', os.O_WRONLY | os.O_TRUNC)"),
    shell("deletes a file outside", "rm -f <outside>/file"),
    shell("makes a folder outside", "mkdir <outside>/folder"),
    shell("removes a folder outside", "rmdir <outside>/empty"),
    python("moves a file from outside in", "import os; os.rename('<outside>/file', '<writable>/taken')"),
    python("moves a file from inside out", "import os; open('x', 'w').close(); os.rename('x', '<outside>/moved')"),
    shell("moves a file over one outside with mv", "echo x > mine; mv -f mine <outside>/file"),
    python(
        "exchanges a file inside for one outside",
        SYSTEM_CALL + "open('<writable>/a', 'w').close()\ncall(316, -100, b'<writable>/a', -100, b'<outside>/file', 2)",
    ),
    python(
        "links a file from outside in and writes through the link",
        "import os; os.link('<outside>/file', '<writable>/hard'); open('<writable>/hard', 'a').write('x')",
    ),
    python("links a file from inside out", "import os; open('y', 'w').close(); os.link('y', '<outside>/linked')"),
    shell("writes through a link of its own", "ln -s <outside>/file soft; echo x >> soft"),
    shell("writes through a link that was there", "echo x > <writable>/way_out/new"),
    shell("leaves a link to inside at a place outside", "ln -s /usr <outside>/soft"),
    shell("climbs out by dots", "echo x > <writable>/../outside/new"),
    shell("writes into the neighbour with the longer name", "echo x > <writable>-not/new"),
    shell("writes into what it may only read", "echo x >> <readable>/public"),
    shell("makes a file beside what it may only read", "echo x > <readable>/new"),
    python(
        "opens what it may only read again for writing, by its descriptor",
        "import os; n = os.open('<readable>/public', os.O_RDONLY)\n"
        "os.write(os.open(f'/proc/self/fd/{n}', os.O_WRONLY | os.O_APPEND), b'x')",
    ),
    python("makes a pipe outside", "import os; os.mkfifo('<outside>/pipe')"),
    python("binds a socket outside", "import socket; s = socket.socket(socket.AF_UNIX); s.bind('<outside>/socket')"),
    shell("changes the mode of a file outside", "chmod 777 <outside>/file"),
    python("changes the mode of a file that it may read", "import os; os.chmod('<readable>/public', 0o777)"),
    python(
        "changes the mode of a file that it has opened",
        "import os; os.fchmod(os.open('<readable>/public', os.O_RDONLY), 0o777)",
    ),
    python("changes the mode by the newest call", SYSTEM_CALL + "call(452, -100, b'<readable>/public', 0o777, 0)"),
    python("changes the mode of a folder outside", "import os; os.chmod('<outside>', 0o777)"),
    python(
        "gives a file outside to somebody else",
        "import os; os.chown('<outside>/file', os.getuid(), os.getgid())\nos.chmod('<outside>/file', 0o700)",
    ),
    python("sets the times of a file outside", "import os; os.utime('<outside>/file', (1, 1))"),
    python("sets the times of a file that it may read", "import os; os.utime('<readable>/public', (1, 1))"),
    shell("touches a file that it may read", "touch <readable>/public"),
    python("hangs an attribute on a file outside", "import os; os.setxattr('<readable>/public', 'user.x', b'1')"),
    shell("writes into the system's programs", "echo x > /usr/bin/<mark> && echo ESCAPED", works_unconfined=False),
    shell("makes a file in the root", "echo x > /<mark> && echo ESCAPED", works_unconfined=False),
    shell("makes a file in everybody's /tmp", "echo x > /tmp/<mark> && echo ESCAPED && rm /tmp/<mark>"),
    shell("makes a file in shared memory", "echo x > /dev/shm/<mark> && echo ESCAPED && rm /dev/shm/<mark>"),
]

WATCHING = [
    python(
        "watches a folder outside",
        SYSTEM_CALL
        + "print('ESCAPED' if libc.inotify_add_watch(libc.inotify_init(), b'<outside>', 0xFFF) > 0 else '')",
    ),
    python(
        "makes others wait for a file",
        "import fcntl, os\nfcntl.fcntl(os.open('<readable>/public', os.O_RDONLY), fcntl.F_SETLEASE, 0)\n"
        "print('ESCAPED')",
    ),
    python(
        "leaves a program that runs with its user's rights",
        "import os; open('p', 'w').close(); os.chmod('p', 0o4755); print('ESCAPED')",
    ),
    python(
        "leaves it by its descriptor",
        "import os; os.fchmod(os.open('q', os.O_CREAT | os.O_RDWR), 0o2755); print('ESCAPED')",
    ),
    python(
        "leaves it by the newest call",
        SYSTEM_CALL + "open('r', 'w').close()\nprint('ESCAPED' if call(452, -100, b'r', 0o4755, 0) == 0 else '')",
    ),
]

READING = [
    shell("reads a secret", "cat <secret>"),
    shell("reads a secret by dots", "cat <readable>/../secret"),
    shell("reads a secret through a link that was there", "cat <readable>/to_secret"),
    shell("reads a secret through a link of its own", "ln -s <secret> s; cat s"),
    python("reads a secret through a hard link", "import os; os.link('<secret>', 'h'); print(open('h').read())"),
    python("maps a secret", "import mmap; f = open('<secret>', 'rb'); print(mmap.mmap(f.fileno(), 0, prot=1)[:])"),
    shell("runs a program that reads it", "grep -r SECRET <secret>"),
    shell("lists a folder outside", "ls <outside> && echo ESCAPED"),
    python("lists the root", "import os; os.listdir('/'); print('ESCAPED')"),
    python("lists a home", "import os; os.listdir('<home>'); print('ESCAPED')"),
    python("lists everybody's /tmp", "import os; os.listdir('/tmp'); print('ESCAPED')"),
    shell("reads the password hashes", "head -c 1 /etc/shadow && echo ESCAPED"),
    shell("reads another process's environment", "cat /proc/<victim>/environ"),
    shell("reads another process's command line", "cat /proc/<victim>/cmdline"),
    shell("goes through another process's root", "cat /proc/<victim>/root<secret>"),
    shell("goes through another process's working directory", "cat /proc/<victim>/cwd/secret"),
    python("reads the memory of another process", "open('/proc/<victim>/mem', 'rb'); print('ESCAPED')"),
    shell(
        "reads the environment of what started it", "cat /proc/$PPID/environ /proc/1/environ", works_unconfined=False
    ),
    python("prints its own environment", "import os; print(dict(os.environ))", works_unconfined=False),
    python(
        "looks for descriptors that were left open",
        "import os\nfor n in range(3, 3000):\n    try:\n        os.fstat(n); print('ESCAPED', n)\n"
        "    except OSError:\n        pass",
        works_unconfined=False,
    ),
    python(
        "reads the host's input", "import sys; print('ESCAPED' if sys.stdin.read() else '')", works_unconfined=False
    ),
    python("opens the terminal", "open('/dev/tty'); print('ESCAPED')", works_unconfined=False),
    python("opens a terminal of its own", "import os; os.openpty(); print('ESCAPED')"),
    python("opens the memory of the machine", "open('/dev/mem', 'rb'); print('ESCAPED')", works_unconfined=False),
    python("reads the kernel's log", "import os; os.open('/dev/kmsg', os.O_RDONLY); print('ESCAPED')"),
    python(
        "makes a device", "import os, stat; os.mknod('d', 0o666 | stat.S_IFCHR, os.makedev(1, 1)); print('ESCAPED')"
    ),
    python(
        "attaches to the host's shared memory",
        "import ctypes; c = ctypes.CDLL(None); c.shmat.restype = ctypes.c_void_p\n"
        "at = c.shmat(c.shmget(<key>, 0, 0), None, 0); print(ctypes.string_at(at, 20))",
    ),
    shell("reads the host's posix shared memory", "cat /dev/shm/<shared>"),
]

NETWORK = [
    python("connects to the host", "import socket; socket.create_connection(('127.0.0.1', <port>)).send(b'<mark>')"),
    python("connects by IPv6", "import socket; socket.create_connection(('::1', <port6>)).send(b'<mark>')"),
    python(
        "connects while sending",
        "import socket; s = socket.socket(); s.sendto(b'<mark>', 0x20000000, ('127.0.0.1', <port>))",
    ),
    python(
        "connects over several paths at once",
        "import socket; s = socket.socket(2, 1, 262); s.connect(('127.0.0.1', <port>)); s.send(b'<mark>')",
        works_unconfined=False,
    ),
    python(
        "sends a datagram",
        "import socket; socket.socket(2, socket.SOCK_DGRAM).sendto(b'<mark>', ('127.0.0.1', <udp>))",
    ),
    python(
        "connects to a socket in a folder that it may read",
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('<socket>'); s.send(b'<mark>')",
    ),
    python(
        "connects to an abstract socket",
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0<abstract>'); s.send(b'<mark>')",
    ),
    python("opens a raw socket", "import socket; socket.socket(2, socket.SOCK_RAW, 1); print('ESCAPED')"),
    python("opens a packet socket", "import socket; socket.socket(17, socket.SOCK_RAW, 0); print('ESCAPED')"),
    python(
        "opens a socket to the hypervisor",
        "import socket; socket.socket(40, 1); print('ESCAPED')",
        works_unconfined=False,
    ),
    python(
        "opens a socket to the kernel's ciphers",
        "import socket; socket.socket(38, 5); print('ESCAPED')",
        works_unconfined=False,
    ),
    python(
        "goes round the filter by io_uring",
        SYSTEM_CALL + "print('ESCAPED' if call(425, 1, ctypes.create_string_buffer(256)) >= 0 else '')",
        works_unconfined=False,
    ),
]

PROCESSES = [
    python("ends another process", "import os; os.kill(<victim>, 9)"),
    python("stops another process", "import os; os.kill(<victim>, 19)"),
    python(
        "signals another process by a descriptor",
        "import os, signal; signal.pidfd_send_signal(os.pidfd_open(<victim>), 9)",
    ),
    python(
        "lets the kernel signal another process",
        "import fcntl, os; r, w = os.pipe(); fcntl.fcntl(r, fcntl.F_SETOWN, <victim>)\n"
        "fcntl.fcntl(r, 10, 9); fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC); os.write(w, b'x')",
    ),
    python(
        "lets the kernel signal another process, by the newer command",
        "import fcntl, os, struct; r, w = os.pipe(); fcntl.fcntl(r, 15, struct.pack('ii', 1, <victim>))\n"
        "fcntl.fcntl(r, 10, 9); fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC); os.write(w, b'x')",
    ),
    python(
        "ends what started it", "import os, time; os.kill(os.getppid(), 9); print('ESCAPED')", works_unconfined=False
    ),
    python(
        "traces another process",
        SYSTEM_CALL + "print('ESCAPED' if call(101, 16, <victim>, 0, 0) == 0 else '')\ncall(101, 17, <victim>, 0, 0)",
    ),
    python(
        "takes a descriptor of another process",
        SYSTEM_CALL + "print('ESCAPED' if call(438, os.pidfd_open(<victim>), 0, 0) >= 0 else '')",
    ),
    python("bounds another process", "import resource; resource.prlimit(<victim>, resource.RLIMIT_NOFILE, (9, 9))"),
    python("slows another process", "import os; os.setpriority(os.PRIO_PROCESS, <victim>, 19)"),
    # Unconfined these two would reach all that runs as this user; test_sandbox_other_user.py makes them as another one.
    python(
        "slows all processes of its user",
        "import os; os.setpriority(os.PRIO_USER, 0, os.getpriority(os.PRIO_PROCESS, 0) + 1)",
        works_unconfined=False,
    ),
    python(
        "makes all processes of its user wait for the disk",
        SYSTEM_CALL + "call(251, 3, os.getuid(), 2 << 13 | 5)",
        works_unconfined=False,
    ),
    python("moves another process to one processor", "import os; os.sched_setaffinity(<victim>, {0})"),
    python(
        "changes how another process is scheduled",
        "import os; os.sched_setscheduler(<victim>, os.SCHED_IDLE, os.sched_param(0))",
    ),
    shell("makes namespaces of its own", "unshare -Ur true && echo ESCAPED"),
    shell("mounts a folder", "mkdir m; mount --bind /usr m && echo ESCAPED", works_unconfined=False),
    shell("mounts memory", "mkdir n; mount -t tmpfs none n && echo ESCAPED", works_unconfined=False),
    python("opens a tree of mounts", SYSTEM_CALL + "print('ESCAPED' if call(428, -100, b'/usr', 1) >= 0 else '')"),
    python("changes its root", "import os; os.chroot('.'); print('ESCAPED')"),
    python(
        "keeps capabilities",
        SYSTEM_CALL + "data = (ctypes.c_uint32 * 6)()\n"
        "libc.capget((ctypes.c_uint32 * 2)(0x20080522, 0), data); print('ESCAPED' if any(data) else '')",
    ),
    shell("gets rights from a setuid program", "cp /usr/bin/id i; chmod 4755 i; su -c true && echo ESCAPED"),
    python("becomes somebody else", "import os; os.setuid(12345); print('ESCAPED')"),
    python(
        "sets the clock", "import time; time.clock_settime(0, time.time()); print('ESCAPED')", works_unconfined=False
    ),
    python(
        "keeps a key in the kernel",
        SYSTEM_CALL + "print('ESCAPED' if call(248, b'user', b'x', b'y', 1, -3) > 0 else '')",
    ),
    python(
        "loads a program into the kernel",
        SYSTEM_CALL + "print('ESCAPED' if call(321, 0, (ctypes.c_uint32 * 32)(1, 4, 8, 1), 128) >= 0 else '')",
        works_unconfined=False,
    ),
    python(
        "asks for a core dump",
        "import resource; resource.setrlimit(resource.RLIMIT_CORE, (9, 9)); print('ESCAPED')",
        works_unconfined=False,
    ),
    python(
        "raises its own limits",
        "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (5000, 5000)); print('ESCAPED')",
        works_unconfined=False,
    ),
    python(
        "takes off the bound of its memory",
        "import resource as r; r.setrlimit(r.RLIMIT_AS, (-1, -1)); print('ESCAPED')",
    ),
]

STAYING = [
    shell(
        "leaves a job in the background",
        "sleep 321 <mark> & python3 -c 'import time; time.sleep(321)' <mark> &",
        works_unconfined=False,
    ),
    shell(
        "leaves a session of its own",
        "setsid python3 -c 'import time; time.sleep(321)' <mark> & sleep 0.2",
        works_unconfined=False,
    ),
    python(
        "forks twice",
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        os.execv('/bin/sh', ['sh', '-c', 'sleep 321; : <mark>'])\n    os._exit(0)\ntime.sleep(0.1)",
        works_unconfined=False,
    ),
    python(
        "runs on after the timeout with all signals ignored",
        "import signal, os\nfor n in range(1, 32):\n    try:\n        signal.signal(n, signal.SIG_IGN)\n"
        "    except OSError:\n        pass\nos.execv('/bin/sh', ['sh', '-c', 'sleep 321; : <mark>'])",
        works_unconfined=False,
        timeout_ms=700,
    ),
    python(
        "forks away again and again",
        "import os, time\nmark = '<mark>'\nfor _ in range(100_000):\n"
        "    if os.fork():\n        os._exit(0)\n    os.setsid()",
        works_unconfined=False,
        timeout_ms=1_000,
    ),
    python(
        "stops itself",
        "import os, signal\nif os.fork() == 0:\n    os.setsid()\n"
        "    os.execv('/bin/sh', ['sh', '-c', 'kill -STOP $$; : <mark>'])\nos.kill(os.getpid(), signal.SIGSTOP)",
        works_unconfined=False,
        timeout_ms=700,
    ),
    shell("keeps the output open", "(setsid sh -c 'sleep 321; : <mark>' &) ; echo done", works_unconfined=False),
]

USING = [
    shell(
        "forks without end in a shell",
        ":(){ :|:& };:; sleep 20; echo ESCAPED",
        works_unconfined=False,
        timeout_ms=3_000,
    ),
    python("forks without end", "import os\nwhile True:\n    os.fork()", works_unconfined=False),
    python(
        "starts more threads than it may",
        "import threading, time\nthreading.stack_size(65536)\nfor _ in range(60):\n"
        "    threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\ntime.sleep(3)\nprint('ESCAPED')",
    ),
    python("takes more memory than it may", "x = bytearray(300_000_000); print('ESCAPED')"),
    python(
        "takes the memory by several processes",
        "import os, time\nfor _ in range(4):\n    if os.fork() == 0:\n        x = b'x' * 60_000_000\n"
        "        time.sleep(9)\n        os._exit(0)\ntime.sleep(3)\nprint('ESCAPED')",
    ),
    python(
        "writes a file larger than it may",
        "f = open('big', 'wb')\nfor _ in range(64):\n    f.write(b'x' * 65536)\n    f.flush()\nprint('ESCAPED')",
    ),
    python(
        "starts more processes than it may",
        "import os, time\nfor _ in range(60):\n    if os.fork() == 0:\n        time.sleep(9)\n        os._exit(0)\n"
        "time.sleep(3)\nprint('ESCAPED')",
    ),
    python("opens more files than it may", "x = [open('/dev/null') for _ in range(200)]; print('ESCAPED')"),
    python(
        "takes more processor time than it may",
        "import time\nend = time.process_time() + 4\nwhile time.process_time() < end:\n    pass\nprint('ESCAPED')",
    ),
]

ATTEMPTS = [*WRITING, *WATCHING, *READING, *NETWORK, *PROCESSES, *STAYING, *USING]
