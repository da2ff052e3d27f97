"""Settings: where they come from, and what a wrong one says."""

from __future__ import annotations

import os
import stat
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from service.schemas.errors import SettingsError
from service.settings import (
    MAX_FILE_BYTES,
    NUMBERS,
    PREFIX,
    SECRETS,
    Settings,
    allowed_files,
    load_settings,
    own_file,
    read,
)
from tests.tables import each_row

# All that a folder's file may set; whoever adds to it has shown that it sends nothing, opens nothing and
# weakens nothing.
HARMLESS = {"lang": "zh"}


def toml(folder: Path, text: str | bytes) -> Path:
    """Write a whycrash.toml that nobody else may write."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "whycrash.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(0o600)
    return path


def value_of(name: str) -> Any:
    """Give a value that the setting takes, and that is not its default."""
    return {"lang": "zh", "redact_extra": "crew badge"}.get(name) or (
        4321 if name in NUMBERS else "/elsewhere"
    )


def shown(settings: Settings) -> dict[str, Any]:
    """Give the settings with their secrets laid open."""
    return {
        item.name: getattr(settings, item.name)
        if item.name not in SECRETS
        else getattr(settings, item.name).get_secret_value()
        for item in fields(Settings)
    }


@each_row(
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
    assert load_settings(environment, toml(tmp_path, file)).lang == expected


def test_without_variables_and_file_the_defaults_stand(tmp_path: Path) -> None:
    """Nothing needs to be set."""
    assert load_settings({}, tmp_path / "none.toml") == Settings()


def test_the_home_is_a_path_with_its_tilde_expanded(tmp_path: Path) -> None:
    """A folder may be given as people write it."""
    assert (
        load_settings({"WHYCRASH_HOME": "~/crashes"}, tmp_path / "none.toml").home == Path.home() / "crashes"
    )


@each_row(
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
        load_settings(environment, toml(tmp_path, file))


@each_row("name", [item.name for item in fields(Settings)])
def test_every_setting_has_a_sentence(name: str) -> None:
    """The table of settings has something to say on each row."""
    says = next(item for item in fields(Settings) if item.name == name).metadata["says"]
    assert says[0].isupper()
    assert says.endswith(".")


@each_row("name", [item.name for item in fields(Settings)])
def test_every_setting_can_be_set_by_its_variable(name: str, tmp_path: Path) -> None:
    """The variable is the prefix and the field's name in capitals."""
    values = {
        **{number: "4000" if kind is int else "12.5" for number, (kind, _least) in NUMBERS.items()},
        "lang": "zh",
        "redact_extra": "crew badge",
    }
    loaded = getattr(
        load_settings({PREFIX + name.upper(): values.get(name, "/x")}, tmp_path / "none.toml"), name
    )
    assert str(loaded.get_secret_value() if name in SECRETS else loaded) == values.get(name, "/x")


@each_row("name", sorted(SECRETS))
def test_no_secret_shows_in_what_settings_look_like(name: str, tmp_path: Path) -> None:
    """A settings object may end up in a log."""
    assert "hunter2" not in repr(load_settings({PREFIX + name.upper(): "hunter2"}, tmp_path / "none.toml"))


def test_settings_cannot_be_changed_after_loading() -> None:
    """Settings are a value."""
    with pytest.raises(AttributeError):
        Settings().lang = "zh"  # type: ignore[misc]  # which is what is tested


def test_a_folders_file_sets_only_what_is_allowed(tmp_path: Path) -> None:
    """Every setting in turn: what may send data, open an address or a path, or lift a bound stays as it was,
    and is named.
    """
    moved, silent = [], []
    for item in fields(Settings):
        value = value_of(item.name)
        folder = tmp_path / item.name
        toml(folder, f"{item.name} = {value!r}\n")
        loaded = read({}, tmp_path / "none.toml", folder)
        expected = {**shown(Settings()), **({item.name: value} if item.name in HARMLESS else {})}
        moved += [item.name] if shown(loaded.settings) != expected else []
        named = [(told.trouble, told.name) for told in loaded.ignored]
        silent += (
            [item.name] if named != ([] if item.name in HARMLESS else [("not-allowed", item.name)]) else []
        )
    assert (moved, silent) == ([], [])


def test_the_same_settings_count_in_the_users_own_file(tmp_path: Path) -> None:
    """Every setting in turn can be set there."""
    left = [
        item.name
        for item in fields(Settings)
        if str(
            shown(
                load_settings(
                    {}, toml(tmp_path / item.name, f"{item.name} = {value_of(item.name)!r}\n"), tmp_path
                )
            )[item.name]
        )
        not in (str(value_of(item.name)), f"{value_of(item.name)}.0")
    ]
    assert left == []


def test_the_environment_comes_before_the_own_file_and_that_before_the_folders(tmp_path: Path) -> None:
    """The nearer to the user, the stronger."""
    toml(tmp_path / "folder", 'lang = "zh"\n')
    own = toml(tmp_path / "own", 'lang = "en"\n')
    rows = [({}, tmp_path / "none.toml", "zh"), ({}, own, "en"), ({"WHYCRASH_LANG": "zh"}, own, "zh")]
    assert [load_settings(environment, file, tmp_path / "folder").lang for environment, file, _ in rows] == [
        expected for *_, expected in rows
    ]


def test_a_folders_file_that_is_no_settings_keeps_nobody_from_reading(tmp_path: Path) -> None:
    """Whatever lies there under that name, the settings are the user's own, and the trouble is told."""
    beside = tmp_path / "secret.txt"
    beside.write_text("password = hunter2 hunter2\n")
    made: dict[str, Any] = {
        "no TOML": b"lang = ",
        "no UTF-8": b'lang = "\xff"',
        "deeply nested": b"a = " + b"[" * 30_000,
        "large": b"# " + b"x" * MAX_FILE_BYTES,
        "another type": b"lang = 3",
        "another value": b'lang = "fr"',
        "a list": b"lang = ['zh']",
        "an unknown name": b'langage = "zh"',
        "a name to fool a terminal": b'"\\u001b]0;x\\u0007" = 1',
        "a folder": lambda path: path.mkdir(),
        "a pipe that nobody writes": os.mkfifo,
        "a link to nowhere": lambda path: path.symlink_to(tmp_path / "nowhere"),
        "a link to a device": lambda path: path.symlink_to("/dev/zero"),
        "a link to something else": lambda path: path.symlink_to(beside),
    }
    wrong = []
    for name, content in made.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "whycrash.toml").write_bytes(content) if isinstance(content, bytes) else content(
            folder / "whycrash.toml"
        )
        loaded = read({}, tmp_path / "none.toml", folder)
        told = "".join(item.name for item in loaded.ignored)
        wrong += (
            [name]
            if loaded.settings != Settings()
            or len(loaded.ignored) != 1
            or "\x1b" in told
            or "hunter2" in told
            else []
        )
    assert wrong == []


ALLOWED = 'model = "openai:x"\nmodel_base_url = "http://127.0.0.1:9/v1"\n'


def allowed_folder(tmp_path: Path) -> tuple[Path, Path]:
    """Make a folder whose file is allowed; gives that file, and the user's own."""
    file, own = toml(tmp_path / "job", ALLOWED), tmp_path / "own" / "whycrash.toml"
    allowed_files(own).allow(file, file.read_bytes())
    return file, own


def test_an_allowed_file_counts_where_it_is_and_as_it_is(tmp_path: Path) -> None:
    """It sets what it says, behind the user's own file and the environment."""
    file, own = allowed_folder(tmp_path)
    loaded = read({}, own, file.parent)
    assert (loaded.settings.model, loaded.ignored) == ("openai:x", ())
    assert read({"WHYCRASH_MODEL": "openai:y"}, own, file.parent).settings.model == "openai:y"
    toml(own.parent, 'model = "openai:z"')
    assert read({}, own, file.parent).settings.model == "openai:z"
    assert stat.S_IMODE((own.parent / "allowed.json").stat().st_mode) == 0o600


def test_every_changed_byte_ends_a_permission(tmp_path: Path) -> None:
    """Wherever it stands, whatever results; and it comes back with the old content."""
    file, own = allowed_folder(tmp_path)
    still = []
    for place in range(len(ALLOWED)):
        file.write_text(ALLOWED[:place] + "y" + ALLOWED[place:])
        loaded = read({}, own, file.parent)
        if loaded.settings != Settings() or not loaded.ignored:
            still.append(place)
    for content in (ALLOWED + " ", ALLOWED[:-1], ALLOWED.replace("\n", "\r\n"), "\ufeff" + ALLOWED):
        file.write_bytes(content.encode())
        still += [content] if read({}, own, file.parent).settings != Settings() else []
    assert still == []
    file.write_text(ALLOWED + "# more\n")
    assert [item.trouble for item in read({}, own, file.parent).ignored] == [
        "changed",
        "not-allowed",
        "not-allowed",
    ]
    file.write_text(ALLOWED)
    assert read({}, own, file.parent).settings.model == "openai:x"


def test_a_permission_is_of_one_place(tmp_path: Path) -> None:
    """A copy elsewhere, or what took the place of the folder, is another file; a link to it is the same."""
    file, own = allowed_folder(tmp_path)
    copy = toml(tmp_path / "copy", ALLOWED)
    (linked := tmp_path / "linked").symlink_to(file.parent)
    (moved := tmp_path / "moved").mkdir()
    assert read({}, own, copy.parent).settings == Settings()
    assert read({}, own, linked).settings.model == "openai:x"
    file.rename(moved / "whycrash.toml")
    assert read({}, own, moved).settings == Settings()
    (file.parent / "whycrash.toml").symlink_to(moved / "whycrash.toml")
    assert read({}, own, file.parent).settings == Settings()


def test_an_allowed_file_sets_nothing_that_is_wrong(tmp_path: Path) -> None:
    """What is no setting, or no value of one, is named and left alone."""
    own = tmp_path / "own" / "whycrash.toml"
    file = toml(
        tmp_path, 'model = ["x"]\nport = "no"\nredact_extra = "/a*/"\nlangage = 1\nchroma_url = "http://x"'
    )
    allowed_files(own).allow(file, file.read_bytes())
    loaded = read({}, own, tmp_path)
    assert loaded.settings == Settings(chroma_url="http://x")
    assert {item.name: item.trouble for item in loaded.ignored} == {
        "langage": "unknown",
        "model": "wrong",
        "port": "wrong",
        "redact_extra": "wrong",
    }


def test_a_list_that_others_could_have_written_allows_nothing(tmp_path: Path) -> None:
    """Nor does one that is damaged; `allow` says so, and does not write over it."""
    file, own = allowed_folder(tmp_path)
    kept = own.parent / "allowed.json"
    right = kept.read_bytes()
    for mode, content in (
        (0o622, right),
        (0o660, right),
        (0o600, b"{"),
        (0o600, b"[]"),
        (0o600, b'{"a": 1}'),
    ):
        kept.write_bytes(content)
        kept.chmod(mode)
        assert read({}, own, file.parent).settings == Settings()
        with pytest.raises(SettingsError, match=r"allowed\.json"):
            allowed_files(own).allow(file, file.read_bytes())
        assert kept.read_bytes() == content
    kept.chmod(0o600)
    kept.write_bytes(right)
    assert allowed_files(own).forget(file)
    assert not allowed_files(own).forget(file)
    assert read({}, own, file.parent).settings == Settings()


@pytest.mark.parametrize("mode", [0o666, 0o622, 0o660])
def test_an_own_file_that_others_may_write_is_refused(mode: int, tmp_path: Path) -> None:
    """Another user of the machine could have put an address there."""
    own = toml(tmp_path, 'lang = "zh"')
    own.chmod(mode)
    with pytest.raises(SettingsError, match="chmod go-w"):
        load_settings({}, own)


def test_the_own_file_lies_in_the_users_configuration_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Started in that very folder, its file is the user's own still."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    own = toml(tmp_path / "whycrash", 'model = "openai:x"')
    monkeypatch.chdir(own.parent)
    assert own_file() == own
    assert (read({}).settings.model, read({}).ignored) == ("openai:x", ())


def test_without_a_home_folder_nothing_is_taken_from_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home that nobody knows is no path in the folder of a log."""
    for kind in ("CONFIG", "DATA"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", "")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    monkeypatch.chdir(tmp_path)
    toml(tmp_path / "~/.config/whycrash", 'model = "openai:x"')
    with pytest.raises(SettingsError, match="WHYCRASH_HOME"):
        load_settings({})
    assert load_settings({"WHYCRASH_HOME": str(tmp_path)}).model == ""


def test_that_every_number_is_read_as_one(tmp_path: Path) -> None:
    """From a variable, which is a text: what no row of the table of numbers names would stay one."""
    numbers = {
        item.name: item.default
        for item in fields(Settings)
        if isinstance(item.default, int | float) and not isinstance(item.default, bool)
    }
    assert len(numbers) > 15
    given = {f"{PREFIX}{name.upper()}": str(default) for name, default in numbers.items()}
    found = read(given, own=tmp_path / "none.toml", folder=tmp_path).settings
    assert {name: getattr(found, name) for name in numbers} == numbers
