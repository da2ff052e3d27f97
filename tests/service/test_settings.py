"""Settings: where they come from, and what a wrong one says."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from service.errors import SettingsError
from service.settings import NUMBERS, PREFIX, SECRETS, Settings, load


def toml(folder: Path, text: str | bytes) -> Path:
    """Write a whycrash.toml."""
    path = folder / "whycrash.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("environment", "file", "expected"),
    [
        ({}, "", ""),
        ({}, 'lang = "zh"', "zh"),
        ({"WHYCRASH_LANG": "en"}, "", "en"),
        ({"WHYCRASH_LANG": "en"}, 'lang = "zh"', "en"),
        ({"WHYCRASH_LANG": ""}, 'lang = "zh"', "zh"),
        ({"LANG": "zh_CN.UTF-8"}, "", ""),
    ],
)
def test_a_variable_outranks_the_file_and_the_file_the_default(
    environment: dict[str, str], file: str, expected: str, tmp_path: Path
) -> None:
    """The nearest place that sets a value wins; an empty variable sets none."""
    assert load(environment, toml(tmp_path, file)).lang == expected


def test_without_variables_and_file_the_defaults_stand(tmp_path: Path) -> None:
    """Nothing needs to be set."""
    assert load({}, tmp_path / "none.toml") == Settings()


def test_the_home_is_a_path_with_its_tilde_expanded(tmp_path: Path) -> None:
    """A folder may be given as people write it."""
    assert load({"WHYCRASH_HOME": "~/crashes"}, tmp_path / "none.toml").home == Path.home() / "crashes"


@pytest.mark.parametrize(
    ("environment", "file", "told"),
    [
        ({"WHYCRASH_LANG": "fr"}, "", "fr"),
        ({}, 'lang = "fr"', "fr"),
        ({}, 'langage = "en"', "langage"),
        ({}, "lang = ", "whycrash.toml"),
        ({}, b'lang = "\xff"', "whycrash.toml"),
        ({}, "embedding_model = 3", "embedding_model"),
        ({}, "home = true", "home"),
        ({}, "lang = ['en']", "lang"),
        ({"WHYCRASH_MODEL_DEADLINE": "soon"}, "", "MODEL_DEADLINE"),
        ({"WHYCRASH_MODEL_DEADLINE": "0"}, "", "1 or more"),
        ({"WHYCRASH_MODEL_DEADLINE": "inf"}, "", "MODEL_DEADLINE"),
        ({}, "model_tokens = true", "model_tokens"),
        ({}, "model_tokens = 10", "2000 or more"),
    ],
)
def test_a_wrong_setting_is_named(
    environment: dict[str, str], file: str | bytes, told: str, tmp_path: Path
) -> None:
    """What cannot be used raises SettingsError that names the setting, the value or the file."""
    with pytest.raises(SettingsError, match=f"(?i){told}"):
        load(environment, toml(tmp_path, file))


@pytest.mark.parametrize("name", [item.name for item in fields(Settings)])
def test_every_setting_has_a_sentence(name: str) -> None:
    """The table of settings has something to say on each row."""
    says = next(item for item in fields(Settings) if item.name == name).metadata["says"]
    assert says[0].isupper()
    assert says.endswith(".")


@pytest.mark.parametrize("name", [item.name for item in fields(Settings)])
def test_every_setting_can_be_set_by_its_variable(name: str, tmp_path: Path) -> None:
    """The variable is the prefix and the field's name in capitals."""
    values = {**dict.fromkeys(NUMBERS, "4000"), "lang": "zh", "model_deadline": "12.5", "request_deadline": "12.5"}
    loaded = getattr(load({PREFIX + name.upper(): values.get(name, "/x")}, tmp_path / "none.toml"), name)
    assert str(loaded.get_secret_value() if name in SECRETS else loaded) == values.get(name, "/x")


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_no_secret_shows_in_what_settings_look_like(name: str, tmp_path: Path) -> None:
    """A settings object may end up in a log."""
    assert "hunter2" not in repr(load({PREFIX + name.upper(): "hunter2"}, tmp_path / "none.toml"))


def test_settings_cannot_be_changed_after_loading() -> None:
    """Settings are a value."""
    with pytest.raises(AttributeError):
        Settings().lang = "zh"  # type: ignore[misc]  # which is what is tested
