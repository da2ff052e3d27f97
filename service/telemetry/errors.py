"""Errors of telemetry, by what the reader can do about them."""

from __future__ import annotations

from service.schemas.errors import ServiceError


class TelemetryError(ServiceError):
    """The telemetry that was asked for cannot be had."""


class InvalidSnapshotError(TelemetryError):
    """The file is no snapshot; take one with `whycrash snapshot --out FILE`."""


class UnknownHostError(TelemetryError):
    """The address is not one that WHYCRASH_PROMETHEUS_HOSTS allows."""
