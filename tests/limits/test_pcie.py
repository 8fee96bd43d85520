"""The arithmetic of one link against the published tables, and what must hold for every link."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.limits import pcie
from suite.limits.pcie import Traffic

# GB/s at x16: line rate; device to host / host to device at MPS 128, 256, 512.
TABLE = {
    1: (4.00, (3.37, 3.46), (3.66, 3.71), (3.82, 3.85)),
    2: (8.00, (6.74, 6.92), (7.31, 7.42), (7.64, 7.70)),
    3: (15.75, (13.27, 13.62), (14.40, 14.61), (15.05, 15.16)),
    4: (31.51, (26.53, 27.25), (28.81, 29.22), (30.10, 30.32)),
    5: (63.02, (53.07, 54.50), (57.61, 58.45), (60.19, 60.65)),
    6: (118.0, (104.9, 107.9), (111.1, 112.7), (114.4, 115.3)),
    7: (236.0, (209.8, 215.8), (222.1, 225.4), (228.8, 230.6)),
}
generations = st.sampled_from(pcie.GENERATIONS)
widths = st.sampled_from(pcie.WIDTHS)
payloads = st.sampled_from(pcie.PAYLOADS)
movers = st.sampled_from(pcie.MOVERS)
counts = st.integers(0, 8)


def near(value: float) -> object:
    """Within half a percent of a figure in GB/s."""
    return pytest.approx(value * 1e9, rel=0.005)


@pytest.mark.parametrize("gen", TABLE)
def test_ceilings_at_x16_are_those_of_the_table(gen: int) -> None:
    line, *pairs = TABLE[gen]
    assert pcie.raw(gen, 16) == near(line)
    for mps, (write, read) in zip((128, 256, 512), pairs, strict=True):
        assert pcie.device_to_host(gen, 16, mps) == near(write)
        assert pcie.host_to_device(gen, 16, mps, 4096) == near(read)


@pytest.mark.parametrize(("gen", "write", "read"), [(3, 14.33, 14.61), (4, 28.65, 29.22), (5, 57.30, 58.45)])
def test_both_ways_reads_reach_their_ceiling_and_their_requests_cost_the_writes(
    gen: int, write: float, read: float
) -> None:
    both = pcie.both_ways(gen, 16, 256, 4096)
    assert (both.device_to_host, both.host_to_device) == (near(write), near(read))


def test_an_h200_s_link_gives_58_45_and_57_61() -> None:
    assert pcie.host_to_device(5, 16, 256, 4096) == pytest.approx(58.45e9, abs=5e6)
    assert pcie.device_to_host(5, 16, 256) == pytest.approx(57.61e9, abs=5e6)


@pytest.mark.parametrize(
    ("gen", "write", "read", "both"),
    [(3, 13.27, 13.62, 11.46), (4, 26.53, 27.25, 22.91), (5, 53.07, 54.50, 45.83)],
)
def test_sm_kernels_move_128_byte_packets(gen: int, write: float, read: float, both: float) -> None:
    assert pcie.device_to_host(gen, 16, 256, engine="sm") == near(write)
    assert pcie.host_to_device(gen, 16, 256, 4096, engine="sm") == near(read)
    pair = pcie.both_ways(gen, 16, 256, 4096, engine="sm")
    assert (pair.device_to_host, pair.host_to_device) == (near(both), near(both))


def test_gen3_x8_is_what_pcie_bench_computes_before_flow_control() -> None:
    """Neugebauer et al.: 57.6 Gb/s of writes and 58.4 of reads; their Xeons reached 53 to 55.6."""
    assert pcie.device_to_host(3, 8, 256) * 8 / 1e9 == pytest.approx(57.6, rel=0.005)
    assert pcie.host_to_device(3, 8, 256, 512) * 8 / 1e9 == pytest.approx(58.4, rel=0.005)


def test_gen5_in_flit_mode_carries_less_than_without() -> None:
    assert pcie.device_to_host(5, 16, 256, flit=True) == near(54.7)
    assert pcie.host_to_device(5, 16, 256, 4096, flit=True) == near(55.5)


@pytest.mark.parametrize(("gen", "rate"), [(3, 12.0), (4, 24.0), (5, 48.0)])
def test_completions_split_at_64_bytes_cost_a_fifth(gen: int, rate: float) -> None:
    assert pcie.split_completions(gen, 16) == near(rate)


@pytest.mark.parametrize(("gen", "rate"), [(3, 11.46), (4, 22.91), (5, 45.83)])
def test_an_intel_host_bridge_cuts_peer_packets_to_64_bytes(gen: int, rate: float) -> None:
    assert pcie.peer_across_intel_bridge(gen, 16) == near(rate)


def test_32_tags_of_512_bytes_in_600_ns_bring_27_gigabytes_a_second() -> None:
    assert pcie.outstanding_bound(32, 512, 600e-9) == near(27.3)


def test_small_read_requests_limit_reads_by_the_requests_themselves() -> None:
    assert pcie.host_to_device(3, 16, 4096, 128) == near(15.75 * 128 / 148)


def test_a_bandwidth_is_shown_as_a_share_of_every_generation() -> None:
    shares = pcie.percent_of_generations(27.1e9, 16, "host_to_device", 256)
    assert shares[4] == pytest.approx(0.927, abs=0.002)
    assert shares[3] == pytest.approx(1.855, abs=0.005)


@pytest.mark.parametrize(
    ("bandwidth", "like"), [(3.3e9, "Gen1 x16"), (13.0e9, "Gen3 x16"), (55.4e9, "Gen5 x16"), (10e9, "None")]
)
def test_a_bandwidth_behaves_like_the_generation_that_it_fits(bandwidth: float, like: str) -> None:
    assert str(pcie.behaves_like(bandwidth, 16, "host_to_device")) == like


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        ((8, 16, 256, 512), "1, 2, 3, 4, 5, 6, 7"),
        ((0, 16, 256, 512), "generation 0"),
        ((True, 16, 256, 512), "generation True"),
        ((4, 3, 256, 512), "1, 2, 4, 8, 12, 16, 32"),
        ((4, 16, 300, 512), "128, 256, 512, 1024, 2048, 4096"),
        ((4, 16, 256, 0), "MRRS 0"),
    ],
)
def test_bad_values_are_refused_with_the_allowed_ones(arguments: tuple[int, int, int, int], allowed: str) -> None:
    with pytest.raises(ValueError, match=allowed):
        pcie.host_to_device(*arguments)
    with pytest.raises(ValueError, match=allowed):
        pcie.both_ways(*arguments)


def test_gen6_without_flits_is_refused() -> None:
    with pytest.raises(ValueError, match="always runs in flit mode"):
        pcie.raw(6, 16, flit=False)


@given(generations, widths, payloads, payloads, movers)
def test_no_ceiling_is_above_the_line_rate(gen: int, width: int, mps: int, mrrs: int, engine: pcie.Mover) -> None:
    line = pcie.raw(gen, width)
    both = pcie.both_ways(gen, width, mps, mrrs, engine=engine)
    assert 0 < pcie.device_to_host(gen, width, mps, engine=engine) < line
    assert 0 < pcie.host_to_device(gen, width, mps, mrrs, engine=engine) < line
    assert 0 < both.device_to_host < line
    assert 0 < both.host_to_device < line


@given(generations, widths, payloads, payloads, movers)
def test_the_pair_of_both_ways_lies_on_the_edge_of_the_region(
    gen: int, width: int, mps: int, mrrs: int, engine: pcie.Mover
) -> None:
    both = pcie.both_ways(gen, width, mps, mrrs, engine=engine)
    pair = Traffic(up_writes=both.device_to_host, down_reads=both.host_to_device)
    assert pcie.utilisation(pair, gen, width, mps, mrrs, engine=engine).worst == pytest.approx(1.0)


@given(st.sampled_from(pcie.GENERATIONS[:-1]), widths, payloads, payloads, movers)
def test_a_later_generation_is_never_slower(gen: int, width: int, mps: int, mrrs: int, engine: pcie.Mover) -> None:
    assert pcie.device_to_host(gen, width, mps, engine=engine) < pcie.device_to_host(gen + 1, width, mps, engine=engine)
    slower = pcie.host_to_device(gen, width, mps, mrrs, engine=engine)
    assert slower < pcie.host_to_device(gen + 1, width, mps, mrrs, engine=engine)


@given(generations, st.sampled_from(pcie.WIDTHS[:-1]), payloads, payloads)
def test_a_wider_link_is_faster(gen: int, width: int, mps: int, mrrs: int) -> None:
    wider = pcie.WIDTHS[pcie.WIDTHS.index(width) + 1]
    assert pcie.both_ways(gen, width, mps, mrrs).total < pcie.both_ways(gen, wider, mps, mrrs).total


@given(generations, widths, st.sampled_from(pcie.PAYLOADS[:-1]), payloads, movers)
def test_a_larger_payload_is_never_slower(gen: int, width: int, mps: int, mrrs: int, engine: pcie.Mover) -> None:
    assert pcie.device_to_host(gen, width, mps, engine=engine) <= pcie.device_to_host(
        gen, width, mps * 2, engine=engine
    )
    smaller = pcie.host_to_device(gen, width, mps, mrrs, engine=engine)
    assert smaller <= pcie.host_to_device(gen, width, mps * 2, mrrs, engine=engine)


@given(counts, counts, counts, counts, st.integers(2, 5))
def test_n_equal_flows_get_an_nth_each(up: int, down: int, up_reads: int, down_reads: int, n: int) -> None:
    one = Traffic(up + 1, down, up_reads, down_reads)
    many = Traffic(n * (up + 1), n * down, n * up_reads, n * down_reads)
    assert pcie.share(many, 4, 16, 256, 512) * n == pytest.approx(pcie.share(one, 4, 16, 256, 512))
