"""Our own generator of the CDI specifications of NVIDIA GPUs, for nodes without the NVIDIA Container Toolkit."""

from gpustow.injection.cdi.generator.generate import generate, host_warnings
from gpustow.injection.cdi.generator.generated import Generated
from gpustow.injection.cdi.generator.otherclasses import generate_other_classes
from gpustow.injection.cdi.generator.roots import DriverRoot

__all__ = ["DriverRoot", "Generated", "generate", "generate_other_classes", "host_warnings"]
