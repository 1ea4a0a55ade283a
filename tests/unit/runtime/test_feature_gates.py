from __future__ import annotations

import pytest

from pilotage.framework.gates import DEFAULT_GATES, GATES, Stage
from pilotage.runtime.config_errors import ConfigError
from pilotage.runtime.feature_gates import ACTED_UPON, parse_feature_gates


def refused(*texts: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_feature_gates(texts)
    return [str(problem) for problem in caught.value.problems]


def test_nothing_given_is_the_defaults() -> None:
    choice = parse_feature_gates(())
    assert choice.values == DEFAULT_GATES
    assert choice.warnings == ()
    assert choice.values["SchedulerAsyncAPICalls"]
    assert choice.values["InPlacePodVerticalScalingSchedulerPreemption"]
    assert not choice.values["GangScheduling"]


def test_values_of_all_flags_count_and_the_last_wins() -> None:
    choice = parse_feature_gates(
        ["SchedulerAsyncAPICalls=true, SchedulerPopFromBackoffQ=f", "SchedulerAsyncAPICalls=0,"]
    )
    assert (choice.values["SchedulerAsyncAPICalls"], choice.values["SchedulerPopFromBackoffQ"]) == (
        False,
        False,
    )
    assert choice.warnings == ()


@pytest.mark.parametrize(
    "name", ["InPlacePodVerticalScalingSchedulerPreemption", "SchedulerPreemptionForPodResize"]
)
def test_preemption_for_resizes_is_on_and_has_two_names(name: str) -> None:
    assert DEFAULT_GATES["InPlacePodVerticalScalingSchedulerPreemption"] is True
    choice = parse_feature_gates([f"{name}=false"])
    assert choice.values["InPlacePodVerticalScalingSchedulerPreemption"] is False
    assert set(choice.values) == set(DEFAULT_GATES)
    assert not choice.warnings


def test_groups_set_what_is_not_named() -> None:
    values = parse_feature_gates(["GangScheduling=false,AllAlpha=true,AllBeta=false"]).values
    assert not values["GangScheduling"]
    for gate in GATES.values():
        if gate.stage is Stage.GA:
            assert values[gate.name]
        elif gate.name != "GangScheduling":
            assert values[gate.name] is (gate.stage is Stage.ALPHA), gate.name


def test_all_faults_are_told_at_once() -> None:
    text = "Nope=true,SchedulerAsyncApiCalls=true,OpportunisticBatching,OpportunisticBatching=yes"
    assert refused(text, "SchedulerQueueingHints=false") == [
        '--feature-gates: "Nope": unrecognized feature gate',
        '--feature-gates: "SchedulerAsyncApiCalls": unrecognized feature gate, '
        "did you mean SchedulerAsyncAPICalls?",
        '--feature-gates: "OpportunisticBatching": must be NAME=true or NAME=false',
        '--feature-gates: "OpportunisticBatching=yes": the value must be true or false',
        '--feature-gates: "SchedulerQueueingHints=false": the feature is locked to true',
    ]


def test_gates_that_change_nothing_are_told() -> None:
    choice = parse_feature_gates(["SchedulerQueueingHints=true,GangScheduling=true,PodLevelResources=true"])
    assert choice.warnings == (
        "--feature-gates SchedulerQueueingHints=true: the feature is generally available, "
        "the gate will go away",
        "--feature-gates GangScheduling=true: has no effect here",
    )


def test_gates_acted_upon_are_known() -> None:
    assert GATES.keys() >= ACTED_UPON
