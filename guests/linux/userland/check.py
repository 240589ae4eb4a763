"""Computes things that can be known otherwise, and ends with an error where one is wrong.

Prints the fields of a result line. The literals are from the literature, or were computed on another machine.
"""

import hashlib
import json
import math
import os
import random
import signal
import sys
import threading
import time

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def equal(found, wanted):
    if found != wanted:
        sys.exit(f"{sys._getframe(1).f_code.co_name}: {found!r}, not {wanted!r}")


def pi_machin(digits):
    """Big integers: pi by Machin's formula."""
    unit = 10 ** (digits + 10)

    def arctan(inverse):
        term = total = unit // inverse
        n, sign = 3, -1
        while term:
            term //= inverse * inverse
            total += sign * (term // n)
            sign, n = -sign, n + 2
        return total

    return 4 * (4 * arctan(5) - arctan(239)) // 10**10


@check
def integers():
    digits = str(pi_machin(1000))
    equal(digits[:31], "3141592653589793238462643383279")
    # The 1000 decimals end with these.
    equal(digits[-10:], "2164201989")
    equal(pow(3, 2**89 - 2, 2**89 - 1), 1)  # Fermat: 2**89 - 1 is prime


@check
def floats():
    """What an FPU whose registers or rounding mode got mixed up would not give."""
    equal(math.fsum([0.1] * 10), 1.0)
    equal(sum([0.1] * 10), 1.0)  # compensated since Python 3.12
    equal(repr(math.sqrt(2)), "1.4142135623730951")
    x = 0.5
    for _ in range(1000):
        x = 3.75 * x * (1 - x)  # chaotic: a wrong last bit grows
    y = 0.5
    for _ in range(1000):
        y = 3.75 * y * (1 - y)
    equal(x, y)


@check
def hashes():
    equal(
        hashlib.sha256(b"a" * 1_000_000).hexdigest(),
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",  # FIPS 180-2, B.3
    )


@check
def containers():
    generator = random.Random(1)
    numbers = [generator.randrange(10**6) for _ in range(50_000)]
    by_sorting = sorted(numbers)
    counts = [0] * 10**6
    for number in numbers:
        counts[number] += 1
    equal(by_sorting, [number for number, count in enumerate(counts) for _ in range(count)])
    equal(json.loads(json.dumps(numbers)), numbers)


@check
def threads():
    """Futexes: four threads and a lock."""
    lock, total = threading.Lock(), 0

    def work():
        nonlocal total
        for _ in range(20_000):
            with lock:
                total += 1

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    equal(total, 80_000)


@check
def processes():
    """Forks, each child with a page of its own in a file in memory; then the parent reads all of them."""
    page, children = 4096, 8
    shared = os.memfd_create("pages")

    def content(child):
        return hashlib.sha256(bytes([child])).digest() * (page // 32)

    pids = []
    for child in range(children):
        pid = os.fork()
        if pid == 0:
            os.pwrite(shared, content(child), child * page)
            os._exit(child)
        pids.append(pid)
    equal([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids], list(range(children)))
    for child in range(children):
        equal(os.pread(shared, page, child * page), content(child))


@check
def timers():
    """Signals of a timer each 10 ms; and no sleep is shorter than it should be."""
    ticks = 0

    def tick(*_):
        nonlocal ticks
        ticks += 1

    signal.signal(signal.SIGALRM, tick)
    # Before the timer is set: who loses its CPU between the two would see it too early.
    begin = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    while ticks < 20:
        signal.pause()
    signal.setitimer(signal.ITIMER_REAL, 0)
    # The first after 10 ms, the others not before they are due.
    if time.monotonic() - begin < 0.2:
        sys.exit(f"timers: {ticks} ticks of 10 ms in {time.monotonic() - begin} s")


for each in CHECKS:
    each()
print(f'"checks":{len(CHECKS)}')
