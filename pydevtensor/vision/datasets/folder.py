"""Data sets of folders with a subfolder for each class."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from pydevtensor.vision._libraries import pillow
from pydevtensor.vision.datasets.vision import VisionDataset

__all__ = ["IMG_EXTENSIONS", "DatasetFolder", "ImageFolder", "default_loader"]

IMG_EXTENSIONS = (
    *(".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"),
)


def default_loader(path: str) -> Any:
    """The image in a file, with the colors red, green and blue.

    >>> from pydevtensor.vision.datasets.folder import default_loader
    >>> torch.vision.utils.save_image(torch.zeros(3, 2, 2), 'black.png')
    >>> default_loader('black.png').mode
    'RGB'
    """
    with open(path, "rb") as file:
        return pillow().open(file).convert("RGB")


class DatasetFolder(VisionDataset):
    """The files of the subfolders of root, each of which is a class: (sample, class).

    Raises FileNotFoundError without subfolders. See also ImageFolder.

    root              the folder, a path
    loader            reads a file: a function of its path that gives a sample
    extensions        the endings of the names to take, a tuple of strings
    transform         a function of a sample
    target_transform  a function of a class, an int
    is_valid_file     whether to take a path, a function, in place of extensions;
                      ValueError for both or none
    allow_empty       take a class without files, else FileNotFoundError

    >>> datasets = torch.vision.datasets
    >>> import os
    >>> os.makedirs('letters/a'); _ = open('letters/a/1.txt', 'w').write('x')
    >>> folder = datasets.DatasetFolder('letters', lambda p: open(p).read(), ('.txt',))
    >>> folder[0], folder.classes
    (('x', 0), ['a'])
    """

    classes: list[str]
    class_to_idx: dict[str, int]

    def __init__(
        self,
        root: Any,
        loader: Callable[..., Any],
        extensions: tuple[str, ...] | None = None,
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
        is_valid_file: Callable[..., Any] | None = None,
        allow_empty: bool = False,
    ) -> None:
        root = os.fspath(root)
        super().__init__(root, None, transform, target_transform)
        if (extensions is None) == (is_valid_file is None):
            raise ValueError("give either extensions or is_valid_file")
        self.loader = loader
        self.extensions = extensions
        self.classes, self.class_to_idx = self.find_classes(self.root)
        endings = extensions
        self.samples: list[tuple[str, int]] = []
        empty = []
        for name in sorted(self.class_to_idx):
            before = len(self.samples)
            top = os.path.join(self.root, name)
            for folder, _, files in sorted(os.walk(top, followlinks=True)):
                for file in sorted(files):
                    path = os.path.join(folder, file)
                    taken = (
                        path.lower().endswith(endings)
                        if endings is not None
                        else is_valid_file is not None and is_valid_file(path)
                    )
                    if taken:
                        self.samples.append((path, self.class_to_idx[name]))
            if len(self.samples) == before:
                empty.append(name)
        if empty and not allow_empty:
            raise FileNotFoundError(
                f"{self.root}: no files for the classes {', '.join(empty)}"
                + (
                    f"; the names have to end with {', '.join(endings)}"
                    if endings
                    else ""
                )
            )
        self.targets: list[int] = [target for _, target in self.samples]

    def find_classes(self, directory: str) -> tuple[list[str], dict[str, int]]:
        """The names of the subfolders, in order, and the number of each.

        A subclass may override it. FileNotFoundError for none.

        directory  the folder, a path
        """
        classes = sorted(e.name for e in os.scandir(directory) if e.is_dir())
        if not classes:
            raise FileNotFoundError(
                f"{directory} has no subfolders; make one for each class"
            )
        return classes, {name: i for i, name in enumerate(classes)}

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        return self._transformed(self.loader(path), target)

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """The images of the subfolders of root, each of which is a class: (image, class).

    Raises FileNotFoundError without subfolders, and for one without images.

    root              the folder, a path
    transform         a function of an image, such as transforms.ToTensor()
    target_transform  a function of a class, an int
    loader            reads a file: a function of its path; by default Pillow, in red,
                      green and blue
    is_valid_file     whether to take a path, a function; by default its ending says it
    allow_empty       take a class without images

    >>> import os
    >>> os.makedirs('pets/cat')
    >>> torch.vision.utils.save_image(torch.zeros(3, 2, 2), 'pets/cat/1.png')
    >>> pets = torch.vision.datasets.ImageFolder('pets')
    >>> len(pets), pets.class_to_idx
    (1, {'cat': 0})
    """

    def __init__(
        self,
        root: Any,
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
        loader: Callable[..., Any] = default_loader,
        is_valid_file: Callable[..., Any] | None = None,
        allow_empty: bool = False,
    ) -> None:
        super().__init__(
            root,
            loader,
            IMG_EXTENSIONS if is_valid_file is None else None,
            transform,
            target_transform,
            is_valid_file,
            allow_empty,
        )
        self.imgs: list[tuple[str, int]] = self.samples
