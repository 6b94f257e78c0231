"""What stands beside a time: cycles, the cold start, energy, the device's state, its counters."""

from collections.abc import Iterator, Mapping

from tracker.model import DeviceState, Result
from tracker.report.document import ABSENT, Column, Kind, Row, Table, Value, show_plain
from tracker.units import grouped, seconds, significant

_PARTS = (
    ("compile_s", "compile", "of the first call: the time in the compiler"),
    ("load_s", "load", "of the first call: the machine code onto the device"),
    ("launch_s", "first launch", "of the first call: what is left of it"),
)
_ENERGY = (
    ("j_per_gb", "energy", "J/GB", "{power_w} W under load, {idle_power_w} W of them idle"),
    ("gflops_per_w", "efficiency", "GFLOP/s per W", "of the power above idle"),
)
_POWERS = ("power_w", "idle_power_w")


def figure(key: str, name: str, value: float | None, shown: str, note: str) -> Row:
    """Return a row of the table of figures: the value in base units, and how people see it."""
    return Row({"figure": key, "name": name, "value": value, "shown": shown, "note": note})


def beside_time(result: Result) -> Iterator[Row]:
    """Yield the figures that are known beside the time; of a part that is not told, the reason."""
    cycles, summary = result.median_cycles, result.summary
    if cycles is not None and summary is not None:
        note = "of the time, by the clock as it was read in the sample"
        yield figure("median_cycles", "cycles", cycles, grouped(cycles), note)
    yield from _first_call(result)
    yield from _energy(result.energy or {})
    for name in ("energy", "counters"):
        if why := result.reasons.get(name):  # asked for, and not there
            yield figure(name, name, None, ABSENT, why)


def _first_call(result: Result) -> Iterator[Row]:
    """Yield the parts of a cold start; nothing of a case that had none."""
    parts = {name: getattr(result.first_call, name) for name, _, _ in _PARTS}
    if all(value is None for value in parts.values()):
        return
    if parts["compile_s"] is None and parts["load_s"] is None:
        whole = seconds(parts["launch_s"], 3)
        told = "compiling and loading in it, where it took place: it is not told apart"
        yield figure("first_call_launch_s", "first call", parts["launch_s"], whole, told)
        return
    for name, shown_as, means in _PARTS:
        value = parts[name]
        shown = ABSENT if value is None else seconds(value, 3)
        note = result.reasons.get(f"first_call.{name}") if value is None else means
        yield figure(f"first_call_{name}", shown_as, value, shown, note or "not told")


def _energy(found: Mapping[str, float | None]) -> Iterator[Row]:
    read = {name: found[name] for name in _POWERS if name in found}
    powers = {name: _watts(read.get(name)) for name in _POWERS}
    for name, shown_as, unit, note in _ENERGY:
        value, error = found.get(name), found.get(f"{name}_error")
        if value is None:
            continue
        shown = f"{significant(value, 3)} {unit}"
        within = "" if error is None else f"standard error {significant(error, 2)}; "
        beside = note.format(**powers) if read else "not told"
        yield figure(name, shown_as, value, shown, within + beside)


def _watts(value: float | None) -> str:
    return "?" if value is None else significant(value, 3)


def _mega(value: Value) -> str:
    return _whole(value / 1e6) if isinstance(value, float) else ABSENT


def _whole(value: Value) -> str:
    return grouped(value).replace(",", "") if isinstance(value, float) else ABSENT


STATES = (
    Column("moment", "device", Kind.WORD),
    Column("sm_clock_hz", "SM MHz", Kind.NUMBER, _mega),
    Column("memory_clock_hz", "memory MHz", Kind.NUMBER, _mega, drop=3),
    Column("temperature_c", "°C", Kind.NUMBER, _whole, drop=1),
    Column("power_w", "W", Kind.NUMBER, _whole),
    Column("other_processes", "others", Kind.NUMBER, drop=2),
    Column("throttle_reasons", "slowed by", Kind.TEXT),
)


def _counted(value: Value) -> str:
    if isinstance(value, float):
        return grouped(value) if value.is_integer() else significant(value)
    return show_plain(value)


COUNTERS = (Column("counter", "counter", Kind.WORD), Column("value", "value", Kind.TEXT, _counted))


def states_table(result: Result) -> Table | None:
    """Return what the device said of itself before, during and after; None where it said nothing.

    Clocks in hertz, temperature in degrees Celsius, power in watts.
    """
    moments = {"before": result.before, "during": result.during, "after": result.after}
    known = {moment: state for moment, state in moments.items() if state is not None}
    rows = tuple(_state(moment, state) for moment, state in known.items())
    return Table("states", STATES, rows, "The device, as it was about the time") if rows else None


def _state(moment: str, state: DeviceState) -> Row:
    values: dict[str, Value] = {
        column.key: getattr(state, column.key) for column in STATES if column.key != "moment"
    }
    return Row({"moment": moment, **values, "throttle_reasons": list(state.throttle_reasons)})


def counters_table(result: Result) -> Table | None:
    """Return what Nsight Compute counted, or the tool that an imported file is of, by its names.

    None where nothing was.
    """
    rows = [
        Row({"counter": name, "value": value})
        for name, value in (result.counters or {}).items()
        if value is not None
    ]
    heading = "Counters beside the time, as the record names them"
    return Table("counters", COUNTERS, tuple(rows), heading) if rows else None
