"""Invalid bodies of manifest.json, checkpoint.json and cut.json whose digests are correct."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from tools.vectors.broken import UNSUPPORTED, Broken
from tools.vectors.raw import Draft, Files, drop, set_in, to_json

_HEX: Final = "ab" * 32
_SEGMENT: Final = ("segments", 0)
Change = Callable[[Any], Any]


def _text(change: Callable[[bytes], bytes]) -> Change:
    """A change of the encoded body."""

    def apply(body: Any) -> bytes:
        text = to_json(body)
        changed = change(text)
        assert changed != text
        return changed

    return apply


_VERSIONS: Final[dict[str, Change]] = {
    "format-2": set_in("format", to=2),
    "format-0": set_in("format", to=0),
    "format-string": set_in("format", to="1"),
    "format-float": set_in("format", to=1.0),
    "format-true": set_in("format", to=True),
    "format-missing": drop("format"),
    "unknown-feature": set_in("features", to=["encrypted"]),
}

_TEXTS: Final[dict[str, Change]] = {
    "member-twice": _text(lambda text: text.replace(b'"format":1,', b'"format":2,"format":1,')),
    "member-twice-by-escape": _text(
        lambda text: text.replace(b'"format":1,', b'"\\u0066ormat":2,"format":1,')
    ),
    "unknown-member-twice-within": _text(lambda text: text[:-1] + b',"more":{"a":[{"b":1,"b":1}]}}'),
    "unknown-integer-too-large": _text(lambda text: text[:-1] + b',"more":18446744073709551616}'),
    "comment": _text(lambda text: text[:-1] + b"/**/}"),
    "trailing-comma": _text(lambda text: text[:-1] + b",}"),
    "nan": _text(lambda text: text[:-1] + b',"more":NaN}'),
    "lone-surrogate": _text(lambda text: text[:-1] + b',"more":"\\ud800"}'),
    "not-utf-8": _text(lambda text: text[:-1] + b',"more":"\xff"}'),
    "array": lambda body: b"[]",
    "null": lambda body: b"null",
    "nothing": lambda body: b"",
    "features-missing": drop("features"),
    "features-null": set_in("features", to=None),
    "features-number": set_in("features", to=[1]),
    "checkpoint-id-empty": set_in("checkpoint_id", to=""),
    "checkpoint-id-control": set_in("checkpoint_id", to="a\tb"),
    "checkpoint-id-control-c1": set_in("checkpoint_id", to="a\x85b"),
    "checkpoint-id-257": set_in("checkpoint_id", to="x" * 257),
    "checkpoint-id-number": set_in("checkpoint_id", to=1),
    "checkpoint-id-other": set_in("checkpoint_id", to="step-2"),
}

_MANIFEST: Final[dict[str, Change]] = {
    "checkpoint-id-missing": drop("checkpoint_id"),
    "participant-other": set_in("participant", "name", to="agent-1"),
    "participant-parent": set_in("participant", "name", to="../agent-0"),
    "participant-null": set_in("participant", to=None),
    "kind-other": set_in("participant", "kind", to="tools"),
    "kind-missing": drop("participant", "kind"),
    "segments-object": set_in("segments", to={}),
    "segments-too-few": set_in("segments", to=[]),
    "segment-twice": lambda body: body["segments"].append(body["segments"][0]),
    "records-name-parent": set_in(*_SEGMENT, "file", to="../../etc/hostname"),
    "records-name-absolute": set_in(*_SEGMENT, "file", to="/etc/hostname"),
    "records-name-dot": lambda body: set_in(*_SEGMENT, "file", to="./" + body["segments"][0]["file"])(body),
    "records-name-url": set_in(*_SEGMENT, "file", to="memory://x"),
    "records-name-upper-case": set_in(*_SEGMENT, "file", to=f"records-{_HEX.upper()}.jsonl"),
    "records-name-63": set_in(*_SEGMENT, "file", to=f"records-{_HEX[1:]}.jsonl"),
    "records-name-gz": set_in(*_SEGMENT, "file", to=f"records-{_HEX}.jsonl.gz"),
    "records-name-zst-without-zstd": set_in(*_SEGMENT, "file", to=f"records-{_HEX}.jsonl.zst"),
    "records-name-line-feed": set_in(*_SEGMENT, "file", to=f"records-{_HEX}.jsonl\n"),
    "index-name-parent": set_in("index", to="../../etc/hostname"),
    "index-name-jsonl": set_in("index", to=f"index-{_HEX}.jsonl"),
    "codec-unknown": set_in(*_SEGMENT, "codec", to="gzip"),
    "codec-other": set_in(*_SEGMENT, "codec", to="zstd"),
    "stored-zero": set_in(*_SEGMENT, "stored", to=0),
    "stored-less": lambda body: set_in(*_SEGMENT, "stored", to=body["segments"][0]["stored"] - 1)(body),
    "stored-float": lambda body: set_in(*_SEGMENT, "stored", to=float(body["segments"][0]["stored"]))(body),
    "stored-missing": drop(*_SEGMENT, "stored"),
    "plain-more": lambda body: set_in(*_SEGMENT, "plain", to=body["segments"][0]["plain"] + 1)(body),
    "segment-records-zero": set_in(*_SEGMENT, "records", to=0),
    "segment-records-more": set_in(*_SEGMENT, "records", to=4),
    "segment-records-true": set_in(*_SEGMENT, "records", to=True),
    "records-not-the-sum": set_in("records", to=2),
    "records-too-large": set_in("records", to=2**63),
    "records-negative": set_in("records", to=-1),
}

_PATCHED: Final[tuple[tuple[str, Any, Any], ...]] = (
    ("nowhere", {"x": None}, [[["y"], [["x", "nan"]]]]),
    ("not-to-null", {"x": 1}, [[[], [["x", "nan"]]]]),
    ("not-a-list", {"x": None}, {}),
)

_CHECKPOINT: Final[dict[str, Change]] = {
    "sequence-negative": set_in("sequence", to=-1),
    "sequence-true": set_in("sequence", to=True),
    "sequence-missing": drop("sequence"),
    "cut-missing": drop("cut"),
    "cut-string": set_in("cut", to="cut-0"),
    "patches-null": set_in("patches", to=None),
    "patches-empty": set_in("patches", to=[]),
    "participants-missing": drop("participants"),
    "participant-name-parent": set_in("participants", "../agent-0", to={"kind": "agent", "manifest": _HEX}),
    "participant-kind-missing": drop("participants", "agent-0", "kind"),
    "manifest-digest-other": set_in("participants", "agent-0", "manifest", to=_HEX),
    "manifest-digest-upper-case": set_in("participants", "agent-0", "manifest", to=_HEX.upper()),
    "names-that-differ-in-case": lambda body: body["participants"].update(
        {"Agent-0": body["participants"]["agent-0"]}
    ),
    "episodes-unsorted": lambda body: body["episodes"].reverse(),
    "episodes-twice": lambda body: body["episodes"].append("18-0"),
    "episodes-no-key": set_in("episodes", to=["17-0-a1-a2", "17-1", "18-0"]),
    "restarts-unsorted": set_in("restarts", to=["20-0", "19-0"]),
    "restart-in-episodes": set_in("restarts", to=["17-1"]),
    "restarts-null": set_in("restarts", to=None),
    "restarts-twice": set_in("restarts", to=["19-0", "19-0"]),
    "mark-negative": set_in("marks", to={"17-0": -1}),
    "mark-ten-digits": set_in("marks", to={"17-0": 10**9}),
    "mark-of-a-key": set_in("marks", to={"17-0-a1": 0}),
    "marks-array": set_in("marks", to=[]),
    "state-missing": drop("state"),
    "state-integer-too-large": set_in("state", to=2**64),
    "state-integer-too-small": set_in("state", to=-(2**63) - 1),
    "state-overflowing-float": _text(lambda text: text.replace(b'"state":{"step":1}', b'"state":1e400')),
    "state-251-deep": _text(
        lambda text: text.replace(b'"state":{"step":1}', b'"state":' + b"[" * 251 + b"]" * 251)
    ),
    "state-251-deep-by-patches": lambda body: body.update(
        state=[None], patches=[[[], [[0, {"pairs": [["k", _nested(249)], [{"str": [0xD800]}, 1]]}]]]]
    ),
}


def _nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


_LABELS: Final = {
    "empty": "",
    "control": "a\tb",
    "delete": "a\x7fb",
    "control-c1": "a\x85b",
    "257": "ö" * 257,
}


def _rename_participant(name: str) -> Callable[[Any], None]:
    """A change of checkpoint.json that renames its only participant."""

    def change(body: Any) -> None:
        body["participants"] = {name: body["participants"].pop("agent-0")}

    return change


def _move_participant(name: str) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        for path in [path for path in files if path.startswith("agent-0/")]:
            files[path.replace("agent-0", name)] = files.pop(path)

    return change


_CUT: Final[dict[str, Change]] = {
    "of-another-checkpoint": set_in("checkpoint_id", to="step-2"),
    "without-word": drop("word"),
    "word-number": set_in("word", to=1),
    "checkpoint-id-control": set_in("checkpoint_id", to="step-1\n"),
    "member-twice": _text(lambda text: text[:-1] + b',"word":"x"}'),
}


def _with_state(state: Any, patches: Any) -> Change:
    return lambda body: body.update(state=state, patches=patches)


def cases() -> Iterator[tuple[str, Broken]]:
    """Yield the name and the fault of each case."""
    for name, change in _VERSIONS.items():
        yield f"manifest-{name}", Broken(Draft(manifest=change), f"manifest.json: {name}", UNSUPPORTED)
        yield f"checkpoint-{name}", Broken(Draft(checkpoint=change), f"checkpoint.json: {name}", UNSUPPORTED)
    for name, change in _TEXTS.items():
        # A body that is not an object has no format either, but the error is damage.
        yield f"manifest-body-{name}", Broken(Draft(manifest=change), f"manifest.json: {name}")
        yield f"checkpoint-body-{name}", Broken(Draft(checkpoint=change), f"checkpoint.json: {name}")
    for name, change in _MANIFEST.items():
        yield f"manifest-{name}", Broken(Draft(manifest=change), f"manifest.json: {name}")
    for name, change in _CHECKPOINT.items():
        yield f"checkpoint-{name}", Broken(Draft(checkpoint=change), f"checkpoint.json: {name}")
    for name, state, patches in _PATCHED:
        changed = Draft(checkpoint=_with_state(state, patches))
        yield (
            f"checkpoint-state-patch-{name}",
            Broken(changed, f"checkpoint.json: a patch of the state: {name}"),
        )
    for name, keys in (("too-few", ["17-0-a1", "17-1"]), ("others", ["17-0-a1", "17-1", "18-1"])):
        yield (
            f"checkpoint-episodes-{name}",
            Broken(
                Draft(checkpoint=set_in("episodes", to=keys)),
                "checkpoint.json: its episodes are not those of its participants",
                only_verify=True,
            ),
        )
    for name, label in _LABELS.items():
        same = set_in("checkpoint_id", to=label)
        draft = Draft(manifest=same, checkpoint=same)
        yield f"label-checkpoint-id-{name}", Broken(draft, f"one checkpoint id everywhere: {name}")
        draft = Draft(
            manifest=set_in("participant", "kind", to=label),
            checkpoint=set_in("participants", "agent-0", "kind", to=label),
        )
        yield f"label-kind-{name}", Broken(draft, f"one kind in both files: {name}")
    for name, text in {
        "129": "a" * 129,
        "dot-first": ".a",
        "space": "a b",
        "not-ascii": "ä",
        "slash-last": "a/",
    }.items():
        draft = Draft(
            manifest=set_in("participant", "name", to=text),
            checkpoint=_rename_participant(text),
            files=_move_participant(text.rstrip("/")),
        )
        yield f"participant-name-{name}", Broken(draft, f"a participant's name everywhere: {name}")
    for name, change in _CUT.items():
        yield f"cut-{name}", Broken(Draft(with_cut=True, cut=change), f"cut.json: {name}")
    for name, change in {
        "digest-other": set_in("cut", "sha256", to=_HEX),
        "name-parent": set_in("cut", "name", to="../cut-0"),
        "name-nested": set_in("cut", "name", to="cut-0/agent-0"),
        "name-129": set_in("cut", "name", to="c" * 129),
    }.items():
        yield (
            f"checkpoint-cut-{name}",
            Broken(Draft(with_cut=True, checkpoint=change), f"checkpoint.json: cut {name}"),
        )
