from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pilotage.runtime.config_errors import ConfigError
from pilotage.runtime.flags import Effective, Flags, resolve, secure_address

FILE = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {qps: 11, kubeconfig: /of/the/file}
leaderElection: {leaseDuration: 30s, resourceName: of-the-file}
profiles: [{pluginConfig: [{name: Nope}]}]
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "scheduler.yaml"
    path.write_text(FILE)
    return str(path)


def effective(config: str | None = None, kubeconfig: str | None = None, **given: Any) -> Effective:
    flags = {f"--{name.replace('_', '-')}": value for name, value in given.items()}
    return resolve(Flags(config=config, kubeconfig=kubeconfig, given=flags))


def test_nothing_given() -> None:
    found = effective()
    assert found.warnings == ()
    assert found.kubeconfig == ""
    assert found.loaded.leader_election.leader_elect
    assert found.loaded.settings.pod_max_in_unschedulable == 300.0


def test_flags_alone_are_the_configuration() -> None:
    found = effective(
        kubeconfig="/k",
        kube_api_qps=7.5,
        kube_api_burst=9,
        kube_api_content_type="application/json",
        profiling=False,
        contention_profiling=False,
        leader_elect=False,
        leader_elect_resource_name="mine",
        pod_max_in_unschedulable_pods_duration="1m",
    )
    loaded = found.loaded
    assert (loaded.settings.qps, loaded.settings.burst) == (7.5, 9)
    assert loaded.client.content_type == "application/json"
    assert (loaded.enable_profiling, loaded.enable_contention_profiling) == (False, False)
    assert (loaded.leader_election.leader_elect, loaded.leader_election.resource_name) == (False, "mine")
    assert loaded.settings.pod_max_in_unschedulable == 60.0
    assert found.kubeconfig == "/k"
    assert found.warnings[0] == "--kube-api-qps is deprecated: use clientConnection.qps of --config"


def test_beside_a_file_only_some_flags_count(file: str) -> None:
    found = effective(
        file,
        "/of/the/flag",
        kube_api_qps=7.5,
        leader_elect_renew_deadline="20s",
        leader_elect_resource_name="of-the-flag",
        pod_max_in_unschedulable_pods_duration="0",
        vmodule="a=1",
    )
    election = found.loaded.leader_election
    assert (election.lease_duration, election.renew_deadline, election.resource_name) == (
        30.0,
        20.0,
        "of-the-flag",
    )
    assert found.loaded.settings.qps == 11
    assert found.loaded.settings.pod_max_in_unschedulable == 300.0
    assert found.kubeconfig == "/of/the/file"
    assert found.warnings == (
        f"--kube-api-qps is deprecated: ignored, {file} counts",
        f"--kubeconfig is ignored: {file} names /of/the/file",
        "--vmodule has no effect: there are no log levels per module",
        f'{file}: profiles[0].pluginConfig[0]: plugin "Nope" is not known; its args are not used',
    )


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"leader_elect_lease_duration": "5s"}, "leaderElection.leaseDuration: 5.0: must be longer than"),
        ({"leader_elect_retry_period": "x"}, 'leaderElection.retryPeriod: "x": "x" is not a duration'),
        ({"leader_elect_resource_lock": "endpoints"}, "leaderElection.resourceLock"),
        ({"kube_api_burst": -1}, "clientConnection.burst: -1: must not be negative"),
        ({"pod_max_in_unschedulable_pods_duration": "-1s"}, "must not be negative"),
        ({"pod_max_in_unschedulable_pods_duration": "1"}, "is not a duration"),
    ],
)
def test_bad_flags_are_told(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        effective(**given)
    assert reason in str(caught.value)
    assert caught.value.source == "command line"


def test_a_file_of_another_shape_is_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection: [1]\n"
    )
    with pytest.raises(ConfigError, match="leaderElection") as caught:
        effective(str(path), leader_elect=True)
    assert caught.value.source == str(path)


def test_gates_reach_the_settings() -> None:
    found = resolve(Flags(feature_gates=("SchedulerAsyncAPICalls=false",)))
    assert found.loaded.settings.gates["SchedulerAsyncAPICalls"] is False
    assert found.loaded.settings.gates["SchedulerPopFromBackoffQ"] is True


def test_https_is_wanted_where_one_of_its_flags_is_given() -> None:
    assert secure_address({}) == ("", None)
    assert secure_address({"--bind-address": "::1"}) == ("::1", 10259)
    assert secure_address({"--secure-port": 7}) == ("0.0.0.0", 7)
    assert secure_address({"--bind-address": "::1", "--secure-port": 0}) == ("::1", None)
