from dataclasses import replace
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped] # it has no types
import pytest
import yaml

from gpustow.cli.options import own_flags
from gpustow.cli.plugin import prepare
from gpustow.config import SETTINGS, Config
from gpustow.hardware.nodemodel import load_node_model
from gpustow.kubelet.podresources import pod_resources_socket
from gpustow.kubelet.socketfile import DEFAULT_DIRECTORY
from gpustow.telemetry.facts import CONFIGURATION_CHECK, DEVICES_CHECK, NODE_CHECK, Check
from gpustow.telemetry.http.message import Request
from gpustow.telemetry.telemetry import Telemetry
from tests.telemetry.samples import facts
from tests.telemetry.test_exposition import Source

STATIC = Path(__file__).parents[2] / "deploy" / "static"
MANIFESTS = sorted(STATIC.glob("*.yaml"))
VERSIONS = ("1.28", "1.30", "1.32", "1.34", "1.36", "1.37")
OWN_FLAGS = {name for flag in own_flags() for name in flag.names}

CHECKS_OF_A_NODE_WITHOUT_GPUS = (Check(NODE_CHECK, "there is no NVIDIA driver"), Check(DEVICES_CHECK, "GPU 0 is lost"))


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def container(path: Path) -> dict[str, Any]:
    [daemon_set] = documents(path)
    [only] = daemon_set["spec"]["template"]["spec"]["containers"]
    assert isinstance(only, dict)
    return only


def host_paths(path: Path) -> dict[str, dict[str, str]]:
    [daemon_set] = documents(path)
    return {volume["name"]: volume["hostPath"] for volume in daemon_set["spec"]["template"]["spec"]["volumes"]}


def arguments(path: Path) -> dict[str, str]:
    words = (str(word).removeprefix("--").partition("=") for word in container(path)["args"])
    return {name: value for name, _, value in words}


def test_there_is_a_manifest_for_real_nodes_and_one_for_simulated_ones() -> None:
    assert [path.name for path in MANIFESTS] == [
        "gpustow-device-plugin-simulated.yaml",
        "gpustow-device-plugin.yaml",
    ]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_manifests_are_valid_in_every_version_of_kubernetes(path: Path, version: str) -> None:
    for document in documents(path):
        assert kubernetes_validate.validate(document, version, strict=True).startswith(version)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_every_flag_of_a_manifest_exists_and_has_a_value_that_is_allowed(path: Path) -> None:
    settings = {name: setting for setting in SETTINGS for name in setting.names}
    for name, value in arguments(path).items():
        assert name in settings.keys() | OWN_FLAGS
        if name in settings and settings[name].allowed:
            assert value in settings[name].allowed


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_no_word_of_a_manifest_is_ignored(path: Path) -> None:
    words = container(path)["args"]
    assert list(prepare(words)) == words


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_probes_ask_the_port_at_which_the_daemon_listens_for_paths_that_it_has(path: Path) -> None:
    [port] = container(path)["ports"]
    assert arguments(path)["metrics-address"] == f":{port['containerPort']}"
    answers = Telemetry(Source(replace(facts(), checks=CHECKS_OF_A_NODE_WITHOUT_GPUS)))
    for probe in ("livenessProbe", "readinessProbe"):
        request = container(path)[probe]["httpGet"]
        assert request["port"] == port["name"]
        assert answers._endpoints.answer(Request("GET", request["path"])).status == 200


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_a_refused_configuration_holds_a_rollout_up(path: Path) -> None:
    answers = Telemetry(Source(replace(facts(), checks=(Check(CONFIGURATION_CHECK, "replicas: 1"),))))
    target = container(path)["readinessProbe"]["httpGet"]["path"]
    assert answers._endpoints.answer(Request("GET", target)).status == 503


def test_what_is_scraped_is_the_port_of_the_manifest_for_real_nodes() -> None:
    [service, _monitor] = documents(STATIC.parent / "monitoring" / "gpustow-servicemonitor.yaml")
    [real] = [path for path in MANIFESTS if "node-model" not in arguments(path)]
    [port] = service["spec"]["ports"]
    assert port["targetPort"] == container(real)["ports"][0]["containerPort"]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_the_selector_selects_the_pods(path: Path) -> None:
    [daemon_set] = documents(path)
    labels = daemon_set["spec"]["template"]["metadata"]["labels"]
    assert daemon_set["spec"]["selector"]["matchLabels"].items() <= labels.items()


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_the_container_has_no_powers_that_it_does_not_need(path: Path) -> None:
    [daemon_set] = documents(path)
    pod = daemon_set["spec"]["template"]["spec"]
    security = container(path)["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["allowPrivilegeEscalation"] is False
    assert security["readOnlyRootFilesystem"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert pod["priorityClassName"] == "system-node-critical"
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_mounts_are_the_hosts_directories_at_the_same_path_but_for_the_drivers_root(path: Path) -> None:
    volumes = {name: host["path"] for name, host in host_paths(path).items()}
    mounts = {mount["name"]: mount["mountPath"] for mount in container(path)["volumeMounts"]}
    assert mounts == volumes | ({"driver-root": Config().driver_root_ctr_path} if "driver-root" in volumes else {})
    assert "/var/lib/kubelet/device-plugins" in mounts.values()


def test_cdi_can_be_asked_for_on_real_nodes() -> None:
    """As in the chart of v0.20.0: specifications can be written, and the driver's files be found."""
    [real] = [path for path in MANIFESTS if "node-model" not in arguments(path)]
    mounts = {
        mount["mountPath"]: (mount["name"], mount.get("readOnly", False)) for mount in container(real)["volumeMounts"]
    }
    written, is_read_only = mounts[Config().cdi_directory]
    assert not is_read_only
    assert host_paths(real)[written] == {"path": Config().cdi_directory, "type": "DirectoryOrCreate"}
    searched, is_read_only = mounts[Config().driver_root_ctr_path]
    assert is_read_only
    assert host_paths(real)[searched] == {"path": Config().driver_root, "type": "Directory"}


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_a_node_without_kubelets_list_of_what_is_in_use_does_not_keep_the_pod_from_starting(path: Path) -> None:
    volumes = host_paths(path)
    assert Path(volumes["pod-resources"]["path"]) == pod_resources_socket(DEFAULT_DIRECTORY / "kubelet.sock").parent
    assert volumes["pod-resources"]["type"] == "DirectoryOrCreate"


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_a_rollout_waits_for_what_ends_at_once(path: Path) -> None:
    [daemon_set] = documents(path)
    assert daemon_set["spec"]["minReadySeconds"] > 0
    assert daemon_set["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 1}


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_nodes_that_are_kept_for_gpu_pods_get_the_plugin(path: Path) -> None:
    [daemon_set] = documents(path)
    tolerated = {taint["key"]: taint for taint in daemon_set["spec"]["template"]["spec"]["tolerations"]}
    assert tolerated["nvidia.com/gpu"] == {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    assert tolerated["CriticalAddonsOnly"]["operator"] == "Exists"


def test_the_simulated_node_of_the_manifest_is_shipped() -> None:
    [simulated] = [path for path in MANIFESTS if "node-model" in arguments(path)]
    assert load_node_model(arguments(simulated)["node-model"]).node.gpus


def test_both_manifests_start_the_image_that_the_dockerfile_names() -> None:
    dockerfile = (STATIC.parent / "Dockerfile").read_text(encoding="utf-8")
    for path in MANIFESTS:
        assert f"-t {container(path)['image']} " in dockerfile
        assert "command" not in container(path)
