from pathlib import Path

import pytest

from gpustow.errors import NoDevicesError
from gpustow.kubelet.protocol.deviceplugin_v1beta1_pb2 import ListAndWatchResponse
from gpustow.plugin.offer import KubeletPlace, Offer
from tests.plugin.samples import GPU, MIG, config, gpu, node


def test_a_node_with_a_config_is_offered_as_resources_with_their_lists() -> None:
    offer = Offer.of(node(gpu(0), gpu(1, mig_devices=3)), config(mig_strategy="mixed"))
    by_name = {served.resource.name: served for served in offer.served}
    assert set(by_name) == {GPU, MIG}
    sent = ListAndWatchResponse.FromString(by_name[MIG].device_list)
    assert [each.ID for each in sent.devices] == ["MIG-1-0", "MIG-1-1", "MIG-1-2"]


def test_notes_of_the_reader_are_passed_on() -> None:
    noted = node(gpu(0))
    noted = type(noted)(noted.name, noted.platform, noted.gpus, noted.links, notes=("GPU 1 is lost",))
    assert "GPU 1 is lost" in Offer.of(noted, config()).notes


def test_a_node_without_devices_is_told_with_its_name() -> None:
    with pytest.raises(NoDevicesError, match=r"node test has no devices to serve \(0 GPUs") as error:
        Offer.of(node(), config())
    assert error.value.exit_code == 6


def test_our_sockets_lie_beside_kubelets() -> None:
    place = KubeletPlace.of(config(kubelet_socket="/data/kubelet/kubelet.sock"), Path("/default"))
    assert place == KubeletPlace(Path("/data/kubelet"), Path("/data/kubelet/kubelet.sock"))


def test_without_a_kubelet_socket_nobody_is_registered_with() -> None:
    assert KubeletPlace.of(config(kubelet_socket=""), Path("/default")) == KubeletPlace(Path("/default"), None)
