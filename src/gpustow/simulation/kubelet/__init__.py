"""An embedded kubelet to test device plugins with: the public surface.

```python
async with EmbeddedKubelet(directory, random=Random(1)) as kubelet:
    ...  # start the plugin with kubelet.registration_socket
    await kubelet.wait_for("example.com/thing", at_least=4)
    pod = await kubelet.admit(Pod("a", containers=(Container("main", {"example.com/thing": 2}),)))
    pod.container("main").device_ids["example.com/thing"]
```

What is imitated, from which version, and what is left out: docs/embedded-kubelet.md.
"""

from gpustow.errors import AdmissionError, KubeletDirectoryError, UsageError
from gpustow.injection import DeviceNode, Mount
from gpustow.simulation.kubelet.admission import HintProvider
from gpustow.simulation.kubelet.answer import Conflict, ContainerAnswer
from gpustow.simulation.kubelet.behaviour import Behaviour, Connections
from gpustow.simulation.kubelet.embedded import EmbeddedKubelet
from gpustow.simulation.kubelet.endpoint import EndpointError, PluginOptions
from gpustow.simulation.kubelet.journal import (
    AllocateCalled,
    Journal,
    PreferenceAsked,
    Registered,
    TopologyDecided,
)
from gpustow.simulation.kubelet.nodestatus import NodeStatus
from gpustow.simulation.kubelet.pod import AdmittedContainer, AdmittedPod, Container, Pod
from gpustow.simulation.kubelet.podbook import Phase, PodStatus, Readmission
from gpustow.simulation.kubelet.state import AllocationError
from gpustow.simulation.kubelet.status import ResourceStatus
from gpustow.simulation.kubelet.topology.hints import Hint, Hints, KubeletPanicError
from gpustow.simulation.kubelet.topology.masks import Mask
from gpustow.simulation.kubelet.topology.settings import TopologySettings

__all__ = [
    "AdmissionError",
    "AdmittedContainer",
    "AdmittedPod",
    "AllocateCalled",
    "AllocationError",
    "Behaviour",
    "Conflict",
    "Connections",
    "Container",
    "ContainerAnswer",
    "DeviceNode",
    "EmbeddedKubelet",
    "EndpointError",
    "Hint",
    "HintProvider",
    "Hints",
    "Journal",
    "KubeletDirectoryError",
    "KubeletPanicError",
    "Mask",
    "Mount",
    "NodeStatus",
    "Phase",
    "PluginOptions",
    "Pod",
    "PodStatus",
    "PreferenceAsked",
    "Readmission",
    "Registered",
    "ResourceStatus",
    "TopologyDecided",
    "TopologySettings",
    "UsageError",
]
