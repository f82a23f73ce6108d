"""Observable gauges: values that are read from live objects when metrics are collected, and only then.

A package declares one `GaugeSet` with the type that its gauges read. A process registers an object for as
long as it lives; a gauge reports nothing while no object is registered, so the series of a stopped process
ends instead of freezing at its last value.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from opentelemetry.metrics import CallbackOptions, Observation, get_meter

Source = TypeVar("Source")


class GaugeSet(Generic[Source]):
    """The gauges of one meter, read from every registered source."""

    def __init__(self, meter: str) -> None:
        self._meter = get_meter(meter)
        self._sources: list[Source] = []

    def register(self, source: Source) -> None:
        """Report a source's values from the next collection on."""
        self._sources.append(source)

    def unregister(self, source: Source) -> None:
        """Report a source's values no more; one that is not registered is ignored."""
        self._sources = [each for each in self._sources if each is not source]

    @contextmanager
    def registered(self, source: Source) -> Iterator[None]:
        """Report a source's values while the block lasts."""
        self.register(source)
        try:
            yield
        finally:
            self.unregister(source)

    def gauge(self, name: str, description: str, read: Callable[[Source], Iterable[Observation]]) -> None:
        """Declare a gauge with labels: `read` returns the observations of one source."""

        def observe(_options: CallbackOptions) -> Iterable[Observation]:
            return [observation for source in list(self._sources) for observation in read(source)]

        self._meter.create_observable_gauge(name, [observe], description=description)

    def value(
        self,
        name: str,
        description: str,
        read: Callable[[Source], float | None],
        *,
        combine: Callable[[list[float]], float] = max,
    ) -> None:
        """Declare a gauge without labels; the values of several sources are combined, None is left out."""

        def observe(_options: CallbackOptions) -> Iterable[Observation]:
            values = [value for source in list(self._sources) if (value := read(source)) is not None]
            return [Observation(combine(values))] if values else []

        self._meter.create_observable_gauge(name, [observe], description=description)


class DependencyHealth:
    """Whether the last request to each server succeeded: the values of `eval_dependency_up`."""

    def __init__(self) -> None:
        self.up: dict[str, int] = {}

    def reached(self, *dependencies: str) -> None:
        """Record servers that answered."""
        self.up.update(dict.fromkeys(dependencies, 1))

    def missed(self, dependency: str) -> None:
        """Record a server that did not answer."""
        self.up[dependency] = 0

    def observations(self) -> list[Observation]:
        """Return one observation for each server that a request was sent to."""
        return [Observation(up, {"dependency": name}) for name, up in self.up.items()]
