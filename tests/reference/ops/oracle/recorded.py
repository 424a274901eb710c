"""Programs recorded by write_programs: tensors, ops and gradients, as PyTorch tensors in fp64."""
import json
import re
from pathlib import Path

import numpy
import torch


class Op:
    """A call: `inputs` and `outputs` by name (some are lists), as read and written; `dtypes` of the outputs."""

    def __init__(self, record, program):
        self.kind, self.label, self.attributes = record["kind"], record["label"], record["attributes"]
        self.input_ids, self.output_ids = named(record["inputs"], "value"), named(record["outputs"], "value")
        self.inputs, self.outputs = ({name: program.fetched(ids, at) for (name, ids), at in zip(all_ids.items(), named(record[side], "at").values())}
                                     for side, all_ids in (("inputs", self.input_ids), ("outputs", self.output_ids)))
        self.dtypes = {name: program.values[ids[0] if isinstance(ids, list) else ids]["dtype"] for name, ids in self.output_ids.items()}

    def __getattr__(self, name):
        """An attribute of the op."""
        try:
            return self.__dict__["attributes"][name]
        except KeyError:
            raise AttributeError(f"{self.__dict__.get('kind')} has no attribute {name}") from None


def named(operands, member):
    """{"x": 3, "g": [4, 5]}: `member` of each operand."""
    found = {}
    for operand in operands:
        if operand["list"]:
            found.setdefault(operand["name"], []).append(operand[member])
        else:
            found[operand["name"]] = operand[member]
    return found


class Program:
    def __init__(self, record, elements):
        self.name, self.as_stored, self.forward_ops = record["name"], record["as_stored"], record["forward_ops"]
        self.dims = {name: int(extent) for name, extent in re.findall(r"(\w+)=(\d+)", self.name)}  # of a case
        self.ranks = int((re.findall(r" x(\d+)", self.name) or [1])[0])  # of a case
        self.values, self.seeds = record["values"], record["seeds"]
        self.elements = elements
        self.sources = {i: self.fetched(i, value["at"]) for i, value in enumerate(self.values) if "at" in value}
        self.ops = [Op(op, self) for op in record["ops"]]
        self.gradients = {each["value"]: self.fetched(each["gradient"], each["at"]) for each in record["gradients"]}

    def fetched(self, value, at):
        if isinstance(value, list):
            return [self.fetched(*each) for each in zip(value, at)]
        shape = self.values[value]["shape"]
        count = int(numpy.prod(shape))
        tensor = torch.from_numpy(self.elements[at:at + count].copy()).reshape(shape)
        return tensor if self.values[value]["dtype"] not in ("i32", "u8") else tensor.long()

    def made(self):
        """(id, tensor) of all values: sources, then results of ops."""
        yield from self.sources.items()
        for op in self.ops:
            for operand, ids in op.output_ids.items():
                yield from zip(ids, op.outputs[operand]) if isinstance(ids, list) else [(ids, op.outputs[operand])]


class Rank:
    """One rank's tensors of a program, by global name."""

    def __init__(self, program, rank):
        self.program, self.dims = program, program.dims
        suffix = f"@{rank}" if program.ranks > 1 else ""
        self.tensors = {program.values[i]["name"].removesuffix(suffix): tensor for i, tensor in program.made()
                        if program.values[i]["name"].endswith(suffix)}
        self.suffix = suffix

    def find(self, name):
        """The value as first made; None if there is none."""
        return self.tensors.get(name)

    def named(self, name):
        if name not in self.tensors:
            raise KeyError(f"{self.program.name}: no tensor '{name}'; expected one of: " + ", ".join(self.tensors))
        return self.tensors[name]

    def gradient(self, parameter):
        """The gradient of the parameter that the optimizer reads, before clipping."""
        for op in self.program.ops:
            for i, w in enumerate(op.input_ids.get("w", [])):
                if self.program.values[w]["name"] in (parameter + self.suffix, parameter + ".master" + self.suffix):
                    return self.before_clip(op.input_ids["g"][i], op.inputs["g"][i])
        raise KeyError(f"{self.program.name}: no optimizer updates '{parameter}'")

    def before_clip(self, i, gradient):
        for op in self.program.ops:
            if op.kind == "clip" and i in op.output_ids["g'"]:
                return op.inputs["g"][op.output_ids["g'"].index(i)]
        return gradient


def read(folder):
    """(the index, programs)"""
    index = json.loads((Path(folder) / "index.json").read_text())
    elements = numpy.memmap(Path(folder) / "data.f64", dtype="=f8", mode="r")
    return index, [Program(record, elements) for record in index["programs"]]
