"""ONNX ops as netcl ops: elementwise ops, reductions and matrix products, and the table of all."""
import numpy as np

import mapping_layout
import mapping_nn
import mapping_norm
from case import NETCL_TYPES, STAND_INS, Skip


def unary(op, floats=True, **attributes):
    """A netcl op of one input. `attributes`: netcl's name = (ONNX's name, ONNX's default)."""
    def function(case):
        if floats:
            case.require_float()
        values = {key: float(case.attr(*source)) for key, source in attributes.items()}
        return [case.op(op, case.given(0), **values)]
    return function


def binary(op, floats=False):
    def function(case):
        if floats:
            case.require_float(0)
        return [case.op(op, case.given(0), case.given(1))]
    return function


def chain(op):
    """max, min and add of any number of inputs."""
    def function(case):
        result = case.given(0)
        if len(case.node.input) == 1:
            return [case.reshape(result, case.shape(0))]
        for i in range(1, len(case.node.input)):
            result = case.op(op, result, case.given(i))
        return [result]
    return function


def mean(case):
    return [case.op("scale", chain("add")(case)[0], factor=1 / len(case.node.input))]


def gelu(case):
    form = case.attr("approximate", "none")
    return [case.op({"none": "gelu", "tanh": "gelu_tanh"}[form], case.given(0))]


def swish(case):
    if case.attr("alpha", 1.0) != 1:
        raise Skip("Swish with alpha other than 1")
    return [case.op("silu", case.given(0))]


def clip(case):
    case.require_float(0)
    limits = {}
    for i, key in ((1, "min"), (2, "max")):
        if case.has(i):
            limits[key] = float(case.data(i))
        elif key in case.attrs:
            limits[key] = float(case.attrs[key])
    return [case.op("clamp", case.given(0), **limits)]


def cast(case):
    import onnx
    to = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(case.attrs["to"]))
    to = STAND_INS.get(to, to)
    if to not in NETCL_TYPES:
        raise Skip(f"type {to}")
    return [case.op("cast", case.given(0), dtype=NETCL_TYPES[to])]


def cast_like(case):
    to = np.asarray(case.data(1)).dtype
    to = STAND_INS.get(to, to)
    if to not in NETCL_TYPES:
        raise Skip(f"type {to}")
    return [case.op("cast", case.given(0), dtype=NETCL_TYPES[to])]


def where(case):
    return [case.op("where", case.given(0), case.given(1), case.given(2))]


# ---- reductions ----


def reduced(case, op, x, axes, keep):
    """x reduced over the axes: at once if they are neighbours, else one after the other."""
    shape = case.shape(0)
    axes = sorted(a % len(shape) for a in axes)
    if axes == list(range(axes[0], axes[-1] + 1)):
        return case.op(op, x, axes=axes, keep=int(keep))
    for axis in axes:
        x = case.op(op, x, axes=[axis], keep=1)
    rest = [d for i, d in enumerate(shape) if i not in axes]
    return x if keep else case.reshape(x, rest)


def reduction(op, before=None, after=None):
    """`before` and `after` are elementwise ops around it."""
    def function(case):
        if op == "mean" or before or after:
            case.require_float(0)
        axes = case.ints(1) if case.has(1) else case.attrs.get("axes", [])
        shape, x = case.shape(0), case.given(0)
        if before == "square":
            x = case.op("mul", x, x)
        elif before:
            x = case.op(before, x)
        if not axes and case.attr("noop_with_empty_axes", 0):
            x = case.reshape(x, shape)
        elif case.data(0).dtype == bool and case.data(0).size == 0:
            raise Skip("extremes of no booleans: netcl's are of i32")
        elif shape:
            x = reduced(case, op, x, axes or range(len(shape)), case.attr("keepdims", 1))
        return [case.op(after, x) if after else x]
    return function


def arg_max(case):
    if case.attr("select_last_index", 0):
        raise Skip("select_last_index: argmax takes the first")
    return [case.op("argmax", case.given(0), axis=case.attr("axis", 0),
                    keep=case.attr("keepdims", 1))]


def softmax(op):
    def function(case):
        if case.opset < 13:
            raise Skip("Softmax before opset 13, which flattens its input")
        return [case.op(op, case.given(0), axis=case.attr("axis", -1))]
    return function


# ---- matrix products ----


def mat_mul(case):
    """Vectors become matrices of one row or column, and leading dimensions are stretched."""
    case.require_float()
    a, b, sa, sb = case.given(0), case.given(1), case.shape(0), case.shape(1)
    full_a = [1] + sa if len(sa) == 1 else sa
    full_b = sb + [1] if len(sb) == 1 else sb
    if full_a != sa:
        a = case.reshape(a, full_a)
    if full_b != sb:
        b = case.reshape(b, full_b)
    lead = list(np.broadcast_shapes(tuple(full_a[:-2]), tuple(full_b[:-2])))
    if full_a[:-2] != lead:
        a = case.op("broadcast_to", a, shape=lead + full_a[-2:])
    if len(full_b) > 2 and full_b[:-2] != lead:
        b = case.op("broadcast_to", b, shape=lead + full_b[-2:])
    y = case.op("matmul", a, b)
    if len(sa) > 1 and len(sb) > 1:
        return [y]
    rows = full_a[-2:-1] if len(sa) > 1 else []
    columns = full_b[-1:] if len(sb) > 1 else []
    return [case.reshape(y, lead + rows + columns)]


def gemm(case):
    case.require_float()
    alpha, beta = case.attr("alpha", 1.0), case.attr("beta", 1.0)
    turned = {"transpose_a": case.attr("transA", 0), "transpose_b": case.attr("transB", 0)}
    columns = case.shape(1)[0 if turned["transpose_b"] else 1]
    if case.has(2) and alpha == beta == 1 and case.shape(2) in ([columns], [1, columns]):
        bias = case.reshape(case.given(2), [columns])
        return [case.op("matmul", case.given(0), case.given(1), bias, **turned)]
    y = case.op("matmul", case.given(0), case.given(1), **turned)
    if alpha != 1:
        y = case.op("scale", y, factor=float(alpha))
    if case.has(2):
        y = case.op("add", y, case.op("scale", case.given(2), factor=float(beta)))
    return [y]


MAPPING = {
    "Abs": unary("abs", floats=False),
    "Neg": unary("neg", floats=False),
    "Sign": unary("sign", floats=False),
    "Exp": unary("exp"),
    "Log": unary("log"),
    "Sqrt": unary("sqrt"),
    "Sin": unary("sin"),
    "Cos": unary("cos"),
    "Tanh": unary("tanh"),
    "Sigmoid": unary("sigmoid"),
    "Relu": unary("relu"),
    "LeakyRelu": unary("leaky_relu", slope=("alpha", 0.01)),
    "Elu": unary("elu", alpha=("alpha", 1.0)),
    "Gelu": gelu,
    "HardSwish": unary("hardswish"),
    "Softplus": unary("softplus"),
    "Mish": unary("mish"),
    "Swish": swish,
    "Clip": clip,
    "Add": binary("add"),
    "Sub": binary("sub"),
    "Mul": binary("mul"),
    "Div": binary("div", floats=True),
    "Pow": binary("pow", floats=True),
    "Sum": chain("add"),
    "Mean": mean,
    "Max": chain("max"),
    "Min": chain("min"),
    "Equal": binary("equal"),
    "Less": binary("less"),
    "Greater": binary("greater"),
    "LessOrEqual": binary("less_equal"),
    "GreaterOrEqual": binary("greater_equal"),
    "Where": where,
    "Cast": cast,
    "CastLike": cast_like,
    "ReduceSum": reduction("sum"),
    "ReduceMean": reduction("mean"),
    "ReduceMax": reduction("max_reduce"),
    "ReduceMin": reduction("min_reduce"),
    "ReduceL1": reduction("sum", before="abs"),
    "ReduceL2": reduction("sum", before="square", after="sqrt"),
    "ReduceSumSquare": reduction("sum", before="square"),
    "ReduceLogSum": reduction("sum", after="log"),
    "ArgMax": arg_max,
    "Softmax": softmax("softmax"),
    "LogSoftmax": softmax("log_softmax"),
    "MatMul": mat_mul,
    "Gemm": gemm,
    **mapping_layout.MAPPING,
    **mapping_nn.MAPPING,
    **mapping_norm.MAPPING,
}
