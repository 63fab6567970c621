"""The tools of the demo and the state they change: a real SQLite database for each session.

No call can be repeated or lost unseen: each is a row of the ``journal`` table with a number of its own and a
``chain`` value over all calls so far, whose head is the ``receipt`` in the result. Changes go into tables
with row ids and running sums besides.

A result is an exact JSON object. The order of its keys carries meaning (``shelves`` starts with the fullest),
and it holds what plain JSON cannot: receipts beyond 64 bits, NaN for a mean of nothing, infinity for a stock
that nothing drains, -0.0 for the debt of an empty account.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import sqlite3
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final, cast

from ckptctl._demo.tasks import TOOLS, Domain, Task, is_amount, is_text

_TABLES: Final[Mapping[Domain, str]] = {
    "warehouse": """
        CREATE TABLE item (id INTEGER PRIMARY KEY, name, kg);
        CREATE TABLE stock (item, shelf, quantity, UNIQUE (item, shelf));
        CREATE TABLE movement (id INTEGER PRIMARY KEY, item, shelf, quantity, note, running_kg);""",
    "ledger": """
        CREATE TABLE account (id INTEGER PRIMARY KEY, owner, currency);
        CREATE TABLE entry (id INTEGER PRIMARY KEY, account, cents, balance, memo);""",
}
_JOURNAL: Final = "CREATE TABLE journal (call INTEGER PRIMARY KEY, tool, arguments, outcome, chain);"


class BadExport(ValueError):
    """The argument of `ToolSession.restore` is not an export of a session; the message says why."""


class _Refused(Exception):
    """A tool refuses what the model asked. It becomes the result ``{"error": {...}}``."""

    def __init__(self, code: str, message: str, **details: int) -> None:
        super().__init__(message)
        self.error: dict[str, Any] = {"code": code, "message": message, **details}


class ToolSession:
    """One session's database and the tools that work on it. Synchronous; calls of several threads queue."""

    def __init__(self, path: Path, domain: Domain) -> None:
        """Open the database that `create` or `restore` has put at ``path``."""
        self.path = path
        self.domain: Domain = domain
        self._lock = threading.RLock()
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.row_factory = sqlite3.Row
        # A checkpoint holds the state: the file need not survive a crash.
        self._db.executescript("PRAGMA synchronous=OFF; PRAGMA journal_mode=MEMORY;")

    @classmethod
    def create(cls, path: Path, task: Task) -> ToolSession:
        """A session in the state that the task starts from. A file of an earlier process is replaced."""
        path.unlink(missing_ok=True)
        session = cls(path, task.domain)
        db = session._db
        db.executescript("BEGIN;" + _TABLES[task.domain] + _JOURNAL)
        for row in task.seed:
            if task.domain == "warehouse":
                item = _insert(db, "item", name=row["name"], kg=row["kg"])
                for shelf, quantity in row["shelves"].items():
                    _insert(db, "stock", item=item, shelf=shelf, quantity=quantity)
            else:
                account = _insert(db, "account", owner=row["owner"], currency=row["currency"])
                _booked(db, account, row["cents"], "opening balance")
        db.execute("COMMIT")
        return session

    @classmethod
    def restore(cls, path: Path, exported: object) -> ToolSession:
        """The session that `export` saved, its database at ``path`` instead of what is there.

        Raises `BadExport`, and touches no file then.
        """
        match exported:
            case {"domain": ("warehouse" | "ledger") as domain, "calls": int(calls), "database": str(text)}:
                pass
            case _:
                raise BadExport("not an object with domain, calls and database")
        try:
            image = base64.b64decode(text, validate=True) or b"empty"  # the next line takes no empty one
            with closing(sqlite3.connect(":memory:")) as db:
                db.deserialize(image)
                found = _value(db, "SELECT count(*) FROM journal")
        except (ValueError, sqlite3.Error) as error:
            raise BadExport(f"the database cannot be read: {error}") from error
        if found != calls:
            raise BadExport(f"the database holds {found} calls, not {calls}")
        path.unlink(missing_ok=True)
        path.write_bytes(image)
        return cls(path, cast(Domain, domain))

    @property
    def calls(self) -> int:
        """How many calls this session has had, refused ones included."""
        with self._lock:
            return cast(int, _value(self._db, "SELECT count(*) FROM journal"))

    def call(self, tool: str, arguments: object) -> dict[str, Any]:
        """Run one tool; the whole call is in the database when this returns.

        The result is ``{"receipt": int, …}``. What a model got wrong is a result too:
        ``{"receipt": int, "error": {"code", "message", …}}`` with one of the codes ``unknown_tool``,
        ``bad_arguments``, ``not_found``, ``insufficient_stock``, ``insufficient_funds``, ``other_currency``.
        """
        with self._lock, self._db as db:  # leaving the connection's block commits, or rolls back what raised
            db.execute("BEGIN")
            taken: dict[str, Any] | None = None
            try:
                taken = _checked(self.domain, tool, arguments)
                result, outcome = _RUN[self.domain][tool](db, **taken), "ok"
            except _Refused as refused:
                result, outcome = {"error": refused.error}, refused.error["code"]
            return {"receipt": _journaled(db, tool, taken, outcome), **result}

    def reward(self, task: Task) -> float:
        """The share of the task's expected amounts that the database holds: 1.0 is all of them."""
        wanted = {(name, key): amount for name, part in task.expected.items() for key, amount in part.items()}
        with self._lock:
            held = {(name, key): amount for name, key, amount in self._db.execute(_HELD[self.domain])}
        reached = [place for place, amount in wanted.items() if held.get(place, 0) == amount]
        return len(reached) / len(wanted)

    def final_state(self) -> dict[str, list[dict[str, Any]]]:
        """Every table by name: its rows in their order in the file, each an object of column and value."""
        with self._lock:
            names = self._db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid")
            tables = [(name, f"SELECT * FROM {name} ORDER BY rowid") for (name,) in names]
            return {name: [dict(row) for row in self._db.execute(query)] for name, query in tables}

    def export(self) -> dict[str, Any]:
        """All of the session as exact JSON: ``domain``, ``calls`` made, the ``database`` file in base64."""
        with self._lock:
            image = base64.b64encode(self._db.serialize()).decode("ascii")
            return {"domain": self.domain, "calls": self.calls, "database": image}

    def close(self, *, delete: bool = False) -> None:
        """Wait for a running call, close the database, and ``delete`` its file. May be called twice."""
        with self._lock:
            self._db.close()
            if delete:
                self.path.unlink(missing_ok=True)


def _value(db: sqlite3.Connection, query: str, *parameters: Any) -> Any:
    """The one value of a query, None when there is no row."""
    return (db.execute(query, parameters).fetchone() or (None,))[0]


def _insert(db: sqlite3.Connection, table: str, **row: Any) -> int:
    """Add a row; returns its id."""
    columns, marks = ", ".join(row), ", ".join("?" * len(row))
    query = f"INSERT INTO {table} ({columns}) VALUES ({marks})"
    return cast(int, db.execute(query, tuple(row.values())).lastrowid)


def _journaled(db: sqlite3.Connection, tool: str, arguments: object, outcome: str) -> int:
    """Add the call to the journal; returns the head of its chain, 96 bits."""
    last = _value(db, "SELECT chain FROM journal ORDER BY call DESC LIMIT 1")
    # In ASCII, because SQLite refuses the half surrogate pairs that a model may write.
    tool, shown = json.dumps(tool), json.dumps(arguments)
    chain = hashlib.sha256(f"{last} {tool} {shown} {outcome}".encode("ascii")).hexdigest()[:24]
    _insert(db, "journal", tool=tool, arguments=shown, outcome=outcome, chain=chain)
    return int(chain, 16)


def _checked(domain: Domain, tool: str, arguments: object) -> dict[str, Any]:
    """The arguments, if the tool exists and takes them."""
    parameters = TOOLS[domain].get(tool)
    if parameters is None:
        raise _Refused("unknown_tool", f"the {domain} has only the tools {', '.join(TOOLS[domain])}")
    if not isinstance(arguments, dict) or arguments.keys() != parameters.keys():
        raise _Refused("bad_arguments", f"{tool} takes an object with {', '.join(parameters) or 'no member'}")
    for name, wanted in parameters.items():
        if not (is_text(arguments[name]) if wanted is str else is_amount(arguments[name])):
            raise _Refused("bad_arguments", f"{name} is no {wanted.__name__} that {tool} takes")
    return arguments


def _shelf(db: sqlite3.Connection, item: int, shelf: str) -> tuple[int, float]:
    """The number of pieces of the item, and the weight of one."""
    query = "SELECT quantity, kg FROM item LEFT JOIN stock ON item = id AND shelf = ? WHERE id = ?"
    pieces, kg = db.execute(query, (shelf, item)).fetchone() or (None, None)
    if kg is None:
        raise _Refused("not_found", f"no item has the id {item}")
    return pieces or 0, kg


def _moved(db: sqlite3.Connection, item: int, shelf: str, change: int, note: str) -> dict[str, Any]:
    """Put pieces on a shelf; a change below 0 takes them, if there are so many."""
    before, kg = _shelf(db, item, shelf)
    if before + change < 0:
        raise _Refused("insufficient_stock", f"only {before} on {shelf}", missing=-before - change)
    running = change * kg + (_value(db, "SELECT running_kg FROM movement ORDER BY id DESC LIMIT 1") or 0.0)
    db.execute("REPLACE INTO stock VALUES (?, ?, ?)", (item, shelf, before + change))
    row = {"item": item, "shelf": shelf, "quantity": change, "note": note, "running_kg": running}
    return {"movement": _insert(db, "movement", **row), "on_shelf": before + change, **row}


def _find_items(db: sqlite3.Connection, text: str) -> dict[str, Any]:
    items = db.execute("SELECT id AS item, name FROM item ORDER BY id").fetchall()
    matches = [dict(row) for row in items if text.casefold() in row["name"].casefold()]
    fullest = "SELECT shelf, quantity FROM stock WHERE item = ? ORDER BY quantity DESC, shelf"
    for match in matches:
        match["shelves"] = dict(db.execute(fullest, (match["item"],)).fetchall())
    return {"matches": matches}


def _count(db: sqlite3.Connection, item: int, shelf: str) -> dict[str, Any]:
    pieces, kg = _shelf(db, item, shelf)
    query = "SELECT -avg(quantity) FROM movement WHERE item = ? AND shelf = ? AND quantity < 0"
    mean = _value(db, query, item, shelf) or math.nan
    left = math.inf if math.isnan(mean) else pieces / mean
    return {"on_shelf": pieces, "kg": pieces * kg, "mean_taken": mean, "times_left": left}


def _stock_report(db: sqlite3.Connection) -> dict[str, Any]:
    weights = db.execute("SELECT kg * quantity FROM stock JOIN item ON id = item")
    shelves = db.execute("SELECT shelf, sum(quantity) FROM stock GROUP BY shelf ORDER BY 2 DESC, 1")
    return {"kg": math.fsum(kg for (kg,) in weights), "shelves": dict(shelves.fetchall())}


def _booked(db: sqlite3.Connection, account: int, cents: int, memo: str) -> dict[str, Any]:
    """Book an amount; one below 0 is taken, if there is so much."""
    before = _balance(db, account)["cents"]
    if before + cents < 0:
        raise _Refused("insufficient_funds", f"only {before} cents there", missing=-before - cents)
    row = {"account": account, "cents": cents, "balance": before + cents, "memo": memo}
    return {"entry": _insert(db, "entry", **row), **row, "balance": (before + cents) / 100}


def _balance(db: sqlite3.Connection, account: int) -> dict[str, Any]:
    currency = _value(db, "SELECT currency FROM account WHERE id = ?", account)
    if currency is None:
        raise _Refused("not_found", f"no account has the number {account}")
    cents = _value(db, "SELECT balance FROM entry WHERE account = ? ORDER BY id DESC LIMIT 1", account) or 0
    return {"currency": currency, "cents": cents, "balance": cents / 100, "owed_to_us": -(cents / 100)}


def _transfer(db: sqlite3.Connection, source: int, target: int, cents: int, memo: str) -> dict[str, Any]:
    if _balance(db, source)["currency"] != _balance(db, target)["currency"]:
        raise _Refused("other_currency", f"accounts {source} and {target} are not in one currency")
    return {"from": _booked(db, source, -cents, memo), "to": _booked(db, target, cents, memo)}


def _find_accounts(db: sqlite3.Connection, text: str) -> dict[str, Any]:
    rows = db.execute("SELECT id AS account, owner, currency FROM account ORDER BY id")
    return {"matches": [dict(row) for row in rows if text.casefold() in row["owner"].casefold()]}


def _open_account(db: sqlite3.Connection, owner: str, currency: str) -> dict[str, Any]:
    account = _insert(db, "account", owner=owner, currency=currency)
    return {"account": account, "owner": owner, **_balance(db, account)}


def _ledger_report(db: sqlite3.Connection) -> dict[str, Any]:
    query = "SELECT currency, sum(cents) / 100.0 FROM account a JOIN entry ON account = a.id GROUP BY 1"
    return {"totals": dict(db.execute(query).fetchall())}


_HELD: Final[Mapping[Domain, str]] = {
    "warehouse": "SELECT name, shelf, quantity FROM stock JOIN item ON item.id = item",
    "ledger": "SELECT owner, currency, sum(cents) FROM account a JOIN entry ON account = a.id GROUP BY 1, 2",
}
_RUN: Final[Mapping[Domain, Mapping[str, Callable[..., dict[str, Any]]]]] = {
    "warehouse": {
        "find": _find_items,
        "count": _count,
        "receive": lambda db, item, shelf, quantity: _moved(db, item, shelf, quantity, "receive"),
        "ship": lambda db, item, shelf, quantity, order: _moved(db, item, shelf, -quantity, order),
        "move": lambda db, item, source, target, quantity: {
            "from": _moved(db, item, source, -quantity, target),
            "to": _moved(db, item, target, quantity, source),
        },
        "report": _stock_report,
    },
    "ledger": {
        "find": _find_accounts,
        "open_account": _open_account,
        "deposit": _booked,
        "withdraw": lambda db, account, cents, memo: _booked(db, account, -cents, memo),
        "transfer": _transfer,
        "balance": _balance,
        "report": _ledger_report,
    },
}
