"""A page of metrics becomes readings, and what an exporter does not export is not available."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from service.telemetry import dcgm
from service.telemetry.exposition import parse_samples
from service.telemetry.metric_collector import MetricSeries, collect_parts
from service.telemetry.metrics import ALL
from tests.tables import each_row

LABELS = (
    'gpu="0",UUID="GPU-1a",pci_bus_id="00000000:3B:00.0",device="nvidia0",modelName="NVIDIA '
    'H100",Hostname="n1"'
)
DEFAULT = "\n".join(
    f"# TYPE {name} gauge\n{name}{{{LABELS}}} {value}"
    for name, value in {
        "DCGM_FI_DEV_SM_CLOCK": 1980,
        "DCGM_FI_DEV_GPU_TEMP": 41,
        "DCGM_FI_DEV_GPU_UTIL": 97,
        "DCGM_FI_DEV_FB_FREE": 2048,
        "DCGM_FI_DEV_FB_USED": 79000,
        "DCGM_FI_DEV_FB_RESERVED": 512,
        "DCGM_FI_DEV_XID_ERRORS": 0,
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": 3,
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": 1,
        "DCGM_FI_DEV_ROW_REMAP_FAILURE": 0,
    }.items()
)


def test_that_the_default_exporters_page_is_read() -> None:
    (card,) = dcgm.read_metrics_page(DEFAULT).gpus
    assert (card.id, card.node, card.index, card.name.value, card.pci.value) == (
        "GPU-1a",
        "n1",
        0,
        "NVIDIA H100",
        "00000000:3B:00.0",
    )
    assert (card.memory_used_gib.value, card.memory_total_gib.value) == (77.1484, 79.648)
    assert (
        card.utilisation.value,
        card.xids.value,
        card.remapped_uncorrected.value,
        card.remap_failed.value,
    ) == (97.0, (), 1, False)


@each_row(
    "field", ["ecc_uncorrected", "ecc_uncorrected_new", "nvlink_errors", "retired_pending", "remap_pending"]
)
def test_that_what_the_default_exporter_leaves_out_is_not_zero(field: str) -> None:
    (card,) = dcgm.read_metrics_page(DEFAULT).gpus
    reading = getattr(card, field)
    assert reading.value is None
    assert "has no DCGM_FI_DEV" in reading.unavailable


@each_row(
    ("text", "field", "value"),
    [
        ('dcgm_fb_used{gpu="1",UUID="GPU-2"} 1024', "memory_used_gib", 1.0),
        ('dcgm_ecc_dbe_volatile_total{gpu="1",UUID="GPU-2"} 3', "ecc_uncorrected", 3),
        ('DCGM_FI_DEV_XID_ERRORS{gpu="1",UUID="GPU-2",hostname="b"} 79', "xids", (79,)),
        (
            (
                'DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL{gpu="1",UUID="GPU-2"} 2\n'
                'DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL{gpu="1",UUID="GPU-2"} 5'
            ),
            "nvlink_errors",
            7,
        ),
        ('DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{gpu="1",UUID="GPU-2"} 2147483632', "ecc_uncorrected", None),
        ('DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{gpu="1",UUID="GPU-2"} 9223372036854775794', "ecc_uncorrected", None),
        (
            'DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-2"} NaN\nDCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-2"} 40',
            "utilisation",
            None,
        ),
    ],
)
def test_that_names_of_all_versions_and_blanks_are_known(text: str, field: str, value: object) -> None:
    (card,) = dcgm.read_metrics_page(text).gpus
    assert getattr(card, field).value == value


@each_row(
    ("text", "usage", "waiting"),
    [
        ('vllm:kv_cache_usage_perc{engine="0"} 0.99\nvllm:num_requests_waiting{engine="0"} 17.0', 0.99, 17.0),
        ('vllm:gpu_cache_usage_perc{model_name="m"} 0.5', 0.5, None),
        ('sglang:token_usage{tp_rank="0"} 0.4\nsglang:num_queue_reqs{tp_rank="0"} 2', 0.4, 2.0),
    ],
)
def test_that_an_engines_page_is_read(text: str, usage: float, waiting: float | None) -> None:
    found = dcgm.read_metrics_page(text).serving
    assert (found.cache_usage.value, found.waiting.value) == (usage, waiting)


def test_that_of_several_engines_the_fullest_counts() -> None:
    text = 'vllm:kv_cache_usage_perc{engine="0"} 0.2\nvllm:kv_cache_usage_perc{engine="1"} 0.98'
    assert dcgm.read_metrics_page(text).serving.cache_usage.value == 0.98


@each_row(
    ("values", "growth"), [((5.0, 5.0, 5.0), 0), ((5.0, 6.0, 9.0), 4), ((5.0, 7.0, 1.0), 3), ((5.0,), None)]
)
def test_that_growth_is_what_came_and_a_restart_begins_at_zero(
    values: tuple[float, ...], growth: int | None
) -> None:
    points = tuple((float(place), value) for place, value in enumerate(values))
    (card,) = collect_parts([MetricSeries("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", {"UUID": "a"}, points)], "it").gpus
    assert card.ecc_uncorrected_new.value == growth


@each_row(
    ("values", "seen"),
    [((0.0, 0.0), ()), ((0.0, 31.0, 79.0), (31, 79)), ((43.0, 43.0), None), ((43.0, 43.0, 79.0), (79,))],
)
def test_that_an_xid_from_before_the_range_is_not_taken_for_a_new_one(
    values: tuple[float, ...], seen: tuple[int, ...] | None
) -> None:
    points = tuple((float(place), value) for place, value in enumerate(values))
    (card,) = collect_parts([MetricSeries("DCGM_FI_DEV_XID_ERRORS", {"UUID": "a"}, points)], "it").gpus
    assert card.xids.value == seen


def test_that_utilisation_is_that_before_the_crash() -> None:
    points = ((1.0, 100.0), (2.0, 100.0), (3.0, 0.0))
    (card,) = collect_parts(
        [MetricSeries("DCGM_FI_DEV_GPU_UTIL", {"UUID": "a"}, points)], "it", until=2.0
    ).gpus
    assert card.utilisation.value == 100.0


def test_that_labels_are_unescaped() -> None:
    (found,) = parse_samples(r'name{a="x\"y\\z",b="1,2}"} 1')
    assert found.labels == {"a": 'x"y\\z', "b": "1,2}"}


QUICK = settings(max_examples=80, deadline=None, derandomize=True)
NAMES = st.sampled_from([name for metric in ALL for name in metric.names])
VALUES = st.one_of(
    st.floats(), st.integers(), st.sampled_from(["NaN", "+Inf", "-Inf", "", "x", "0x10", "1e400"])
)
ROWS = st.tuples(
    NAMES,
    st.dictionaries(
        st.sampled_from(["gpu", "UUID", "device", "mountpoint", "reason", "x"]), st.text(max_size=8)
    ),
    VALUES,
)


@QUICK
@given(st.text(max_size=400))
def test_that_no_text_breaks_the_parser(text: str) -> None:
    dcgm.read_metrics_page(text)


@QUICK
@given(st.lists(ROWS, max_size=12))
def test_that_a_page_of_any_values_gives_readings(rows: list[tuple[str, dict[str, str], object]]) -> None:
    shown = (",".join(f'{key}="{value}"' for key, value in found.items()) for _, found, _ in rows)
    text = "\n".join(
        f"{name}{{{inside}}} {value}" for (name, _, value), inside in zip(rows, shown, strict=True)
    )
    found = dcgm.read_metrics_page(text)
    assert all(card.ecc_uncorrected.known or card.ecc_uncorrected.unavailable for card in found.gpus)


@QUICK
@given(name=NAMES, label=st.text(max_size=20), value=st.floats(allow_nan=False, allow_infinity=False))
def test_that_what_is_written_in_the_format_is_read_back(name: str, label: str, value: float) -> None:
    quoted = label.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    rows = [item for item in parse_samples(f'{name}{{UUID="{quoted}"}} {value!r}') if "\r" not in label]
    assert [(item.name, item.labels["UUID"], item.value) for item in rows] in ([], [(name, label, value)])
