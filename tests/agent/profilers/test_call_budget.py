# SPDX-License-Identifier: Apache-2.0
"""System calls get the step that the budget has room for, and what is left out is known to the nanosecond."""

import numpy as np
import numpy.typing as npt
import pytest

from agent.profilers.breaker import PERIOD_S
from agent.profilers.call_budget import ON_S, CallBudget, CallCosts, CallShares, CostMeter, Step

BUDGET = 0.01
COSTS = CallCosts(counted_ns=200, timed_ns=400)
"""A budget of 1 % has room for 25,000 calls a second with their times, for 50,000 counted."""


class Host:
    """A clock, and a CPU that makes `rate` calls a second; what watching them costs is added up."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.now_s = 5.0
        self.cost_s = self.counted = self.counted_s = self.timed_s = 0.0
        self.is_counted = self.is_timed = False
        self.steps: list[Step] = []

    def follow(self, step: Step, is_counted: bool, is_timed: bool) -> None:
        assert is_counted or not is_timed
        self.steps.append(step)
        self.is_counted, self.is_timed = is_counted, is_timed

    def calls_per_cpu(self) -> npt.NDArray[np.uint64]:
        return np.array([self.counted, 0], np.uint64)

    def costs(self) -> CallCosts:
        return COSTS

    def now_ns(self) -> int:
        return round(self.now_s * 1e9)

    def run(self, budget: CallBudget, seconds: float) -> None:
        """Time goes by as in the agent's loop: it ticks when it is asked to, and a little late."""
        until_s = self.now_s + seconds
        while self.now_s < until_s - 1e-9:
            wait_s = budget.tick()
            step_s = min(until_s - self.now_s, 1.0 if wait_s is None else wait_s + 0.001)
            self.now_s += step_s
            self.counted += self.rate * step_s * self.is_counted
            self.counted_s += step_s * self.is_counted
            self.timed_s += step_s * self.is_timed
            cost_ns = COSTS.timed_ns if self.is_timed else COSTS.counted_ns if self.is_counted else 0
            self.cost_s += self.rate * step_s * cost_ns / 1e9


def started(rate: float, budget: float = BUDGET) -> tuple[Host, CallBudget]:
    host = Host(rate)
    return host, CallBudget(host, budget, 10.0, host.now_ns)


def settled(rate: float) -> tuple[Host, CallBudget, CallShares]:
    """After 10 s, and the shares and costs of 10 s more."""
    host, budget = started(rate)
    host.run(budget, 10)
    budget.close_window(host.now_ns())
    host.cost_s = host.counted_s = host.timed_s = 0.0
    host.run(budget, 10)
    return host, budget, budget.close_window(host.now_ns())


@pytest.mark.parametrize(("rate", "step"), [(20_000, Step.TIMES), (40_000, Step.COUNTS), (60_000, Step.SAMPLES), (1e6, Step.SAMPLES)])
def test_the_step_that_tells_most_within_the_budget_is_taken(rate: float, step: Step) -> None:
    host, budget, shares = settled(rate)
    assert budget.step is step
    # A slice of 2.5 % of the time is timed where all is counted; parts are 50 ms, and one may begin too many.
    assert host.cost_s <= 10 * BUDGET * 1.1 + ON_S * rate * COSTS.timed_ns / 1e9
    assert shares.counted.on_ns == pytest.approx(host.counted_s * 1e9, abs=1000)
    assert shares.timed.on_ns == pytest.approx(host.timed_s * 1e9, abs=1000)
    assert shares.counted.is_whole == (step is not Step.SAMPLES)
    assert shares.timed.is_whole == (step is Step.TIMES)


def test_first_window_begins_when_the_programs_are_attached() -> None:
    class SlowHost(Host):
        def follow(self, step: Step, is_counted: bool, is_timed: bool) -> None:
            super().follow(step, is_counted, is_timed)
            self.now_s += 0.3

    host = SlowHost(100)
    budget = CallBudget(host, BUDGET, 10.0, host.now_ns)
    host.run(budget, 1)
    shares = budget.close_window(host.now_ns())
    assert shares.counted.is_whole and shares.timed.is_whole


def test_counted_calls_are_timed_in_a_slice_of_each_cycle() -> None:
    _, _, shares = settled(40_000)
    assert shares.timed.part == pytest.approx(ON_S / PERIOD_S, rel=0.3)


def test_a_storm_is_met_within_a_third_of_a_second() -> None:
    host, budget = started(200_000)
    host.run(budget, 0.3)
    assert budget.step is Step.SAMPLES


def test_calm_after_a_storm_is_timed_whole() -> None:
    host, budget = started(1e6)
    host.run(budget, 5)
    host.rate = 1000
    host.run(budget, 2 * PERIOD_S)
    budget.close_window(host.now_ns())
    host.run(budget, 10)
    assert budget.close_window(host.now_ns()).timed.is_whole


def test_at_the_edge_of_the_budget_the_step_stays() -> None:
    host, budget = started(26_000)
    host.run(budget, 1)
    assert budget.step is Step.COUNTS
    host.rate = 24_000  # less than the budget, more than nine tenths of it
    host.run(budget, 5)
    assert budget.step is Step.COUNTS


def test_no_window_goes_by_unseen_however_wild_it_gets() -> None:
    host, budget = started(1e9)
    for _ in range(3):
        host.run(budget, 10)
        assert budget.close_window(host.now_ns()).timed.on_ns > 0


def test_no_budget_is_no_limit_and_the_end_is_an_end() -> None:
    host, budget = started(1e9, budget=0)
    assert budget.tick() is None
    host.run(budget, 10)
    assert budget.close_window(host.now_ns()).timed.is_whole
    budget.close()
    assert not host.is_counted and not host.is_timed


def test_costs_are_learned_from_what_was_measured_in_each_step() -> None:
    measured = {"on_call": [0, 0], "on_return": [0, 0]}
    meter = CostMeter(lambda name: (measured[name][0], measured[name][1]))
    first = meter.look(Step.TIMES)
    measured["on_return"] = [999 * 7000, 999]
    assert meter.look(Step.TIMES) == first  # too few to believe
    measured = {"on_call": [2000 * 70, 2000], "on_return": [2000 * 230, 2000]}
    assert meter.look(Step.TIMES) == CallCosts(first.counted_ns, 300)
    measured["on_return"] = [2000 * 230 + 5000 * 110, 7000]
    assert meter.look(Step.COUNTS) == CallCosts(110, 300)
    measured["on_return"] = [10**12, 9000]
    assert meter.look(Step.COUNTS).counted_ns == 5000  # no call costs that; the guest was held up
