"""A worker of gpubench that runs Python functions: _worker FILE.py ... -- PROGRAM ARGUMENT ...

The program starts it for `--impl FILE.py` instead of itself. It registers the functions of the files and then calls
gpubench_main() as PROGRAM."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys

from . import _implements
from . import _library as c


def _load(file: str) -> _implements.Table:
    _implements._offers.clear()
    name = os.path.splitext(os.path.basename(file))[0]
    sys.path.insert(0, os.path.dirname(file))
    try:
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None and spec.loader is not None  # the name ends in .py
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        offers = list(_implements._offers)
        if not offers:
            return _implements.Table(file, [], broken=f"{os.path.basename(file)} has no function with @gpubench.implements")
        return _implements.Table(file, offers, str(getattr(module, "__version__", "")))
    except Exception as error:
        return _implements.Table(file, [], broken=_implements._told(error, file))


def main() -> None:
    end = sys.argv.index("--")
    files, program = sys.argv[1:end], sys.argv[end + 1 :]
    tables = [_load(file) for file in files]
    for table in tables:
        c.library().gpubench_register(table.file.encode(), table.table)
    words = (ctypes.c_char_p * (len(program) + 1))(*(word.encode("utf-8", "surrogateescape") for word in program), None)
    code = c.library().gpubench_main(len(program), words)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # an orderly exit could destroy modules that deleters of live tensors still call


if __name__ == "__main__":
    main()
