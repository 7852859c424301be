"""What the parts of a specification are made from: one value, so that each platform's module takes the same."""

from dataclasses import dataclass

from gpustow.config import Config
from gpustow.injection.cdi.generator.features import Features
from gpustow.injection.cdi.generator.findings import Findings
from gpustow.injection.cdi.generator.hooks import Hooks
from gpustow.injection.cdi.generator.mounts import FileSearch
from gpustow.injection.cdi.generator.nodes import DeviceNodes
from gpustow.injection.cdi.generator.roots import DriverRoot


@dataclass(frozen=True, slots=True)
class Sources:
    """The driver's root, what is asked of it, and who searches it. The searches add to `findings`."""

    config: Config
    root: DriverRoot
    features: Features
    hooks: Hooks
    search: FileSearch
    nodes: DeviceNodes

    @classmethod
    def of(cls, config: Config, root: DriverRoot) -> "Sources":
        """For one generation."""
        features = Features.of(config)
        search = FileSearch(root, Findings(root.driver_root))
        nodes = DeviceNodes(root, Findings(root.dev_root), additional_gids=features.additional_gids)
        return cls(config, root, features, Hooks(config), search, nodes)

    @property
    def findings(self) -> Findings:
        """What is not found of the driver's files."""
        return self.search.findings

    @property
    def left_out(self) -> tuple[str, ...]:
        """What was looked for and not found of the driver's files, one sentence each."""
        return self.findings.left_out

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be done, and which device nodes are not there, one sentence each."""
        return (*self.findings.warnings, *self.nodes.findings.left_out)
