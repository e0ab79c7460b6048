"""The machine code of the CUDA kernels stays within its limits, where there are nvcc and
nvdisasm; and tools/sass reads what these print."""

import dataclasses

import pytest
from sass import compiler, table
from sass.case import Case
from sass.cases import CASES
from sass.machine_code import Instruction, in_flight, read_code, read_resources

# A loop that adds what it loads, in the words of ptxas and nvdisasm.
RESOURCES = """
ptxas info    : Compiling entry function '_Z3addPf' for 'sm_90'
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 24 registers, used 1 barriers, 1056 bytes smem
"""
CODE = """
//--------------------- .text._Z3addPf --------------------------
_Z3addPf:
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/              @!P1 EXIT ;
        /*0020*/                   BSSY B0, `(.L_x_2) ;
.L_x_1:
        /*0030*/                   LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0040*/                   LDG.E.U16 R8, desc[UR4][R2.64+0x10] ;
        /*0050*/               @P2 IADD3 R0, R0, -0x1, RZ ;
        /*0060*/                   FADD R4, R4, R8 ;
        /*0070*/               @P0 BRA `(.L_x_1) ;
        /*0080*/                   FMUL R4, R4, R4 ;
        /*0090*/                   BSYNC B0 ;
.L_x_3:
        /*00a0*/                   FMUL R5, R5, R5 ;
.L_x_2:
        /*00b0*/                   STG.E.64 desc[UR4][R2.64], R4 ;
        /*00c0*/                   EXIT ;
.L_x_4:
        /*00d0*/                   BRA `(.L_x_4);
        /*00e0*/                   NOP;
//--------------------- .text._Z5otherv --------------------------
        /*0000*/                   EXIT ;
"""
CASE = Case(
    "a case",
    "file",
    "add",
    elements=2,
    passes=("load 16", "load 2", "store 8"),
    most=4.5,
    in_flight=18,
    registers=24,
    spilled=12,
)


@pytest.fixture
def kernel():
    kernels = read_resources(RESOURCES)
    read_code(CODE, kernels)
    return kernels["_Z3addPf"]


def opcodes(way):
    return [instruction.opcode.split(".")[0] for instruction in way]


def test_resources(kernel):
    assert (kernel.registers, kernel.spilled, kernel.shared) == (24, 12, 1056)
    assert len(kernel.code) == 15


def test_way_is_the_shortest(kernel):
    words = [
        "S2R",
        "EXIT",
        "BSSY",
        "LDG",
        "LDG",
        "IADD3",
        "FADD",
        "BRA",
        "FMUL",
        "BSYNC",
        "STG",
        "EXIT",
    ]
    assert opcodes(kernel.way(("load 16", "store 8"), False)) == words
    assert opcodes(kernel.way(("S2R",), False)) == ["S2R", "EXIT"]


def test_way_passes_a_loop_as_often_as_asked(kernel):
    once = kernel.way(("FADD", "store 8"), False)
    twice = kernel.way(("FADD", "FADD", "store 8"), False)
    assert len(twice) == len(once) + 5


def test_round(kernel):
    around = opcodes(kernel.way(("load 16", "FADD"), True))
    assert around == ["LDG", "LDG", "IADD3", "FADD", "BRA"]


@pytest.mark.parametrize(
    "passes", [("load 4",), ("store 8", "load 16"), ("FMUL", "FADD")]
)
def test_no_way(kernel, passes):
    assert kernel.way(passes, False) == []


def test_in_flight(kernel):
    way = kernel.way(CASE.passes, False)
    # What FADD reads is awaited before it.
    assert in_flight(way, CASE.passes) == 18
    assert in_flight(way, ["load 16"]) == 16
    loads = [Instruction("LDG.E", f"R{k}, [R9]", False) for k in range(3)]
    used = Instruction("FADD", "R5, R1, R1", False)
    assert in_flight([*loads, used], ["load 4"]) == 12
    assert in_flight([loads[0], loads[1], used, loads[2]], ["load 4"]) == 8
    again = Instruction("LDG.E.64", "R0, [R9]", True)
    assert in_flight([loads[0], again, used], ["load 4", "load 8"]) == 8
    address = Instruction("LDG.E", "R7, [R0]", False)
    assert in_flight([loads[0], address, used], ["load 4"]) == 4


def test_row(kernel):
    row = table.Row(CASE, kernel, kernel.way(CASE.passes, False))
    cells = ["a case", "6.0", "1 of 2, 1 of 16", "1 of 8", 18, 24, 12, 1056, 240]
    assert row.cells() == cells
    assert row.faults() == ["6.0 instructions"]


@pytest.mark.parametrize(
    ("limit", "fault"),
    [
        ({"most": 5.9}, "6.0 instructions"),
        ({"in_flight": 19}, "18 bytes in flight"),
        ({"registers": 23}, "24 registers"),
        ({"spilled": 11}, "12 bytes spilled"),
    ],
)
def test_faults(kernel, limit, fault):
    case = dataclasses.replace(CASE, **{"most": 6.0, **limit})
    assert table.Row(case, kernel, kernel.way(CASE.passes, False)).faults() == [fault]


def test_a_way_that_is_gone_is_a_fault(kernel):
    (fault,) = table.Row(CASE, kernel, []).faults()
    assert fault == "no way through add passes load 16, load 2, store 8"


def test_a_kernel_that_is_gone_is_named():
    name = CASES[0].source
    with pytest.raises(compiler.ToolError, match=f"{name}.cu has no kernel"):
        table.rows_of(name, {})


@pytest.mark.skipif(
    not compiler.cuda.find_nvcc() or not compiler.find_nvdisasm(),
    reason="there is no nvcc, or no nvdisasm",
)
@pytest.mark.parametrize("source", list(dict.fromkeys(c.source for c in CASES)))
def test_limits(source):
    rows = table.rows_of(source, compiler.kernels_of(source))
    faults = {row.case.name: row.faults() for row in rows}
    assert not any(faults.values()), faults
