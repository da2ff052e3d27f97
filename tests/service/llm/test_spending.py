"""Budgets of models: what is counted, what is refused, and who shares the count."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from service.llm.chain import answer_in_stages
from service.llm.spending import Price, Spending, Spent, open_spending, read_prices
from service.llm.stages import FinalStage
from service.pipeline.triage import Triage
from service.schemas.diagnosis import Diagnosis
from service.schemas.errors import ModelBudgetError, ModelSetupError
from service.settings import Settings
from tests.service.llm.answering import asked
from tests.service.llm.scripted import Turn, serving

NONSENSE = Turn("not the form that was asked for", usage=(700, 50))


def counting(folder: Path, batch: str = "", **fields: Any) -> Spending:
    """Open a count that something bounds."""
    opened = open_spending(Settings(home=folder, **fields), batch)
    assert opened is not None
    return opened


def test_nothing_is_counted_where_nothing_is_bounded(tmp_path: Path) -> None:
    """Without a budget there is no file, and nothing to wait for."""
    assert open_spending(Settings(home=tmp_path, model_batch_tokens=5)) is None
    assert list(tmp_path.iterdir()) == []


def test_a_request_that_does_not_fit_is_refused_and_counts_for_nothing(tmp_path: Path) -> None:
    """What was settled is what the provider counted, not the estimate."""
    spending = counting(tmp_path, model_day_tokens=1000)
    spending.settle("a:b", spending.reserve("a:b", 600), 300, 100)
    with pytest.raises(ModelBudgetError, match=r"today is used up \(400 of 1000\)"):
        spending.reserve("a:b", 601)
    assert list(spending.spent().values()) == [Spent(400, 0.0)]
    assert spending.reserve("a:b", 600) == Spent(600, 0.0)


def test_a_batch_has_a_budget_of_its_own_within_the_days(tmp_path: Path) -> None:
    """Two batches each have theirs; what both take counts for the day."""
    limits = {"model_day_tokens": 100, "model_batch_tokens": 60}
    first, second = counting(tmp_path, "one", **limits), counting(tmp_path, "two", **limits)
    first.reserve("a:b", 60)
    with pytest.raises(ModelBudgetError, match="this batch is used up"):
        first.reserve("a:b", 1)
    second.reserve("a:b", 40)
    with pytest.raises(ModelBudgetError, match="today is used up"):
        second.reserve("a:b", 1)


def test_money_is_counted_by_the_users_prices(tmp_path: Path) -> None:
    """A model without a price is not asked under a budget of money; one that costs nothing always may be."""
    spending = counting(tmp_path, model_day_cost=0.01, model_prices="a:b=2/20, own:c=0/0")
    spending.settle("a:b", spending.reserve("a:b", 1000), 1000, 400)
    with pytest.raises(ModelBudgetError, match=r"money for today is used up \(0.01 of 0.01\)"):
        spending.reserve("a:b", 1)
    with pytest.raises(ModelBudgetError, match="no price for x:y"):
        spending.reserve("x:y", 1)
    assert spending.reserve("own:c", 1000) == Spent(1000, 0.0)


def test_processes_that_ask_at_once_do_not_spend_the_same_rest(tmp_path: Path) -> None:
    """Of twenty requests at once as many are let through as there is room for."""

    def reserve(_number: int) -> bool:
        try:
            counting(tmp_path, model_day_tokens=70).reserve("a:b", 10)
        except ModelBudgetError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(reserve, range(20))) == 7


def test_what_cannot_be_counted_is_not_spent(tmp_path: Path) -> None:
    """A file that is no database, or a home that cannot be written, keeps models from being asked."""
    (tmp_path / "model-spending.sqlite").write_text("no database" * 200)
    with pytest.raises(ModelBudgetError, match="cannot be counted"):
        counting(tmp_path, model_day_tokens=70).reserve("a:b", 10)


def test_prices_are_read_or_refused_by_row() -> None:
    """A price is a model's name and two numbers; names may hold colons and signs."""
    found = read_prices("openai:gpt=1.25/10, vllm:org/name-7b=0/0 ,")
    assert found == {"openai:gpt": Price(1.25, 10.0), "vllm:org/name-7b": Price(0.0, 0.0)}
    assert read_prices("") == {}
    wrong = ("gpt", "gpt=1", "gpt=1/x", "=1/2", "gpt=-1/2", "gpt=nan/1", "gpt=1/inf")
    taken = []
    for row in wrong:
        try:
            taken.append((row, read_prices(row)))
        except ModelSetupError:
            continue
    assert taken == []


def final_of(triage: Triage, settings: Settings) -> Diagnosis:
    """Answer an incident with the configured models."""
    *_, final = answer_in_stages(asked(triage), settings)
    assert isinstance(final, FinalStage)
    return final.diagnosis


def test_an_answer_whose_budget_is_used_up_is_that_of_the_rules_and_says_so(
    triage: Triage, tmp_path: Path
) -> None:
    """The first answer is paid, the second is not asked for."""
    with serving([NONSENSE]) as server:
        settings = Settings(
            home=tmp_path, model="openai:x", model_base_url=server.url, model_calls=0, model_day_tokens=30_000
        )
        first = final_of(triage, settings)
        paid = len(server.calls)
        second = final_of(triage, replace(settings, model_day_tokens=1600))
        assert len(server.calls) == paid
    assert first.engine.tokens is not None
    assert first.engine.tokens.sent == 700 * paid
    assert second.engine.tokens is None
    assert "The budget of tokens for today is used up" in second.engine.note
    assert second.headline == first.headline


def test_the_second_model_is_asked_where_the_first_fails(triage: Triage, tmp_path: Path) -> None:
    """Both are paid for, and the note says what became of the first; without failures only one is asked."""
    good = Turn(
        '{"cause": null, "certainty": "low", "quotes": [], "cases": [], "changes": [], "explanation": ""}'
    )
    with serving([Turn(status=401)]) as broken, serving([good]) as stands_by:
        settings = Settings(
            home=tmp_path,
            model="openai:first",
            model_base_url=broken.url,
            model_fallback="openai:second",
            model_fallback_base_url=stands_by.url,
            model_calls=0,
        )
        told = final_of(triage, settings).engine
        assert (len(broken.calls), len(stands_by.calls)) == (1, 1)
        swapped = replace(
            settings, model_base_url=stands_by.url, model_fallback_base_url=broken.url, model_calls=0
        )
        assert "Asked instead" not in final_of(triage, swapped).engine.note
        assert len(broken.calls) == 1
    assert "(401)" in told.note
    assert "Asked instead: openai:second." in told.note
    assert told.tokens is not None
    assert told.tokens.received == 56


@pytest.mark.long
def test_a_silent_first_model_leaves_time_for_the_second(triage: Triage, tmp_path: Path) -> None:
    """Two thirds of the time are the first one's."""
    with serving([Turn(silent=30.0)]) as silent, serving([NONSENSE]) as stands_by:
        final = final_of(
            triage,
            Settings(
                home=tmp_path,
                model="openai:first",
                model_base_url=silent.url,
                model_deadline=9.0,
                model_fallback="openai:second",
                model_fallback_base_url=stands_by.url,
                model_calls=0,
            ),
        )
        assert stands_by.calls
    assert "did not answer within 6 s" in final.engine.note
    assert final.headline
