"""Errors of the service, by what the reader can do about them."""

from __future__ import annotations


class ServiceError(Exception):
    """The service cannot do what was asked."""


class SettingsError(ServiceError):
    """A WHYCRASH_ variable or a line of whycrash.toml has a value that cannot be used."""
