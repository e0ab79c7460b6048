"""torch.hub: files by URL, and functions of a folder's hubconf.py."""

import hashlib
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError, URLError

import pytest

import pydevtensor as torch
from pydevtensor import hub
from pydevtensor.utils import model_zoo


@pytest.fixture
def weights(tmp_path):
    path = tmp_path / "net-0af3.pth"
    torch.save({"w": torch.arange(3.0)}, path)
    return path


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(hub, "_dir", None)
    return tmp_path / "home" / "hub"


def test_a_file_is_downloaded_once(weights, home, capfd):
    url = weights.as_uri()
    found = model_zoo.load_url(url)
    assert found["w"].tolist() == [0, 1, 2]
    assert "Downloading" in (said := capfd.readouterr().err) and "100.0%" in said
    assert [p.name for p in (home / "checkpoints").iterdir()] == [weights.name]
    weights.unlink()
    again = hub.load_state_dict_from_url(url, map_location="cpu", weights_only=True)
    assert again["w"].tolist() == [0, 1, 2]
    assert capfd.readouterr().err == ""


def test_folders(weights, home, tmp_path):
    assert hub.get_dir() == str(home)
    hub.set_dir(tmp_path / "other")
    assert hub.get_dir() == str(tmp_path / "other")
    hub.load_state_dict_from_url(weights.as_uri(), file_name="a.pth", progress=False)
    assert (tmp_path / "other" / "checkpoints" / "a.pth").exists()
    hub.load_state_dict_from_url(weights.as_uri(), model_dir=str(tmp_path / "third"))
    assert (tmp_path / "third" / weights.name).exists()


def test_hashes(weights, home, tmp_path):
    with pytest.raises(RuntimeError, match="should begin with 0af3; download"):
        hub.load_state_dict_from_url(weights.as_uri(), check_hash=True)
    assert [*(home / "checkpoints").iterdir()] == []
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    right = tmp_path / f"net-{digest[:8]}.pth"
    weights.rename(right)
    assert hub.load_state_dict_from_url(right.as_uri(), check_hash=True).keys() == {"w"}


def test_from_a_server(weights, home, tmp_path):
    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=tmp_path)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    try:
        found = hub.load_state_dict_from_url(url + weights.name + "?version=1")
        assert found["w"].tolist() == [0, 1, 2]
        with pytest.raises(HTTPError, match="404"):
            hub.load_state_dict_from_url(url + "absent.pth")
    finally:
        server.shutdown()
        server.server_close()
    with pytest.raises(URLError, match=f"cannot be read.*put the file at {home}"):
        hub.load_state_dict_from_url(url + "other.pth")
    assert [p.name for p in (home / "checkpoints").iterdir()] == [weights.name]


def test_no_urls(home, tmp_path):
    with pytest.raises(ValueError, match="unknown url type"):
        hub.load_state_dict_from_url("weights.pth")
    with pytest.raises(URLError, match="No such file"):
        hub.download_url_to_file("file:///absent/a.pth", str(tmp_path / "a"))


def test_functions_of_a_folder(tmp_path):
    (tmp_path / "parts.py").write_text("SIZE = 3")
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['os']\n"
        "import parts\n"
        "def net(scale, bias=0):\n"
        "    return parts.SIZE * scale + bias\n"
    )
    where = str(tmp_path)
    assert hub.load(where, "net", 2, source="local", bias=1) == 7
    with pytest.raises(RuntimeError, match="has no function other"):
        hub.load(where, "other", source="local")
    with pytest.raises(NotImplementedError, match="source='local'"):
        hub.load("owner/repository", "net")
    with pytest.raises(ValueError, match="give 'local'"):
        hub.load(where, "net", source="disk")
    (tmp_path / "hubconf.py").write_text("dependencies = ['no_such_package']")
    with pytest.raises(RuntimeError, match="needs no_such_package; install"):
        hub.load(where, "net", source="local")
