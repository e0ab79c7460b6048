"""Builds the documentation site into build/site; warnings are errors.

The Chinese pages are a site of their own in its folder zh.

python -P tools/website/build.py [--sources URL] [--output FOLDER]

URL is where a browser finds the repository's files, as https://HOST/OWNER/NAME/blob/main;
PYDEVTENSOR_SOURCES in the environment says it too. Without it nothing links to sources.
The pages are those of docs/; the reference is made from the installed package.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "build")]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sources", default=os.environ.get("PYDEVTENSOR_SOURCES", ""))
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "site")
    given = parser.parse_args()
    try:
        from sphinx.cmd.build import build_main
    except ImportError:
        sys.exit("Sphinx is not installed; `make site` installs the group `site`")
    import pages
    import reference

    # Sphinx leaves this file in what it made; nothing else is removed.
    if given.output.exists() and not (given.output / ".buildinfo").exists():
        sys.exit(
            f"{given.output} is not a site of an earlier build; remove it yourself"
        )
    with tempfile.TemporaryDirectory() as folder:
        count = 0
        # The Chinese site is the English one's folder zh, and is removed with it.
        for language, output in (("en", given.output), ("zh", given.output / "zh")):
            source = Path(folder) / language
            source.mkdir()
            try:
                pages.Site(language, given.sources).write(source)
            except pages.BrokenLink as error:
                sys.exit(f"{error}; correct the page")
            if language == "en":
                writer = reference.Reference(source / "reference", given.sources)
                count = writer.write()
                shutil.rmtree(output, ignore_errors=True)
            options = ["-q", "-W", "--keep-going", "-b", "html", "-c", str(HERE)]
            options += ["-t", language, "-d", f"{folder}/trees-{language}"]
            if code := build_main([*options, str(source), str(output)]):
                return code
    print(
        f"{given.output}: {len(pages.english())} pages and {len(pages.chinese())} in "
        f"Chinese, {count} entries"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
