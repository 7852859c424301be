"""An embedded kubelet to test device plugins with: the public surface.

```python
async with EmbeddedKubelet(directory, random=Random(1)) as kubelet:
    ...  # start the plugin with kubelet.registration_socket
    await kubelet.wait_for("example.com/thing", at_least=4)
    pod = await kubelet.admit(Pod("a", containers=(Container("main", {"example.com/thing": 2}),)))
    pod.container("main").device_ids["example.com/thing"]
```
"""

from gpustow.simulation.kubelet.answer import ContainerAnswer, DeviceNode, Mount
from gpustow.simulation.kubelet.embedded import EmbeddedKubelet
from gpustow.simulation.kubelet.pod import AdmittedContainer, AdmittedPod, Container, Pod

__all__ = [
    "AdmittedContainer",
    "AdmittedPod",
    "Container",
    "ContainerAnswer",
    "DeviceNode",
    "EmbeddedKubelet",
    "Mount",
    "Pod",
]
