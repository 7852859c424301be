import asyncio
from functools import partial

import pytest

from gpustow.simulation.kubelet.news import News


def has_at_least(found: list[int], size: int) -> bool:
    return len(found) >= size


async def test_a_condition_that_holds_is_not_waited_for() -> None:
    await News().wait_until(lambda: True, 0)


async def test_a_condition_that_comes_true_without_news_is_seen() -> None:
    found: list[int] = []
    asyncio.get_running_loop().call_later(0.001, found.append, 1)
    await News().wait_until(lambda: bool(found), 10)


async def test_news_wakes_all_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpustow.simulation.kubelet.news.LOOK_AGAIN", 60.0)
    news = News()
    found: list[int] = []
    waiting = [asyncio.create_task(news.wait_until(partial(has_at_least, found, size), 10)) for size in (1, 2, 2)]
    for number in range(2):
        await asyncio.sleep(0)
        found.append(number)
        news.tell()
    await asyncio.gather(*waiting)


async def test_patience_ends() -> None:
    with pytest.raises(TimeoutError):
        await News().wait_until(lambda: False, 0.01)
