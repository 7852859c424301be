"""The socket files go."""

from pathlib import Path

from tests.devicemanager.backend import Backend
from tests.devicemanager.plugin import GPU
from tests.devicemanager.scene import scene
from tests.kubelet.fakekubelet import until
from tests.plugin.samples import our_sockets


async def test_our_socket_alone_is_deleted_and_we_register_anew(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at:
        pod = await at.admit(1)
        (socket,) = our_sockets(at.kubelet.plugin_directory)
        (at.kubelet.plugin_directory / socket).unlink()
        await until(lambda: at.plugin.witness.registrations[GPU] >= 2)
        await at.plugin.settled()
        assert our_sockets(at.kubelet.plugin_directory) != [socket]
        assert at.held(pod) == pod.device_ids(GPU)
        assert len((await at.admit(3)).device_ids(GPU)) == 3


async def test_the_socket_directory_is_wiped_and_all_is_well_once_kubelet_is_restarted(
    backend: Backend, directory: Path
) -> None:
    async with scene(backend, directory, "t4-4") as at:
        pod = await at.admit(1)
        for path in at.kubelet.plugin_directory.iterdir():
            path.unlink()
        await until(lambda: "waits for kubelet" in str(at.plugin.supervisor.not_ready))
        assert our_sockets(at.kubelet.plugin_directory) == []
        await at.kubelet.restart()
        await at.plugin.settled()
        assert at.kubelet.capacity() == {GPU: 4}
        assert our_sockets(at.kubelet.plugin_directory) != []
        assert pod.device_ids(GPU)


async def test_foreign_files_beside_the_sockets_are_left_alone(backend: Backend, directory: Path) -> None:
    async with scene(backend, directory, "t4-4") as at:
        foreign = at.kubelet.plugin_directory / "DEPRECATION"
        foreign.write_text("use something else")
        await at.kubelet.restart()
        await at.plugin.settled()
    assert foreign.read_text() == "use something else"
