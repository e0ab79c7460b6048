"""The program's line that a report names."""

from pydevtensor import _C

PROGRAM = """
for _ in range(2):
    found.append(line())
    found.append(line()); found.append(line())
"""


def test_lines_of_many_programs():
    """Their code is at addresses that Python uses again."""
    for i in range(500):
        found = []
        code = compile("\n" * i + PROGRAM, f"a/program{i}.py", "exec")
        exec(code, {"found": found, "line": _C._source_line})
        lines = [f"program{i}.py:{i + n}" for n in (3, 4, 4)]
        assert found == 2 * lines


def test_lines_of_the_modules_that_run():
    def line():
        return _C._source_line()

    numbers = []
    for path in ("Net.a", "Net.b", "Net.a", None):
        former = _C._set_module_path(path)
        try:
            text = line()
        finally:
            _C._set_module_path(former)
        place, number = text.split(":")
        rows = [row for row in _C._source_lines() if row[0].endswith(place)]
        numbers.append({row[3] for row in rows if row[1] == int(number)})
    assert numbers == [{"Net.a"}, *2 * [{"Net.a", "Net.b"}], {"Net.a", "Net.b", ""}]
