from gpustow.config import LoadedConfig, load_config
from gpustow.plugin.configchange import SAME, change_lines
from tests.plugin.samples import loaded


def with_file(text: str, **environ: str) -> LoadedConfig:
    return load_config({"config-file": "c.yaml"}, environ, lambda _: text)


def test_a_configuration_that_is_the_same_is_told_as_such() -> None:
    assert change_lines(loaded(), loaded()) == (SAME,)
    assert change_lines(with_file("version: v1"), with_file("version: v1 # as before")) == (SAME,)


def test_the_same_value_from_another_source_is_no_change() -> None:
    file = "{version: v1, flags: {migStrategy: mixed}}"
    assert change_lines(with_file("version: v1", MIG_STRATEGY="mixed"), with_file(file)) == (SAME,)


def test_each_setting_that_differs_is_told_with_its_old_and_new_value_and_nothing_else() -> None:
    before = loaded(mig_strategy="single", device_id_strategy="index")
    after = loaded(mig_strategy="mixed", device_list_strategy="volume-mounts")
    assert change_lines(before, after) == (
        "changed: flags.migStrategy: single -> mixed (from the flag)",
        "changed: flags.plugin.deviceListStrategy: [envvar] -> [volume-mounts] (from the flag)",
        "changed: flags.plugin.deviceIDStrategy: index -> uuid (from the default)",
    )


def test_what_stands_in_the_file_alone_comes_and_goes() -> None:
    without, held = with_file("version: v1"), with_file("{version: v1, health: {xidPolicy: catalogue}}")
    assert change_lines(without, held) == ("changed: health: not set -> {xidPolicy: catalogue} (from the file)",)
    assert change_lines(held, without) == ("changed: health: {xidPolicy: catalogue} -> not set",)
