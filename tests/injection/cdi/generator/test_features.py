"""Feature flags."""

import pytest

from gpustow.config import Config
from gpustow.injection.cdi.generator.features import Features


@pytest.mark.parametrize(
    ("flag", "features"),
    [
        ("enable-explicit-driver-libraries", Features(explicit_libraries=True)),
        ("enable-coherent-annotations", Features(coherent_annotations=True)),
        ("no-additional-gids-for-device-nodes", Features(additional_gids=False)),
        ("disable-ipc-discoverer", Features(sockets=False)),
        ("disable-nvsandboxutils", Features()),
        ("disable-nvsandbox-utils", Features()),
        ("disable-multiple-csv-devices", Features()),
        ("enable-magic", Features(unknown=("enable-magic",))),
    ],
)
def test_each_flag_changes_what_it_names(flag: str, features: Features) -> None:
    assert Features.of(Config(cdi_feature_flags=(flag, flag))) == features
