"""ONNX ops as netcl ops: shapes, slices and joins, indexing."""
import numpy as np

from case import NETCL_TYPES, Skip, converted


def identity(case):
    return [case.reshape(case.given(0), case.shape(0))]


def reshape(case):
    shape, target = case.shape(0), case.ints(1)
    if not case.attr("allowzero", 0):
        target = [shape[i] if d == 0 else d for i, d in enumerate(target)]
    if -1 in target:
        rest = int(np.prod([d for d in target if d != -1]))
        target[target.index(-1)] = int(np.prod(shape)) // rest
    return [case.reshape(case.given(0), target)]


def flatten(case):
    shape, axis = case.shape(0), case.attr("axis", 1)
    axis += len(shape) if axis < 0 else 0
    return [case.reshape(case.given(0), [int(np.prod(shape[:axis])), int(np.prod(shape[axis:]))])]


def axes_of(case):
    return case.ints(1) if case.has(1) else case.attrs.get("axes")


def squeeze(case):
    shape, axes = case.shape(0), axes_of(case)
    if axes is None:
        axes = [i for i, d in enumerate(shape) if d == 1]
    axes = [a % len(shape) for a in axes]
    return [case.reshape(case.given(0), [d for i, d in enumerate(shape) if i not in axes])]


def unsqueeze(case):
    shape, axes = case.shape(0), axes_of(case)
    rank = len(shape) + len(axes)
    axes = [a % rank for a in axes]
    rest = iter(shape)
    return [case.reshape(case.given(0), [1 if i in axes else next(rest) for i in range(rank)])]


def transpose(case):
    default = list(range(len(case.shape(0))))[::-1]
    return [case.op("permute", case.given(0), axes=list(case.attrs.get("perm", default)))]


def expand(case):
    shape = np.broadcast_shapes(tuple(case.shape(0)), tuple(case.ints(1)))
    return [case.op("broadcast_to", case.given(0), shape=list(shape))]


def concat(case):
    if len(case.node.input) > 8:
        raise Skip("Concat of more than 8 inputs")
    return [case.op("concat", *[case.given(i) for i in range(len(case.node.input))],
                    axis=case.attrs["axis"])]


def constant_of_shape(case):
    import onnx
    value = np.zeros(1, np.float32)
    if "value" in case.attrs:
        value = converted(onnx.numpy_helper.to_array(case.attrs["value"]))
    return [case.op("full", shape=case.ints(0), value=float(value[0]),
                    dtype=NETCL_TYPES[value.dtype])]


def slice_(case):
    """Limits are cut to the axis, as ONNX says; netcl takes them as they are."""
    shape, starts, stops = case.shape(0), case.ints(1), case.ints(2)
    axes = case.ints(3) or list(range(len(starts)))
    steps = case.ints(4) or [1] * len(starts)
    if min(steps) < 0:
        raise Skip("negative steps")
    starts, stops = list(starts), list(stops)
    for i, axis in enumerate(axes):
        starts[i], stops[i], _ = slice(starts[i], stops[i]).indices(shape[axis])
        stops[i] = max(starts[i], stops[i])
    return [case.op("slice", case.given(0), axes=axes, start=starts, stop=stops, step=steps)]


def split(case):
    axis, total = case.attr("axis", 0), len(case.node.output)
    length = case.shape(0)[axis]
    part = -(-length // total)
    sizes = case.ints(1) or [min(part, length - i * part) for i in range(total)]
    out, at, x = [], 0, case.given(0)
    for size in sizes:
        out.append(case.op("slice", x, axes=[axis], start=[at], stop=[at + size]))
        at += size
    return out


def pad(case):
    if case.attr("mode", "constant") != "constant":
        raise Skip(f"Pad in mode {case.attr('mode', '')}")
    rank, pads = len(case.shape(0)), case.ints(1)
    axes = [a % rank for a in case.ints(3) or range(rank)]
    if min(pads) < 0:
        raise Skip("negative padding")
    low, high = [0] * rank, [0] * rank
    for i, axis in enumerate(axes):
        low[axis], high[axis] = pads[i], pads[len(axes) + i]
    value = float(case.data(2)) if case.has(2) else 0.0
    return [case.op("pad", case.given(0), low=low, high=high, value=value)]


# ---- indexing ----


def wrapped(case, i, length):
    """Indices of input i counted from the front, as i32: netcl's do not wrap around."""
    index = np.asarray(case.data(i)).astype(np.int64)
    return np.where(index < 0, index + length, index)


def gather(case):
    shape, axis = case.shape(0), case.attr("axis", 0)
    axis %= len(shape)
    index = wrapped(case, 1, shape[axis])
    y = case.op("index_select", case.given(0), case.constant(index.reshape(-1)), axis=axis)
    return [case.reshape(y, shape[:axis] + list(index.shape) + shape[axis + 1:])]


def same_but_for_axis(case, shape, other, axis):
    if any(a != b for i, (a, b) in enumerate(zip(shape, other)) if i != axis):
        raise Skip("indices that cover other axes in part")


def gather_elements(case):
    shape, axis = case.shape(0), case.attr("axis", 0) % len(case.shape(0))
    index = wrapped(case, 1, shape[axis])
    same_but_for_axis(case, shape, index.shape, axis)
    return [case.op("gather", case.given(0), case.constant(index), axis=axis)]


def scatter_elements(case):
    """add: data + scatter_add(updates); without reduction: those of the sums that were hit."""
    case.require_float(0)
    reduction = case.attr("reduction", "none")
    if reduction not in ("none", "add"):
        raise Skip(f"ScatterElements with reduction {reduction}")
    shape, axis = case.shape(0), case.attr("axis", 0) % len(case.shape(0))
    index = wrapped(case, 1, shape[axis])
    same_but_for_axis(case, shape, index.shape, axis)
    where = case.constant(index)
    to = {"axis": axis, "size": shape[axis]}
    sums = case.op("scatter_add", case.given(2), where, **to)
    if reduction == "add":
        return [case.op("add", case.given(0), sums)]
    ones = case.constant(np.ones(index.shape, np.float32))
    hits = case.op("cast", case.op("scatter_add", ones, where, **to), dtype="bool")
    return [case.op("where", hits, sums, case.given(0))]


def one_hot(case):
    depth = int(np.asarray(case.data(1)).reshape(-1)[0])
    values = converted(case.data(2))
    off, on = float(values[0]), float(values[1])
    index = wrapped(case, 0, depth)
    if index.min() < 0 or index.max() >= depth:
        raise Skip("indices out of range, which netcl's one_hot answers with not-a-number")
    floats = values.dtype.kind != "i"
    y = case.op("one_hot", case.constant(index), classes=depth,
                dtype=NETCL_TYPES[values.dtype] if floats else "f32")
    y = case.op("scale", y, factor=on - off, offset=off)
    rank = index.ndim + 1
    axis = case.attr("axis", -1) % rank
    order = list(range(rank - 1))
    order.insert(axis, rank - 1)
    if axis != rank - 1:
        y = case.op("permute", y, axes=order)
    return [y if floats else case.op("cast", y, dtype="i32")]


MAPPING = {
    "Identity": identity,
    "Reshape": reshape,
    "Flatten": flatten,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Transpose": transpose,
    "Expand": expand,
    "Concat": concat,
    "ConstantOfShape": constant_of_shape,
    "Slice": slice_,
    "Split": split,
    "Pad": pad,
    "Gather": gather,
    "GatherElements": gather_elements,
    "ScatterElements": scatter_elements,
    "Scatter": scatter_elements,
    "OneHot": one_hot,
}
