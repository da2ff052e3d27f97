"""Presets of model providers: which client speaks to each, where its server is and where its key is kept."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from corpus.message import Message
from corpus.schema import Record
from service.schemas.errors import ModelSetupError
from service.settings import Settings

FILE = Path(__file__).with_name("presets.json")
# A server of one's own as a rule asks for no key, but the client does.
_NO_KEY = "none"


class Preset(Record):
    """How the models of one prefix are reached.

    - `provider`: langchain's name of the client.
    - `base_url`: the server's address where none is set; `needs_url` tells that there is no usual one, and
      `url_option` what the client calls it.
    - `key_env`: the variable of the key; `keyless` tells that a server may ask for none.
    - `strict`: schemas can be enforced while the answer is written.
    - `options`: what else the client takes, above all that it makes no retries of its own; a client that
      takes none does not take our deadline either.
    """

    provider: str
    base_url: str = ""
    url_option: str = "base_url"
    needs_url: bool = False
    key_env: str = ""
    keyless: bool = False
    strict: bool = False
    options: Mapping[str, Any] = {}


@cache
def presets() -> dict[str, Preset]:
    """Load the presets, by the prefix of the model's name."""
    return TypeAdapter(dict[str, Preset]).validate_json(FILE.read_bytes())


def preset_of(model: str) -> Preset:
    """Give the preset of a model's name; that of any other prefix is langchain's own."""
    prefix = model.partition(":")[0]
    return presets().get(prefix) or Preset(provider=prefix)


def client_options(settings: Settings) -> dict[str, Any]:
    """Give what the client of the configured model is made with; raises ModelSetupError."""
    preset = preset_of(settings.model)
    options = dict(preset.options)
    if options:
        options["timeout"] = settings.model_deadline
    url = settings.model_base_url or preset.base_url
    if preset.needs_url and not url:
        raise ModelSetupError(Message("model.preset-needs-url", model=settings.model))
    if url:
        options[preset.url_option] = url
    if not settings.model_stream:
        options["disable_streaming"] = True
    key = _key(settings, preset)
    return options | ({"api_key": key} if key else {})


def _key(settings: Settings, preset: Preset) -> str:
    """Give the key to hand over; the empty text where the client finds its own."""
    if settings.model_key_env:
        value = os.environ.get(settings.model_key_env, "")
        if not value:
            raise ModelSetupError(
                Message("model.whycrash-model-key-env", model_key_env=settings.model_key_env)
            )
        return value
    if value := os.environ.get(preset.key_env, "") if preset.key_env else "":
        return value
    is_own = bool(settings.model_base_url) and preset.url_option == "base_url"
    if preset.keyless or (is_own and preset.key_env):
        return _NO_KEY
    if preset.key_env:
        raise ModelSetupError(
            Message("model.preset-needs-key", model=settings.model, variable=preset.key_env)
        )
    return ""
