"""A long `accept` leaves the interpreter to others."""

from __future__ import annotations

import threading

from native import start

from deepstrike.kernel import Kernel

EIGHT_MB = "wörd中" * 1_000_000


def test_given_a_goal_of_8_mb_when_it_is_accepted_then_a_second_thread_makes_progress() -> None:
    kernel = Kernel()
    begun, finished = threading.Event(), threading.Event()

    def accept() -> None:
        begun.set()
        kernel.accept(start(EIGHT_MB), 1)
        finished.set()

    thread = threading.Thread(target=accept)
    thread.start()
    begun.wait()
    steps = 0
    while not finished.is_set():
        steps += 1
    thread.join()

    assert steps > 1000
    assert kernel.phase == "thinking"


def test_given_a_long_accept_when_another_thread_looks_at_the_kernel_then_it_waits_without_stopping_a_third() -> None:
    kernel = Kernel()
    begun, finished = threading.Event(), threading.Event()
    seen: list[str] = []

    def accept() -> None:
        begun.set()
        kernel.accept(start(EIGHT_MB), 1)

    def look() -> None:
        begun.wait()
        while not seen or seen[-1] == "idle":
            seen.append(kernel.phase)
        finished.set()

    threads = [threading.Thread(target=accept), threading.Thread(target=look)]
    for thread in threads:
        thread.start()
    begun.wait()
    steps = 0
    while not finished.is_set():
        steps += 1
    for thread in threads:
        thread.join()

    assert set(seen) <= {"idle", "thinking"}
    assert seen[-1] == "thinking"
    assert steps > 1000


def test_given_many_threads_on_one_kernel_when_all_ask_then_every_answer_is_whole() -> None:
    kernel = Kernel()
    kernel.accept(start("go"), 1)
    expected = (kernel.pending(), kernel.blocks(1, 0), kernel.next_seq)
    answers: list[bool] = []

    def ask() -> None:
        answers.extend((kernel.pending(), kernel.blocks(1, 0), kernel.next_seq) == expected for _ in range(300))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == [True] * 2400
