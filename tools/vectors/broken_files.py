"""Files that were changed after writing, and self-checked files with an incorrect frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from tools.vectors.broken import DAMAGED, INCOMPLETE, Broken, edit, name_of, remove
from tools.vectors.raw import Draft, Files, digest

_KINDS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "checkpoint": ("checkpoint.json", {}),
    "cut": ("cut.json", {"with_cut": True}),
    "manifest": ("manifest.json", {}),
    "index": ("index-", {}),
    "records": ("records-", {}),
    "zstd-records": ("records-", {"codec": "zstd"}),
}


def _flip(place: float) -> Callable[[bytes], bytes]:
    """A change that flips a bit of the byte at a place, given as a fraction of the file."""

    def change(data: bytes) -> bytes:
        at = int(place * (len(data) - 1))
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    return change


_CHANGES: Final[dict[str, tuple[str, Callable[[bytes], bytes]]]] = {
    "first-byte-flipped": ("its first byte was changed", _flip(0)),
    "flipped": ("a byte within was changed", _flip(0.7)),
    "last-byte-flipped": ("its last byte was changed", _flip(1)),
    "cut-by-a-byte": ("its last byte is missing", lambda data: data[:-1]),
    "cut-in-half": ("its second half is missing", lambda data: data[: len(data) // 2]),
    "empty": ("it has no bytes", lambda data: b""),
    "zeros": ("it holds zeros, as after a loss of power", lambda data: bytes(len(data))),
    "extended": ("a line feed was added", lambda data: data + b"\n"),
    "doubled": ("it stands there twice", lambda data: data * 2),
}


def _body_first(data: bytes) -> bytes:
    body = data[data.index(b'"body":') + 7 : -2]
    return b'{"body":%b,"sha256":"%b"}\n' % (body, digest(body).encode())


_FRAMES: Final[dict[str, tuple[str, Callable[[bytes], bytes]]]] = {
    "upper-case-hex": (
        "the digest is spelled in upper case",
        lambda data: data[:11] + data[11:75].upper() + data[75:],
    ),
    "space-in-frame": ("a space stands after a colon", lambda data: data.replace(b'"body":', b'"body": ', 1)),
    "space-before": ("a space stands before the frame", lambda data: b" " + data),
    "space-after": ("a space stands before the line feed", lambda data: data[:-1] + b" \n"),
    "bom": ("a byte order mark stands before the frame", lambda data: b"\xef\xbb\xbf" + data),
    "crlf": ("a carriage return stands before the line feed", lambda data: data[:-1] + b"\r\n"),
    "no-line-feed": ("the line feed is missing", lambda data: data[:-1]),
    "body-first": ("the members of the frame are in the other order", _body_first),
    "member-added-to-frame": (
        "the frame has a third member",
        lambda data: data[:-2] + b',"more":1}\n',
    ),
    "digest-prefixed": (
        "the digest has a prefix",
        lambda data: data.replace(b'{"sha256":"', b'{"sha256":"sha256:', 1),
    ),
    "no-frame": ("the body stands alone", lambda data: data[data.index(b'"body":') + 7 : -2] + b"\n"),
}


_OTHER: Final = f"records-{digest(b'other bytes')}"


def _misname(manifest: Any) -> None:
    (segment,) = manifest["segments"]
    segment["file"] = _OTHER + segment["file"][72:]


def _misname_file(files: Files) -> None:
    name = name_of(files, "records-")
    files[f"agent-0/{_OTHER}{name.removeprefix('agent-0/')[72:]}"] = files.pop(name)


def cases() -> Iterator[tuple[str, Broken]]:
    """Yield the name and the fault of each case."""
    for kind, (start, options) in _KINDS.items():
        for name, (about, change) in _CHANGES.items():
            yield f"{kind}-{name}", Broken(Draft(**options, files=edit(start, change)), f"{kind}: {about}")
        missing = Broken(Draft(**options, files=remove(start)), f"{kind}: the file is missing", INCOMPLETE)
        if kind != "checkpoint":  # without checkpoint.json, the folder is not a checkpoint
            yield f"{kind}-missing", missing
    yield (
        "checkpoint-missing-beside-a-cut",
        Broken(
            Draft(with_cut=True, files=remove("checkpoint.json")), "never completed: only a cut", INCOMPLETE
        ),
    )
    for codec in ("none", "zstd"):
        misnamed = Draft(codec=codec, manifest=_misname, files=_misname_file)
        yield (
            f"records-name-of-other-bytes-{codec}",
            Broken(misnamed, "a name that is not the digest of the bytes"),
        )
    for name, (about, change) in _FRAMES.items():
        yield f"frame-{name}", Broken(Draft(files=edit("manifest.json", change)), f"manifest.json: {about}")
    yield "frame-checkpoint-crlf", _frame("checkpoint.json", "crlf", {})
    yield "frame-cut-bom", _frame("cut.json", "bom", {"with_cut": True})
    yield "frame-index-head-upper-case-hex", _frame("index-", "upper-case-hex", {})


def _frame(start: str, change: str, options: dict[str, Any]) -> Broken:
    about, function = _FRAMES[change]
    return Broken(Draft(**options, files=edit(start, function)), f"{start}: {about}", DAMAGED)
