"""The ``checkpoint:`` block of a host's configuration, validated once (SE1)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ckptctl._errors import SettingsError

TOKEN_VARIABLE = "CKPTCTL_CONTROL_AUTH_TOKEN"
MAX_TOKEN_CHARACTERS = 4096
"""Web servers accept headers of up to about 8 KiB."""
MAX_SECONDS = 10**9
"""Longer than any run. Above it a timer of the event loop may overflow."""


@dataclass(frozen=True)
class Settings:
    """The ``checkpoint:`` block of a server's configuration.

    No repr or message contains the token.

    Attributes:
        enabled: Whether the server has control routes.
        control_auth_token: The bearer token of control calls: visible ASCII, white space around it is
            removed. Required when enabled.
        lease_grace_seconds: How long a checkpoint stays open without a call of its controller.
        default_deadline_seconds: The deadline of a call that states none.
        maximum_deadline_seconds: The longest deadline of a call. A longer one is shortened to it.

    Raises:
        SettingsError: A value is wrong; the error names the field.

    Example:
        In code, and from a configuration file::

            settings = Settings(enabled=True, control_auth_token=token)
            settings = Settings.from_block(yaml.safe_load(text).get("checkpoint"))
    """

    enabled: bool = False
    control_auth_token: str = field(default="", repr=False)
    lease_grace_seconds: float = 600.0
    default_deadline_seconds: float = 60.0
    maximum_deadline_seconds: float = 3600.0

    def __post_init__(self) -> None:
        if type(self.enabled) is not bool:
            raise SettingsError("enabled", "must be true or false")
        token = checked_token(self.control_auth_token)
        object.__setattr__(self, "control_auth_token", token)
        if self.enabled and not token:
            raise SettingsError(
                "control_auth_token",
                f"is required when enabled: set it, control_auth_token_file, or {TOKEN_VARIABLE}",
            )
        for name in ("lease_grace_seconds", "default_deadline_seconds", "maximum_deadline_seconds"):
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 < value <= MAX_SECONDS:
                raise SettingsError(name, f"must be a number of seconds above 0, at most {MAX_SECONDS}")
        if self.default_deadline_seconds > self.maximum_deadline_seconds:
            raise SettingsError("default_deadline_seconds", "must not exceed maximum_deadline_seconds")

    @classmethod
    def from_block(
        cls, block: Mapping[str, Any] | None, environment: Mapping[str, str] = os.environ
    ) -> Settings:
        """Read a configuration block.

        The token comes from ``control_auth_token``, else from the file ``control_auth_token_file``, else
        from the environment variable ``CKPTCTL_CONTROL_AUTH_TOKEN``.

        Args:
            block: The settings by name. None or an empty one means: not enabled.
            environment: Environment variables by name.

        Returns:
            The settings.

        Raises:
            SettingsError: A setting is unknown or wrong; the error names the field.
        """
        if block is not None and not isinstance(block, Mapping):
            raise SettingsError("", "must be a mapping of settings")
        values = dict(block or {})
        token_file = values.pop("control_auth_token_file", None)
        known = {each.name for each in fields(cls)}
        for name in values:
            if name not in known:
                raise SettingsError(str(name), f"unknown setting; known are {', '.join(sorted(known))}")
        if values.get("enabled") is True and not values.get("control_auth_token"):
            if token_file is not None:
                values["control_auth_token"] = read_token(token_file)
            elif TOKEN_VARIABLE in environment:
                values["control_auth_token"] = environment[TOKEN_VARIABLE]
        return cls(**values)


def checked_token(token: object) -> str:
    """The token without white space around it.

    Raises a `SettingsError` that does not contain it.
    """
    if not isinstance(token, str):
        raise SettingsError("control_auth_token", "must be a string")
    token = token.strip()
    if any(not 0x21 <= ord(character) <= 0x7E for character in token):
        raise SettingsError("control_auth_token", "must be visible ASCII without spaces")
    if len(token) > MAX_TOKEN_CHARACTERS:
        raise SettingsError("control_auth_token", f"has at most {MAX_TOKEN_CHARACTERS} characters")
    return token


def read_token(path: str | Path) -> str:
    """The token in a file, without white space around it.

    Raises a `SettingsError` without its content.
    """
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except (OSError, ValueError, TypeError) as error:
        raise SettingsError(
            "control_auth_token_file", f"cannot read {path}: {type(error).__name__}"
        ) from None
