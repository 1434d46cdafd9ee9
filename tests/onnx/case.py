"""One node test on its way to op_runner: what a mapping function reads and writes.

A mapping function takes a Case and returns, for every output of the node, the name of the result
that stands for it (None: netcl has no such output). It raises Skip where netcl lacks what the case
asks for.
"""
import ml_dtypes
import numpy as np
import onnx

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
# Types of ONNX and what netcl computes in their stead.
STAND_INS = {np.dtype(np.float64): np.dtype(np.float32), np.dtype(np.int64): np.dtype(np.int32)}
NETCL_TYPES = {
    np.dtype(np.float32): "f32",
    np.dtype(np.float16): "f16",
    BFLOAT16: "bf16",
    np.dtype(np.int32): "i32",
    np.dtype(np.uint8): "u8",
    np.dtype(np.bool_): "bool",
}


class Skip(Exception):
    """The case asks for something that netcl does not have; says what."""


def plain(value):
    """Cases hold arrays or, for types that numpy lacks, serialised tensors."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return value


def converted(array):
    """The array in a type that netcl has, without a change of its values but rounding to f32."""
    if not isinstance(array, (np.ndarray, np.generic)):
        raise Skip("no tensor: sequences and optional values")
    array = np.asarray(array)
    if array.dtype in STAND_INS:
        if array.dtype == np.int64 and array.size and np.abs(array).max() > 2**31 - 1:
            raise Skip("values beyond i32")
        array = array.astype(STAND_INS[array.dtype])
    if array.dtype not in NETCL_TYPES:
        raise Skip(f"type {'string' if array.dtype == object else array.dtype}")
    return array


class Case:
    def __init__(self, name, model, inputs, outputs):
        """`inputs` and `outputs` are in the order of the graph's; the node may leave some out."""
        self.name = name
        self.node = model.graph.node[0]
        self.opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
        self.attrs = {a.name: onnx.helper.get_attribute_value(a) for a in self.node.attribute}
        self.inputs = dict(zip([i.name for i in model.graph.input], map(plain, inputs)))
        self.expected = dict(zip([o.name for o in model.graph.output], map(plain, outputs)))
        self.requests, self.tensors = [], {}

    # ---- what the node says ----

    def has(self, i):
        return i < len(self.node.input) and self.node.input[i] != ""

    def wants(self, k):
        return k < len(self.node.output) and self.node.output[k] != ""

    def data(self, i):
        """Input i as a numpy array; None if it is left out."""
        if not self.has(i):
            return None
        value = self.inputs[self.node.input[i]]
        return value if isinstance(value, list) else np.asarray(value)

    def ints(self, i):
        """Input i as a list of integers: axes, shapes, sizes."""
        value = self.data(i)
        return None if value is None else [int(v) for v in value.flatten()]

    def attr(self, key, default):
        value = self.attrs.get(key, default)
        return value.decode() if isinstance(value, bytes) else value

    def shape(self, i):
        return list(self.data(i).shape)

    def require_float(self, *inputs):
        for i in inputs or range(len(self.node.input)):
            if self.has(i) and converted(self.data(i)).dtype.kind in "iub":
                raise Skip(f"{self.node.op_type} of integers")

    # ---- what netcl is to compute ----

    def given(self, i):
        """Input i on the device; None if it is left out."""
        return None if not self.has(i) else self.constant(self.data(i), f"in{i}")

    def constant(self, array, label=None):
        name = f"{self.name}:{label or len(self.tensors)}"
        self.tensors[name] = converted(array)
        return name

    def op(self, op, *inputs, **attrs):
        """Adds a request; returns the name of its first result."""
        return self.op_all(op, *inputs, **attrs) + "/0"

    def op_all(self, op, *inputs, **attrs):
        """Adds a request; returns its name: result k is called name + "/k"."""
        name = f"{self.name}.{len(self.requests)}"
        attrs = {key: value.tolist() if hasattr(value, "tolist") else value
                 for key, value in attrs.items()}
        self.requests.append({"name": name, "op": op, "attrs": attrs,
                              "in": [i for i in inputs if i is not None]})
        return name

    def reshape(self, x, shape):
        return self.op("reshape", x, shape=[int(d) for d in shape])
