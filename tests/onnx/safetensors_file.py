"""Reads and writes safetensors files with numpy: what op_runner takes and gives.

Types are F32, F16, BF16, I32, I64, U8 and BOOL. numpy has no bfloat16; the one of ml_dtypes, which
the onnx package brings along, is used for it.
"""
import json
import struct

import ml_dtypes
import numpy as np

NAMES = {
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "I32": np.dtype(np.int32),
    "I64": np.dtype(np.int64),
    "U8": np.dtype(np.uint8),
    "BOOL": np.dtype(np.bool_),
}


def write(path, tensors):
    """Writes {name: array}; the bytes follow each other in the order of the names given."""
    name_of = {dtype: name for name, dtype in NAMES.items()}
    header, parts, at = {}, [], 0
    for name, array in tensors.items():
        content = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": name_of[array.dtype], "shape": list(array.shape),
                        "data_offsets": [at, at + len(content)]}
        parts.append(content)
        at += len(content)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def read(path):
    """Returns ({name: array}, metadata)."""
    with open(path, "rb") as file:
        content = file.read()
    (size,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + size])
    metadata = header.pop("__metadata__", {})
    data = content[8 + size:]
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        array = np.frombuffer(data[begin:end], dtype=NAMES[entry["dtype"]])
        tensors[name] = array.reshape(entry["shape"])
    return tensors, metadata
