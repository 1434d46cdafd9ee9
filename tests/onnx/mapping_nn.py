"""ONNX ops as netcl ops: convolutions, pools and attention."""
import numpy as np

from case import Skip

LOWEST = -3.0e38


class Window:
    """Kernel, strides and padding of a node in two dimensions; one dimension gets a height of 1."""

    def __init__(self, case, kernel):
        self.spatial = len(case.shape(0)) - 2
        if self.spatial > 2:
            raise Skip("three spatial dimensions")
        ones = [1] * self.spatial
        self.kernel = list(case.attr("kernel_shape", kernel))
        self.stride = list(case.attr("strides", ones))
        self.dilation = list(case.attr("dilations", ones))
        pads = list(case.attr("pads", [0] * 2 * self.spatial))
        self.low, self.high = pads[:self.spatial], pads[self.spatial:]
        self.size = case.shape(0)[2:]
        self.extent = [d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel)]
        self.auto = case.attr("auto_pad", "NOTSET")

    def halve(self, d, total):
        small, large = total // 2, total - total // 2
        self.low[d], self.high[d] = (large, small) if self.auto == "SAME_LOWER" else (small, large)

    def same(self):
        """Padding for outputs of size / stride, rounded up."""
        if self.auto not in ("SAME_UPPER", "SAME_LOWER"):
            return self
        for d in range(self.spatial):
            positions = -(-self.size[d] // self.stride[d])
            total = (positions - 1) * self.stride[d] + self.extent[d] - self.size[d]
            self.halve(d, max(0, total))
        return self

    def two(self, values, fill):
        return [fill] * (2 - self.spatial) + list(values)

    def image(self, case, x, shape):
        return x if self.spatial == 2 else case.reshape(x, shape[:2] + self.two(shape[2:], 1))

    def back(self, case, y, expected):
        return y if self.spatial == 2 else case.reshape(y, expected)


def result_shape(case, k=0):
    return list(case.expected[case.node.output[k]].shape)


def padded(case, x, window, value):
    low, high = window.two(window.low, 0), window.two(window.high, 0)
    return case.op("pad", x, low=[0, 0] + low, high=[0, 0] + high, value=value)


def conv(case):
    w = Window(case, case.shape(1)[2:]).same()
    x = w.image(case, case.given(0), case.shape(0))
    weight = w.image(case, case.given(1), case.shape(1))
    padding = w.two(w.low, 0)
    if w.low != w.high:
        x, padding = padded(case, x, w, 0.0), [0, 0]
    y = case.op("conv2d", x, weight, case.given(2), stride=w.two(w.stride, 1), padding=padding,
                dilation=w.two(w.dilation, 1), groups=case.attr("group", 1))
    return [w.back(case, y, result_shape(case))]


def conv_transpose(case):
    w = Window(case, case.shape(1)[2:])
    extra = list(case.attr("output_padding", [0] * w.spatial))
    target = case.attr("output_shape", None)
    full = [s * (n - 1) + e for s, n, e in zip(w.stride, w.size, w.extent)]
    if target is None and w.auto.startswith("SAME"):
        target = [n * s for n, s in zip(w.size, w.stride)]
    for d in range(w.spatial if target is not None else 0):
        total = full[d] + extra[d] - target[d]
        if total < 0:  # more room at the end
            extra[d] -= total
        else:
            small, large = total // 2, total - total // 2
            w.low[d], w.high[d] = (small, large) if w.auto == "SAME_UPPER" else (large, small)
    x = w.image(case, case.given(0), case.shape(0))
    weight = w.image(case, case.given(1), case.shape(1))
    common = {"stride": w.two(w.stride, 1), "dilation": w.two(w.dilation, 1),
              "groups": case.attr("group", 1), "output_padding": w.two(extra, 0)}
    if w.low == w.high:
        y = case.op("conv_transpose2d", x, weight, case.given(2), padding=w.two(w.low, 0), **common)
    else:
        y = case.op("conv_transpose2d", x, weight, case.given(2), padding=[0, 0], **common)
        begin = w.two(w.low, 0)
        end = w.two([f + e - h for f, e, h in zip(full, extra, w.high)], 1)
        y = case.op("slice", y, axes=[2, 3], start=begin, stop=end)
    return [w.back(case, y, result_shape(case))]


def pool(op):
    def function(case):
        case.require_float()
        w = Window(case, None).same()
        if any(d != 1 for d in w.dilation):
            raise Skip("dilated pools")
        if case.wants(1) and (case.attr("storage_order", 0) or np.prod(case.shape(0)[:2]) != 1):
            raise Skip("indices that count columns first, or over the planes")
        x = w.image(case, case.given(0), case.shape(0))
        attrs = {"kernel": w.two(w.kernel, 1), "stride": w.two(w.stride, 1),
                 "ceil_mode": case.attr("ceil_mode", 0)}
        include = case.attr("count_include_pad", 0)
        if op == "avg_pool2d":
            attrs["count_include_pad"] = include
        narrow = all(2 * p <= k for p, k in zip(w.low, w.kernel))
        if w.low == w.high and narrow:
            result = case.op_all(op, x, padding=w.two(w.low, 0), **attrs)
        elif op == "max_pool2d":
            if case.wants(1):
                raise Skip("indices under padding that differs at both ends")
            result = case.op_all(op, padded(case, x, w, LOWEST), **attrs)
        else:  # the mean of x over the mean of ones, both with padding
            result = case.op_all(op, padded(case, x, w, 0.0), **attrs)
            if not include:
                ones = w.image(case, case.constant(np.ones(case.shape(0), np.float32)),
                               case.shape(0))
                counts = case.op(op, padded(case, ones, w, 0.0), **attrs)
                result = case.op_all("div", result + "/0", counts)
        return [w.back(case, result + "/0", result_shape(case)), result + "/1"]
    return function


def global_pool(op):
    def function(case):
        shape = case.shape(0)
        plane = shape[:2] + [int(np.prod(shape[2:-1])), shape[-1]]
        x = case.given(0) if plane == shape else case.reshape(case.given(0), plane)
        y = case.op(op, x, output=[1, 1])
        return [case.reshape(y, result_shape(case))]
    return function


# ---- attention ----


def mask_of(case, heads, queries, keys):
    """attn_mask and all that ONNX says in other words (windows, lengths, causal masks that do not
    begin at the first key) as one mask; also whether netcl's own causal mask is to be used."""
    past = case.shape(4)[2] if case.has(4) else 0
    lengths = case.data(6)
    offset = np.array(past).reshape(1, 1, 1)
    if lengths is not None:
        offset = (lengths - queries).reshape(-1, 1, 1)
    causal = case.attr("is_causal", 0)
    left, right = case.attr("left_window_size", -1), case.attr("right_window_size", -1)
    i, j = np.arange(queries).reshape(1, -1, 1), np.arange(keys).reshape(1, 1, -1)
    allowed = np.ones((offset.shape[0], queries, keys), bool)
    own = bool(causal and past == 0 and lengths is None)
    if causal and not own:
        allowed &= j <= i + offset
    if left >= 0:
        allowed &= j >= i + offset - left
    if right >= 0:
        allowed &= j <= i + offset + right
    if lengths is not None:
        allowed &= j < lengths.reshape(-1, 1, 1)
    mask = case.data(3)
    if mask is not None and mask.shape[-1] < keys:  # what it does not name is forbidden
        rest = [(0, 0)] * (mask.ndim - 1) + [(0, keys - mask.shape[-1])]
        nothing = False if mask.dtype == bool else mask.dtype.type(-np.inf)
        mask = np.pad(mask, rest, constant_values=nothing)
    if allowed.all():
        return mask, own
    allowed = allowed[:, None]
    if mask is None:
        return allowed, own
    if mask.dtype == bool:
        return allowed & mask, own
    return np.where(allowed, mask, mask.dtype.type(-np.inf)), own


def heads_first(case, x, shape, heads):
    """[B,T,H·D] becomes [B,H,T,D]."""
    split = [shape[0], shape[1], heads, shape[2] // heads]
    return case.op("permute", case.reshape(x, split), axes=[0, 2, 1, 3])


def repeated(case, x, shape, heads):
    """Every head of keys or values for all the heads of queries that share it."""
    batch, own, length, size = shape
    if own == heads:
        return x
    x = case.reshape(x, [batch, own, 1, length, size])
    x = case.op("broadcast_to", x, shape=[batch, own, heads // own, length, size])
    return case.reshape(x, [batch, heads, length, size])


def attention(case):
    if case.attr("softcap", 0.0):
        raise Skip("softcap")
    if case.wants(3):
        raise Skip("scores as an output: netcl does not keep them")
    tensors, shapes = [], []
    for i in range(3):
        x, shape = case.given(i), case.shape(i)
        if len(shape) == 3:
            heads = case.attrs["q_num_heads" if i == 0 else "kv_num_heads"]
            x = heads_first(case, x, shape, heads)
            shape = [shape[0], heads, shape[1], shape[2] // heads]
        if i > 0 and case.has(3 + i):
            x = case.op("concat", case.given(3 + i), x, axis=2)
            shape = shape[:2] + [shape[2] + case.shape(3 + i)[2], shape[3]]
        tensors.append(x)
        shapes.append(shape)
    if shapes[1] != shapes[2]:
        raise Skip("values of another size than the keys")
    batch, heads, queries, size = shapes[0]
    mask, causal = mask_of(case, heads, queries, shapes[1][2])
    scale = float(case.attr("scale", 0.0))
    y = case.op("scaled_dot_product_attention", tensors[0],
                *[repeated(case, tensors[i], shapes[i], heads) for i in (1, 2)],
                None if mask is None else case.constant(mask), causal=int(causal), scale=scale)
    if len(case.shape(0)) == 3:
        y = case.op("permute", y, axes=[0, 2, 1, 3])
        y = case.reshape(y, [batch, queries, heads * size])
    return [y, tensors[1], tensors[2]]


MAPPING = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "MaxPool": pool("max_pool2d"),
    "AveragePool": pool("avg_pool2d"),
    "GlobalAveragePool": global_pool("adaptive_avg_pool2d"),
    "GlobalMaxPool": global_pool("adaptive_max_pool2d"),
    "Attention": attention,
}
