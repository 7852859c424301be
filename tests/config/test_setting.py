"""A setting: what it may be, and how its values are written."""

import pytest

from gpustow.config import FEATURE_SETTINGS, SETTINGS, Setting
from gpustow.config.config import Config
from gpustow.config.setting import Value
from gpustow.config.settings import BY_FLAG, BY_KEY


@pytest.mark.parametrize(
    ("flag", "value", "written"),
    [
        ("mig-strategy", "mixed", "mixed"),
        ("config-file", "", '""'),
        ("gds-enabled", True, "true"),
        ("gds-enabled", False, "false"),
        ("imex-channel-ids", (0,), "[0]"),
        ("device-list-strategy", ("envvar", "cdi-cri"), "[envvar, cdi-cri]"),
        ("sleep-interval", 90 * 10**9, "1m30s"),
    ],
)
def test_a_value_is_written_as_the_file_would_have_it(flag: str, value: Value, written: str) -> None:
    setting = next(setting for setting in (*SETTINGS, *FEATURE_SETTINGS) if setting.flag == flag)
    assert setting.shown(value) == written


@pytest.mark.parametrize("setting", [*SETTINGS, *FEATURE_SETTINGS], ids=lambda setting: setting.flag)
def test_every_default_may_be(setting: Setting) -> None:
    setting.check(setting.default)


def test_no_name_stands_for_two_settings() -> None:
    names = [name for setting in SETTINGS for name in setting.names]
    envs = [env for setting in SETTINGS for env in setting.envs]
    keys = [setting.key for setting in (*SETTINGS, *FEATURE_SETTINGS) if setting.key]
    for words, known in ((names, BY_FLAG), (envs, None), (keys, BY_KEY)):
        assert len(words) == len(set(words))
        assert known is None or set(words) == set(known)


def test_every_setting_has_its_field() -> None:
    assert {setting.attribute for setting in SETTINGS} <= set(Config.__dataclass_fields__)
