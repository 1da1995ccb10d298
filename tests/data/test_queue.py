"""The claim table: every shard is made by one worker at a time, and none is forgotten; on SQLite and on Postgres."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import inspect, select, text

from data.store import StoreError, presence
from data.store.database import METADATA, SHARDS, Database, _engine
from data.store.queue import MOST_LOSSES, WATCHED, Queue, Watch
from tests.postgres import server


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def queue(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    monkeypatch.setenv("FORESHAPE_HOME", str(tmp_path))
    url = f"sqlite:///{tmp_path}/foreshape.db" if request.param == "sqlite" else request.getfixturevalue("postgres")
    database = Database(url)
    with database.transaction() as connection:
        for table in ("shards", "runs"):
            connection.execute(text(f"DELETE FROM {table}"))
    yield Queue(database)
    database.engine.dispose()
    _engine.cache_clear()


def states(queue: Queue) -> list[str]:
    with queue.database.transaction() as connection:
        return list(connection.execute(select(SHARDS.c.state).order_by(SHARDS.c.run, SHARDS.c.first)).scalars())


def test_shards_cover_a_run_and_its_growth(queue: Queue, tmp_path: Path) -> None:
    queue.submit("a", tmp_path, 7, (), 3)
    queue.submit("a", tmp_path, 7, (), 3)
    queue.submit("a", tmp_path, 12, (), 4)
    queue.submit("a", tmp_path, 5, (), 4)
    found = [queue.claim("w") for _ in range(6)]
    assert [(s.first, s.stop) for s in found if s] == [(0, 3), (3, 6), (6, 7), (7, 11), (11, 12)]
    assert queue.claim("w") is None


def test_what_is_finished_is_not_made_again_and_what_is_missing_is(queue: Queue, tmp_path: Path) -> None:
    queue.submit("a", tmp_path, 6, {0, 1, 2}, 2)
    assert states(queue) == ["done", "queued", "queued"]
    queue.submit("a", tmp_path, 6, {2, 3, 4, 5}, 2)
    assert states(queue) == ["queued", "done", "done"]
    held = queue.claim("w")
    assert held
    queue.submit("a", tmp_path, 6, (), 2)
    assert states(queue) == ["running", "queued", "queued"]


def test_a_claim_ends_once(queue: Queue, tmp_path: Path) -> None:
    queue.submit("a", tmp_path, 1, (), 1)
    shard = queue.claim("w")
    assert shard
    assert queue.claim("v") is None
    assert queue.beat(shard, {"step": 1})
    assert queue.standings()[0].progress == {"w": {"step": 1}}
    assert queue.end(shard, "done")
    assert not queue.end(shard, "done")
    assert not queue.beat(shard, {})
    assert queue.standings()[0].state == "done"


@pytest.mark.parametrize(("verb", "state"), [("cancel", "cancelled"), ("pause", "paused")])
def test_a_worker_hears_that_its_shard_is_wanted_no_more(queue: Queue, tmp_path: Path, verb: str, state: str) -> None:
    queue.submit("a", tmp_path, 2, (), 1)
    shard = queue.claim("w")
    assert shard
    getattr(queue, verb)("a")
    assert not queue.beat(shard, {})
    assert not queue.end(shard, "done")
    assert queue.standings()[0].state == state
    {"cancel": queue.retry, "pause": queue.resume}[verb]("a")
    assert queue.standings()[0].state == "queued"
    again = queue.claim("v")
    assert again
    assert not queue.beat(shard, {})
    assert queue.beat(again, {})


def test_a_run_can_be_moved_to_the_front(queue: Queue, tmp_path: Path) -> None:
    for name in "abc":
        queue.submit(name, tmp_path / name, 1, (), 1)
    queue.first("c")
    claims = [queue.claim("w") for _ in range(3)]
    assert [shard.run for shard in claims if shard] == ["c", "a", "b"]
    assert queue.claim("w", "a") is None


def test_those_that_wait_are_told_in_their_turn(queue: Queue, tmp_path: Path) -> None:
    for name, n in (("b", 5), ("a", 2)):
        queue.submit(name, tmp_path / name, n, (), 3)
    assert [(shard.run, *shard.designs) for shard in queue.waiting(9)] == [("b", 0, 1, 2), ("b", 3, 4), ("a", 0, 1)]
    assert [shard.run for shard in queue.waiting(1)] == ["b"]
    queue.claim("w")
    queue.first("a")
    assert [(shard.run, shard.folder.name) for shard in queue.waiting(9)] == [("a", "a"), ("b", "b")]


def test_partly_done_is_partial(queue: Queue, tmp_path: Path) -> None:
    queue.submit("a", tmp_path, 2, {0}, 1)
    queue.cancel("a")
    assert queue.standings()[0].state == "partial"


def test_a_beat_that_stands_still_is_lost_by_the_watchers_own_clock(queue: Queue, tmp_path: Path) -> None:
    """No other clock is read, so none can jump: neither the worker's nor the server's."""
    queue.submit("a", tmp_path, 2, (), 1)
    alive, dead, now = queue.claim("alive"), queue.claim("dead"), [0.0]
    assert alive
    assert dead
    watch = Watch(queue, 10, lambda: now[0])
    for now[0] in (0.0, 5.0, 9.0):
        assert watch.look() == 0
        queue.beat(alive, {})
    now[0] = 10.0
    assert watch.look() == 1
    assert not queue.end(dead, "done")
    again = queue.claim("other")
    assert again
    assert again.first == dead.first
    assert queue.end(alive, "done")


def test_a_shard_that_ends_its_workers_is_left_alone(queue: Queue, tmp_path: Path) -> None:
    queue.submit("a", tmp_path, 1, (), 1)
    for k in range(MOST_LOSSES):
        assert queue.claim(f"w{k}")
        ((key, beat),) = queue.beats().items()
        assert queue.give_up(*key, beat)
        assert not queue.give_up(*key, beat)
    assert queue.standings()[0].state == "lost"
    assert queue.claim("w") is None
    queue.retry("a")
    assert queue.claim("w")


def test_two_folders_of_one_name_are_not_mixed(queue: Queue, tmp_path: Path) -> None:
    queue.submit("a", tmp_path / "x", 1, (), 1)
    with pytest.raises(StoreError, match="another name"):
        queue.submit("a", tmp_path / "y", 1, (), 1)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["claim", "done", "failed", "queued", "cancel", "pause", "retry", "submit"])))
def test_no_order_of_events_makes_two_owners_or_loses_a_shard(queue: Queue, tmp_path: Path, story: list[str]) -> None:
    with queue.database.transaction() as connection:
        for table in ("shards", "runs"):
            connection.execute(text(f"DELETE FROM {table}"))
    queue.submit("a", tmp_path, 3, (), 1)
    held = []
    for number, event in enumerate(story):
        if event == "claim" and (shard := queue.claim(f"w{number}")):
            held.append(shard)
        elif event in ("done", "failed", "queued") and held:
            queue.end(held.pop(), event)
        elif event in ("cancel", "pause", "retry"):
            getattr(queue, event)("a")
        elif event == "submit":
            queue.submit("a", tmp_path, 3, (), 1)
        owners = [shard.first for shard in held if queue.beat(shard, {})]
        assert len(owners) == len(set(owners)) == states(queue).count("running")
        assert len(states(queue)) == 3


def test_the_steps_of_the_schema_end_where_the_tables_are(queue: Queue) -> None:
    found = inspect(queue.database.engine)
    for table in METADATA.tables.values():
        columns = {column["name"]: column["nullable"] for column in found.get_columns(table.name)}
        assert columns == {column.name: bool(column.nullable) for column in table.columns}
        keys = found.get_pk_constraint(table.name)["constrained_columns"]
        assert keys == [column.name for column in table.primary_key]


def test_a_store_of_a_newer_program_is_refused(queue: Queue) -> None:
    with queue.database.transaction() as connection:
        connection.execute(text("INSERT INTO versions VALUES (99)"))
    _engine.cache_clear()
    with pytest.raises(ValueError, match="newer foreshape"):
        Database(queue.database.url)
    with queue.database.transaction() as connection:
        connection.execute(text("DELETE FROM versions WHERE version = 99"))


@pytest.mark.parametrize("url", ["nonsense", "mysql://x/y", "sqlite:////proc/no/such.db", "postgresql://127.0.0.1:1/x"])
def test_a_store_that_cannot_be_used_is_one_line(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORESHAPE_HOME", str(tmp_path))
    with pytest.raises(StoreError) as caught:
        Database(url)
    assert "\n" not in str(caught.value)


WORK = """
import sys
from data.store.database import Database
from data.store.queue import Queue
queue = Queue(Database(sys.argv[1]))
while shard := queue.claim(sys.argv[2]):
    queue.end(shard, "done")
    print(shard.first)
"""


def test_processes_share_the_shards(queue: Queue, tmp_path: Path) -> None:
    """Each shard is claimed once, and nobody hears that the database is locked."""
    queue.submit("a", tmp_path, 120, (), 1)
    words = [sys.executable, "-c", WORK, queue.database.url]
    workers = [subprocess.Popen([*words, f"w{k}"], stdout=subprocess.PIPE, text=True, env=os.environ) for k in range(3)]
    claimed = [int(line) for worker in workers for line in worker.communicate(timeout=60)[0].split()]
    assert [worker.returncode for worker in workers] == [0] * 3
    assert sorted(claimed) == list(range(120))
    assert set(states(queue)) == {"done"}


def test_a_worker_of_this_machine_that_is_dead_is_not_waited_for(queue: Queue, tmp_path: Path) -> None:
    """Its file is here and nobody holds it; a worker of another machine has none, and only its beats tell."""
    queue.submit("a", tmp_path, 3, (), 1)
    watch = Watch(queue, 1000)
    with presence.present("alive"):
        for name in ("alive", "dead", "elsewhere"):
            assert queue.claim(name)
        (tmp_path / "workers" / "dead").touch()
        assert watch.look() == 1
        assert {worker for _, _, worker in queue.beats()} == {"alive", "elsewhere"}
        watch.look()
        assert [path.name for path in (tmp_path / "workers").iterdir()] == ["alive"]
    assert not presence.vanished("alive")


@pytest.fixture
def crowd(queue: Queue, tmp_path: Path) -> list[str]:
    """More workers than one watches, each with a shard, that come in no order."""
    names = [f"w{(7 * k) % 120:03d}" for k in range(120)]
    queue.submit("a", tmp_path, len(names), (), 1)
    assert all(queue.claim(name) for name in names)
    return sorted(names)


@pytest.mark.parametrize("place", [0, 60, 119])
def test_one_watches_those_that_come_next_in_the_circle(queue: Queue, crowd: list[str], place: int) -> None:
    watched = [worker for _, _, worker in queue.beats(crowd[place], WATCHED)]
    assert watched == [crowd[(place + k) % 120] for k in range(1, WATCHED + 1)]
    assert {worker for _, _, worker in queue.beats(crowd[place])} == set(crowd)
    assert [worker for _, _, worker in queue.beats("", 3)] == crowd[:3]


def test_everybody_is_watched_and_one_who_is_left_gives_up_all_others(queue: Queue, crowd: list[str]) -> None:
    watchers = {other for name in crowd for _, _, other in queue.beats(name, WATCHED)}
    assert watchers == set(crowd)
    now = [0.0]
    watch = Watch(queue, 10, lambda: now[0], crowd[40])
    alive, given = next(key for key in queue.beats() if key[2] == crowd[40]), 0
    for look in range(8):
        now[0] = 10.0 * look
        with queue.database.transaction() as connection:
            connection.execute(SHARDS.update().where(SHARDS.c.worker == crowd[40]).values(beat=look + 2))
        given += watch.look()
    assert given == 119
    assert list(queue.beats()) == [alive]


def test_the_dead_are_remembered_while_they_have_a_shard(queue: Queue, tmp_path: Path) -> None:
    """Also where another has swept, who watched others."""
    queue.submit("a", tmp_path, 2, (), 1)
    for name in ("dead", "later"):
        assert queue.claim(name)
        with presence.present(name):
            pass
        (tmp_path / "workers" / name).touch()
    (tmp_path / "workers" / "idle").touch()
    presence.sweep(queue.is_working)
    assert {path.name for path in (tmp_path / "workers").iterdir()} == {"dead", "later"}
    assert Watch(queue, 1000).look() == 2
    assert list((tmp_path / "workers").iterdir()) == []


def test_what_waits_is_known_without_counting(queue: Queue, tmp_path: Path) -> None:
    assert not queue.waits()
    queue.submit("a", tmp_path / "a", 1, (), 1)
    assert queue.waits()
    assert queue.waits("a")
    assert not queue.waits("b")
    shard = queue.claim("w")
    assert shard
    assert queue.waits()
    queue.pause("a")
    assert not queue.waits()
    queue.resume("a")
    queue.end(queue.claim("w") or shard, "done")
    assert not queue.waits()
