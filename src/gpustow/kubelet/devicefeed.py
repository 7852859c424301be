"""The device list on its way to kubelet: built once, sent at once to each new stream and again when it changes.

Each message is the complete list and replaces the one before; kubelet writes its checkpoint for each. So nothing is
sent without a change, and a stream that is slow gets the newest list rather than each in between. Each stream has its
own place in line: with kubelet 1.36 and older several can be open at once, and one must not take another's update.

Rules of kubelet for what is in the list: NUMA nodes for all devices of a resource or for none (`numa_nodes_told`),
never node -1, and no empty topology.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

from gpustow.kubelet.protocol.deviceplugin_v1beta1_pb2 import Device, ListAndWatchResponse, NUMANode, TopologyInfo
from gpustow.kubelet.protocol.services import HEALTHY, UNHEALTHY
from gpustow.resources import device as resources


def device_list(devices: Sequence[resources.Device]) -> bytes:
    """The serialised ListAndWatchResponse for `devices`."""
    return ListAndWatchResponse(
        devices=[
            Device(
                ID=device.id,
                health=HEALTHY if device.healthy else UNHEALTHY,
                topology=TopologyInfo(nodes=[NUMANode(ID=node)]) if node is not None else None,
            )
            for device, node in zip(devices, resources.numa_nodes_told(devices), strict=True)
        ]
    ).SerializeToString()


class DeviceFeed:
    """The list of one server, for all streams of it.

    `on_change` is called when a stream opens or ends. `opened` counts the streams that there have been, `streams` those
    that there are.
    """

    def __init__(self, message: bytes, on_change: Callable[[], None]) -> None:
        self._message = message
        self._on_change = on_change
        self._closed = False
        self._wakes: set[asyncio.Event] = set()
        self.opened = 0

    @property
    def streams(self) -> int:
        """How many streams are open."""
        return len(self._wakes)

    def publish(self, message: bytes) -> None:
        """Makes `message` the list; streams send it if it differs from what they sent last."""
        self._message = message
        self._wake()

    def close(self) -> None:
        """Ends all streams, each after it has sent the newest list; later ones send it and end."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        for wake in self._wakes:
            wake.set()

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """The list now, and each time that it differs."""
        wake = asyncio.Event()
        self._wakes.add(wake)
        self.opened += 1
        self._on_change()
        try:
            sent: bytes | None = None
            while True:
                wake.clear()
                if sent != self._message:
                    sent = self._message
                    yield sent
                elif self._closed:
                    return
                else:
                    await wake.wait()
        finally:
            self._wakes.discard(wake)
            self._on_change()
