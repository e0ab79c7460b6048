"""SummaryWriter, which writes files of events for TensorBoard.

It needs the package `tensorboard`, whose writer it uses.
"""

from __future__ import annotations

import os
import socket
import struct
import time
import zlib
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Self

from pydevtensor import _C
from pydevtensor._names import publish as _publish

try:
    np: Any = import_module("numpy")
    _event = import_module("tensorboard.compat.proto.event_pb2")
    _summary = import_module("tensorboard.compat.proto.summary_pb2")
    _tensor = import_module("tensorboard.compat.proto.tensor_pb2")
    _hparams = import_module("tensorboard.plugins.hparams.summary_v2")
    _writer = import_module("tensorboard.summary.writer.event_file_writer")
    RecordWriter: Any = import_module(
        "tensorboard.summary.writer.record_writer"
    ).RecordWriter
except ModuleNotFoundError as _error:
    raise ModuleNotFoundError(
        "torch.utils.tensorboard writes with the package tensorboard; install it: "
        "pip install tensorboard",
        name=_error.name,
    ) from _error

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]


class FileWriter:
    """Appends events to one file in a folder."""

    def __init__(
        self,
        log_dir: str | os.PathLike[str],
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        self._folder = str(log_dir)
        self._options = max_queue, flush_secs, filename_suffix
        self.event_writer = _writer.EventFileWriter(self._folder, *self._options)

    def get_logdir(self) -> str:
        """The folder of the file."""
        return self.event_writer.get_logdir()

    def add_event(
        self, event: Any, step: Any = None, walltime: float | None = None
    ) -> None:
        """Append an event, which gets the step and the time in seconds."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(
        self, summary: Any, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Append an event of a Summary."""
        self.add_event(_event.Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Write what waits."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write what waits, and close the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Begin another file in the folder."""
        self.event_writer = _writer.EventFileWriter(self._folder, *self._options)


_DRAWN = "draw them with matplotlib and add_figure()"


def _missing(kind: str, things: str, way: str) -> Any:
    """The method add_<kind>() of SummaryWriter, which there is not."""

    def add(self: SummaryWriter, *args: Any, **kwargs: Any) -> None:
        """Not there: raises NotImplementedError."""
        raise NotImplementedError(f"SummaryWriter writes no {things} here; {way}")

    add.__name__ = f"add_{kind}"
    add.__qualname__ = f"SummaryWriter.{add.__name__}"
    return add


class SummaryWriter:
    """Writes numbers, histograms, images and texts for TensorBoard.

    log_dir          the folder; by default one below runs/, of the time and the host
    comment          appended to the default folder's name
    purge_step       TensorBoard forgets what earlier runs wrote from this step on
    max_queue        how many events may wait to be written
    flush_secs       how long they may wait
    filename_suffix  appended to the names of the files

    `walltime` of its methods is the time of an event in seconds; now, by default.
    Graphs, embeddings, sounds, videos and meshes are not written:
    NotImplementedError.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            began = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{began}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self.purge_step = purge_step
        self._options = max_queue, flush_secs, filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        if self.file_writer is None:
            self.file_writer = FileWriter(self.log_dir, *self._options)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                start = _event.SessionLog(status=_event.SessionLog.START)
                version = _event.Event(file_version="brain.Event:2")
                self.file_writer.add_event(version, self.purge_step)
                begun = _event.Event(session_log=start)
                self.file_writer.add_event(begun, self.purge_step)
                self.purge_step = None
        return self.file_writer

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def _add(self, value: Any, step: Any, walltime: float | None) -> None:
        summary = _summary.Summary(value=[value])
        self._get_file_writer().add_summary(summary, step, walltime)

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Any = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """A number, or a tensor or an array of one element.

        new_style         as a tensor, which newer plugins read
        double_precision  such a tensor is of float64
        """
        number = _number(tag, scalar_value)
        if not new_style:
            value = _summary.Summary.Value(tag=tag, simple_value=number)
        else:
            kind = {"dtype": "DT_FLOAT", "float_val": [number]}
            if double_precision:
                kind = {"dtype": "DT_DOUBLE", "double_val": [number]}
            value = _summary.Summary.Value(
                tag=tag,
                tensor=_tensor.TensorProto(**kind),
                metadata=_metadata("scalars"),
            )
        self._add(value, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Several numbers in one chart, each as a run of its own."""
        walltime = time.time() if walltime is None else walltime
        self._get_file_writer()
        assert self.all_writers is not None
        for tag, number in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            if folder not in self.all_writers:
                self.all_writers[folder] = FileWriter(folder, *self._options)
            value = _summary.Summary.Value(
                tag=main_tag, simple_value=_number(main_tag, number)
            )
            summary = _summary.Summary(value=[value])
            self.all_writers[folder].add_summary(summary, global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Any = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """A histogram of a tensor's elements.

        bins      "tensorflow": bins around 0 that grow by a tenth; or what
                  numpy.histogram() takes
        max_bins  join bins until there are at most about as many

        Raises ValueError for no elements.
        """
        numbers = _array(values).reshape(-1).astype(np.float64)
        if numbers.size == 0:
            raise ValueError(
                f"add_histogram() got no elements for {tag!r}; give 1 or more"
            )
        if isinstance(bins, str) and bins == "tensorflow":
            bins = _growing_bins()
        counts, limits = np.histogram(numbers, bins=bins)
        if max_bins is not None and len(counts) > max_bins:
            step = len(counts) // max_bins
            starts = np.arange(0, len(counts), step)
            counts = np.add.reduceat(counts, starts)
            limits = np.append(limits[starts], limits[-1])
        some = np.flatnonzero(counts)
        first, last = some[0], some[-1]
        # TensorBoard wants an empty bucket before the first that is not.
        histo = _summary.HistogramProto(
            min=numbers.min(),
            max=numbers.max(),
            num=numbers.size,
            sum=numbers.sum(),
            sum_squares=numbers.dot(numbers),
            bucket_limit=limits[first : last + 2].tolist(),
            bucket=[0, *counts[first : last + 1].tolist()],
        )
        self._add(_summary.Summary.Value(tag=tag, histo=histo), global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """A picture, of floats from 0 to 1 or of bytes, with 1, 3 or 4 channels.

        dataformats  what its dimensions are, such as "CHW", "HWC" or "HW"; with an N
                     several pictures, put into rows of 8

        Raises AssertionError if the tensor has not that many dimensions.
        """
        pixels = _pixels(_array(img_tensor), dataformats)
        height, width, channels = pixels.shape
        image = _summary.Summary.Image(
            height=height,
            width=width,
            colorspace=channels,
            encoded_image_string=_png(pixels),
        )
        self._add(_summary.Summary.Value(tag=tag, image=image), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Several pictures of one size, side by side in rows of 8."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: Any = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """A figure of matplotlib, or several of one size, as a picture.

        close  close the figures afterwards
        """
        figures = figure if isinstance(figure, list) else [figure]
        agg = import_module("matplotlib.backends.backend_agg")
        shown = []
        for each in figures:
            canvas = agg.FigureCanvasAgg(each)
            canvas.draw()
            shown.append(np.array(canvas.buffer_rgba())[..., :3])
            if close:
                import_module("matplotlib.pyplot").close(each)
        self.add_image(tag, np.stack(shown), global_step, walltime, "NHWC")

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """A text in Markdown."""
        shape = {"dim": [{"size": 1}]}
        text = _tensor.TensorProto(
            dtype="DT_STRING", string_val=[text_string.encode()], tensor_shape=shape
        )
        value = _summary.Summary.Value(
            tag=f"{tag}/text_summary", metadata=_metadata("text"), tensor=text
        )
        self._add(value, global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Mapping[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: Any = None,
    ) -> None:
        """The options of a run and what came out, as a run of its own.

        hparam_dict             by name, an int, a float, a bool, text or one element
        metric_dict             by tag, a number
        hparam_domain_discrete  by name, all values that the option can have
        run_name                of the folder; by default the time

        Raises TypeError for another type than dict, ValueError for other values.
        """
        if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
            raise TypeError("hparam_dict and metric_dict have to be dicts")
        options = {}
        for name, value in hparam_dict.items():
            if isinstance(value, _C.Tensor):
                value = value.item()
            if not isinstance(value, (bool, int, float, str)):
                raise ValueError(
                    f"the option {name!r} is a {type(value).__name__}; give an int, a "
                    "float, a bool, text or a tensor of one element"
                )
            options[name] = value
        domains = {
            name: _hparams.Discrete(values)
            for name, values in (hparam_domain_discrete or {}).items()
        }
        known = [_hparams.HParam(name, domains.get(name)) for name in options]
        metrics = [_hparams.Metric(tag) for tag in metric_dict]
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        with SummaryWriter(folder) as writer:
            for made in (
                _hparams.hparams_config_pb(known, metrics),
                _hparams.hparams_pb(options),
            ):
                writer._get_file_writer().add_summary(made, global_step)
            for tag, number in metric_dict.items():
                writer.add_scalar(tag, number, global_step)

    add_graph = _missing("graph", "graphs", "print the module, or draw it in PyTorch")
    add_embedding = _missing("embedding", "embeddings", "write images of them")
    add_audio = _missing("audio", "sounds", "write files with the module wave")
    add_video = _missing("video", "videos", "write their frames with add_images()")
    add_mesh = _missing("mesh", "meshes", _DRAWN)
    add_pr_curve = _missing("pr_curve", "curves", _DRAWN)

    def flush(self) -> None:
        """Write what waits."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write what waits, and close the files; adding something opens them again."""
        for writer in (self.all_writers or {}).values():
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _metadata(plugin: str) -> Any:
    data = _summary.SummaryMetadata.PluginData(plugin_name=plugin)
    return _summary.SummaryMetadata(plugin_data=data)


def _array(values: Any) -> Any:
    if isinstance(values, _C.Tensor):
        values = values.detach().cpu()
        if values.dtype == _C.bfloat16:
            values = values.float()
        return values.numpy()
    return np.asarray(values)


def _number(tag: str, value: Any) -> float:
    if isinstance(value, str):
        return float(value)
    array = _array(value)
    if array.size != 1:
        raise AssertionError(
            f"the value of {tag!r} has the shape {array.shape}; give one number"
        )
    return float(array.reshape(-1)[0])


def _growing_bins() -> Any:
    """1e-12 and so on to 1e20, each 1.1 times the one before, and the same below 0."""
    bins, limit = [], 1e-12
    while limit < 1e20:
        bins.append(limit)
        limit *= 1.1
    return np.array([-b for b in reversed(bins)] + [0.0] + bins)


def _pixels(array: Any, dataformats: str) -> Any:
    """An array as bytes of the dimensions H, W, C."""
    names = dataformats.upper()
    if len(set(names)) != len(names) or not set("HW") <= set(names) <= set("NCHW"):
        raise AssertionError(
            f"dataformats is {dataformats!r}; give a letter of N, C, H, W for each "
            "dimension"
        )
    if len(names) != array.ndim:
        raise AssertionError(
            f"the image has the shape {array.shape} and dataformats is "
            f"{dataformats!r}; give a letter for each dimension"
        )
    if array.dtype != np.uint8:
        array = (array.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)
    absent = [name for name in "NC" if name not in names]
    array = array.reshape(*array.shape, *[1] * len(absent))
    names += "".join(absent)
    array = array.transpose([names.index(name) for name in "NHWC"])
    if array.shape[3] == 1:
        array = array.repeat(3, axis=3)
    count, height, width, channels = array.shape
    columns = min(8, count)
    rows = -(-count // columns)
    empty = np.zeros((rows * columns - count, height, width, channels), np.uint8)
    array = np.concatenate([array, empty])
    array = array.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
    return array.reshape(rows * height, columns * width, channels)


def _png(pixels: Any) -> bytes:
    """Pixels of 3 or 4 channels as a file in PNG (RFC 2083)."""
    height, width, channels = pixels.shape
    if channels not in (3, 4):
        raise AssertionError(f"the image has {channels} channels; give 1, 3 or 4")

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 6, 0, 0, 0)
    lines = pixels.reshape(height, -1)
    plain = np.concatenate([np.zeros((height, 1), np.uint8), lines], axis=1)
    body = zlib.compress(plain.tobytes())
    signature = b"\x89PNG\r\n\x1a\n"
    return signature + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


_publish(__name__)
