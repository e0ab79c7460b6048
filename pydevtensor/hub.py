"""Files with weights that programs name by URL, and models of a folder's hubconf.py."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from pydevtensor._archive import replacing
from pydevtensor._names import publish as _publish
from pydevtensor.serialization import load as _load

__all__ = ["download_url_to_file", "get_dir", "load", "load_state_dict_from_url"]
__all__ += ["set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # resnet18-f37072fd.pth
_dir: str | None = None


def _get_torch_home() -> str:
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    home = os.environ.get("TORCH_HOME", os.path.join(cache, "torch"))
    return os.path.expanduser(home)


def get_dir() -> str:
    """The folder for downloaded files: of set_dir(), or `hub` of $TORCH_HOME, which is
    `torch` in $XDG_CACHE_HOME or ~/.cache by default.

    >>> torch.hub.get_dir().endswith('hub')
    True
    """
    return os.path.join(_get_torch_home(), "hub") if _dir is None else _dir


def set_dir(d: str | os.PathLike[str]) -> None:
    """Let get_dir() be d, which is made when a file is downloaded.

    >>> before = torch.hub.get_dir()
    >>> torch.hub.set_dir(before)
    """
    global _dir
    _dir = os.path.expanduser(d)


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Write what url gives into the file dst, at once when all of it is there.

    url          http://, https:// or file://
    dst          the path; its folder has to exist
    hash_prefix  how the SHA-256 of the file begins, in hexadecimal digits
    progress     whether to print percents to stderr

    URLError, an OSError, where there is no network or no such file; RuntimeError for
    another hash; ValueError for a text that is not a URL.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     a, b = pathlib.Path(folder, 'a'), pathlib.Path(folder, 'b')
    ...     _ = a.write_text('weights')
    ...     torch.hub.download_url_to_file(a.as_uri(), str(b), progress=False)
    ...     b.read_text()
    'weights'
    """
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    dst = os.path.expanduser(dst)
    digest, done = hashlib.sha256(), 0
    try:
        source = urlopen(Request(url, headers={"User-Agent": "torch.hub"}))
    except HTTPError:
        raise
    except URLError as error:
        raise URLError(
            f"{url} cannot be read: {error.reason}; where there is no network, put the "
            f"file at {dst}, which load_state_dict_from_url() reads then"
        ) from error
    with source:
        size = int(source.headers.get("Content-Length") or 0)
        os.stat(os.path.dirname(dst) or ".")  # FileNotFoundError
        with replacing(dst) as file:
            while part := source.read(1 << 20):
                file.write(part)
                digest.update(part)
                done += len(part)
                if progress and size:
                    print(f"\r{100 * done / size:.1f}%", end="", file=sys.stderr)
            if progress:
                print(file=sys.stderr)
            found = digest.hexdigest()
            if hash_prefix and not found.startswith(hash_prefix):
                raise RuntimeError(
                    f"{url}: the SHA-256 is {found}, and should begin with "
                    f"{hash_prefix}; download it again, or ask who gave you the hash"
                )


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """torch.load() of the file that url gives, downloaded unless it is there already.

    url, progress as in download_url_to_file()
    model_dir     the folder for the file, made if it is not there; `checkpoints` of
                  get_dir() if it is None
    map_location  that of torch.load()
    check_hash    whether the SHA-256 has to begin as the name says, name-HASH.pth
    file_name     the file's name; the last part of the URL if it is None
    weights_only  that of torch.load()

    Errors are those of download_url_to_file() and load().

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, 'a.pth')
    ...     torch.save({'w': torch.ones(2)}, file)
    ...     torch.hub.load_state_dict_from_url(file.as_uri(), folder)
    {'w': tensor([1., 1.])}
    """
    folder = model_dir or os.path.join(get_dir(), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        print(f'Downloading: "{url}" to {path}', file=sys.stderr)
        known = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, known[1] if known else None, progress)
    return _load(path, map_location, weights_only=weights_only)


def _hubconf(where: str, source: str) -> Any:
    """The module hubconf.py of a folder."""
    if source not in ("github", "local"):
        raise ValueError(f"source is {source!r}; give 'local', and a folder")
    if source != "local":
        raise NotImplementedError(
            f"hub: {where!r} would be downloaded and run; download it with git, and "
            "give its folder with source='local'"
        )
    path = Path(where, "hubconf.py")
    sys.path.insert(0, str(path.parent))
    try:
        spec = importlib.util.spec_from_file_location("hubconf", path)
        module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        spec.loader.exec_module(module)  # type: ignore[union-attr]
    finally:
        sys.path.remove(str(path.parent))
    for name in getattr(module, "dependencies", ()):
        if importlib.util.find_spec(name) is None:
            raise RuntimeError(f"{path} needs {name}; install it with pip")
    return module


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """The result of a function of a folder's hubconf.py.

    repo_or_dir  the folder
    model        the function's name
    source       'local'; NotImplementedError for 'github'
    args, kwargs those of the function

    trust_repo, force_reload, verbose and skip_validation have no effect. RuntimeError
    where there is no such function, or a package of its `dependencies` is missing.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, 'hubconf.py').write_text('def one(n=1): return n')
    ...     torch.hub.load(folder, 'one', source='local', n=3)
    3
    """
    found = getattr(_hubconf(repo_or_dir, source), model, None)
    if not callable(found):
        raise RuntimeError(f"hubconf.py of {repo_or_dir} has no function {model}")
    return found(*args, **kwargs)


_publish(__name__)
