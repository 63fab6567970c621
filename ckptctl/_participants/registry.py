"""The episodes of one server: those that run, and those that have a saved state and no task."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ckptctl._errors import ControlError
from ckptctl._participants.interface import RestoredRecord
from ckptctl._participants.live_episode import LiveEpisode
from ckptfmt import EpisodeId, Record


class EpisodeRegistry:
    """Running episodes, and the last boundary of inactive ones, by id."""

    def __init__(self) -> None:
        self._live: dict[EpisodeId, LiveEpisode] = {}
        self.inactive: dict[EpisodeId, RestoredRecord | Record] = {}

    @property
    def live(self) -> Collection[LiveEpisode]:
        """The running episodes, in the order in which they began."""
        return self._live.values()

    def begin(self, episode: LiveEpisode) -> None:
        """Add a running episode, which continues the inactive one of its id, if there is one.

        Raises ``invalid_request`` when the episode runs already, and what decoding its payload raises.
        """
        if episode.id in self._live:
            raise ControlError(
                "invalid_request", f"episode {episode.id.capture_key} runs already", status=409
            )
        saved = self.inactive.get(episode.id)
        if saved is not None:
            episode.continue_from(saved)
            # Only now: if the payload cannot be decoded it stays, and the episode does not start over.
            del self.inactive[episode.id]
        self._live[episode.id] = episode

    def end(self, episode: LiveEpisode, *, keep: bool) -> None:
        """Remove a running episode; ``keep``: its last boundary stays as an inactive one."""
        del self._live[episode.id]
        if keep and episode.saveable and episode.number is not None:
            self.inactive[episode.id] = episode.saved_state()

    def __iter__(self) -> Iterator[EpisodeId]:
        yield from self._live
        yield from self.inactive

    def __len__(self) -> int:
        return len(self._live) + len(self.inactive)
