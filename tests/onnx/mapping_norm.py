"""ONNX ops as netcl ops: norms, losses, dropout and recurrent layers."""
import numpy as np

from case import Skip


def batch_norm(case):
    if case.attr("training_mode", 0):
        return batch_norm_training(case)
    x, weight, bias, mean, variance = [case.given(i) for i in range(5)]
    return [case.op("batch_norm_infer", x, mean, variance, weight, bias,
                    eps=float(case.attr("epsilon", 1e-5)))]


def batch_norm_training(case):
    """ONNX's running variance is of all elements, netcl's of all but one: scaled back here."""
    x, weight, bias, mean, variance = [case.given(i) for i in range(5)]
    sums = case.op("batch_norm_sums", x, mean)
    y = case.op("batch_norm", x, sums, mean, weight, bias, eps=float(case.attr("epsilon", 1e-5)))
    old = float(case.attr("momentum", 0.9))
    running = case.op_all("batch_norm_running", sums, mean, variance, momentum=1 - old)
    count = case.data(0).size / case.shape(0)[1]
    kept = case.op("scale", variance, factor=old)
    update = case.op("scale", case.op("sub", running + "/1", kept), factor=(count - 1) / count)
    return [y, running + "/0", case.op("add", kept, update)]


def row_norm(op):
    """layer_norm and rms_norm, and the statistics that ONNX's LayerNormalization may give."""
    def function(case):
        shape = case.shape(0)
        dims = len(shape) - case.attr("axis", -1) % len(shape)
        eps = float(case.attr("epsilon", 1e-5))
        inputs = [case.given(i) for i in range(3)]
        for i in (1, 2):
            if case.has(i) and case.shape(i) != shape[len(shape) - dims:]:
                inputs[i] = case.op("broadcast_to", inputs[i], shape=shape[len(shape) - dims:])
        out = [case.op(op, *inputs, dims=dims, eps=eps)]
        if case.wants(1) or case.wants(2):
            stats = case.op("norm_stats", inputs[0], dims=dims, eps=eps)
            lead = shape[:len(shape) - dims]
            for k in (0, 1):
                part = case.op("slice", stats, axes=[len(lead)], start=[k], stop=[k + 1])
                out.append(case.reshape(part, lead + [1] * dims))
        return out
    return function


def channel_norm(case):
    channels = case.shape(0)[1]
    groups = case.attr("num_groups", channels)
    if case.shape(1) != [channels]:
        raise Skip("one weight for each group, as before opset 21")
    return [case.op("group_norm", *[case.given(i) for i in range(3)], groups=groups,
                    eps=float(case.attr("epsilon", 1e-5)))]


def loss(op):
    """Losses of [N,C,d1,...] become losses of rows."""
    def function(case):
        shape, labels = case.shape(0), case.shape(1)
        rank, x = len(shape), case.given(0)
        rows = int(np.prod(labels))
        logits = x
        if rank > 2:
            logits = case.op("permute", x, axes=[0] + list(range(2, rank)) + [1])
            logits = case.reshape(logits, [rows, shape[1]])
        extra = {"ignore_index": case.attrs["ignore_index"]} if "ignore_index" in case.attrs else {}
        targets = case.reshape(case.given(1), [rows])
        result = case.op_all(op, logits, targets, case.given(2), **extra)
        reduction = case.attr("reduction", "mean")
        if reduction == "none":
            y = case.reshape(result + "/0", labels)
        else:
            y = case.op("sum", result + "/0", axes=[0])
            if reduction == "mean":
                y = case.op("div", y, case.op("sum", result + "/1", axes=[0]))
        out = [y]
        if case.wants(1):
            out.append(case.op("log_softmax", x, axis=1))
        return out
    return function


def dropout(case):
    training = case.has(2) and bool(case.data(2))
    ratio = float(case.data(1)) if case.has(1) else 0.5
    if training and ratio != 0:
        raise Skip("dropped elements: the random stream is netcl's own")
    if training:
        state = case.constant(np.zeros(8, np.int32))
        y = case.op("dropout", case.given(0), state, p=0.0)
    else:
        y = case.reshape(case.given(0), case.shape(0))
    mask = case.wants(1) and case.op("full", shape=case.shape(0), value=1.0, dtype="bool")
    return [y, mask or None]


# ---- recurrent layers: the cells, one step after the other ----

ORDER = {"LSTM": [0, 2, 3, 1], "GRU": [1, 0, 2]}  # netcl's gates among ONNX's: i o f c, z r h


def check_recurrent(case, kind):
    for key in ("activations", "clip", "input_forget"):
        if key in case.attrs:
            raise Skip(f"{kind} with {key}")
    if case.has(7):
        raise Skip("LSTM with peepholes")


def plain_reset(case, steps, bias, units):
    """Whether resetting before or after the product with the state is the same."""
    return steps == 1 and not case.has(5) and not np.any(bias[5 * units:])


def recurrent(case):
    kind = case.node.op_type
    check_recurrent(case, kind)
    w, r, batch_first = case.data(1), case.data(2), case.attr("layout", 0)
    units, gates = r.shape[2], len(ORDER[kind])
    x = np.swapaxes(case.data(0), 0, 1) if batch_first else case.data(0)
    steps, batch, _ = x.shape
    if case.has(4) and any(n != steps for n in case.ints(4)):
        raise Skip("sequences of several lengths")
    b = case.data(3) if case.has(3) else np.zeros((w.shape[0], 2 * gates * units), np.float32)

    def rows(matrix):  # gates in netcl's order
        parts = np.split(matrix, gates)
        return case.constant(np.concatenate([parts[k] for k in ORDER[kind]]))

    direction, outputs, lasts, cells = case.attr("direction", "forward"), [], [], []
    for d in range(w.shape[0]):
        if kind == "GRU" and not case.attr("linear_before_reset", 0):
            if not plain_reset(case, steps, b[d], units):
                raise Skip("linear_before_reset = 0: gru_cell resets after the product")
        weights = [rows(m) for m in (w[d], r[d], *np.split(b[d], 2))]
        first = [np.zeros((batch, units), np.float32)] * 2
        for k in (0, 1):
            if case.has(5 + k):
                given = case.data(5 + k)
                first[k] = given[:, d] if batch_first else given[d]
        state, cell = [case.constant(a) for a in first]
        order = range(steps)
        if direction == "reverse" or d == 1:
            order = reversed(order)
        by_step = {}
        for t in order:
            gx = case.op("matmul", case.constant(x[t]), weights[0], weights[2], transpose_b=1)
            gh = case.op("matmul", state, weights[1], weights[3], transpose_b=1)
            if kind == "LSTM":
                result = case.op_all("lstm_cell", gx, gh, cell)
                state, cell = result + "/0", result + "/1"
            else:
                state = case.op("gru_cell", gx, gh, state)
            by_step[t] = state
        outputs.append([by_step[t] for t in range(steps)])
        lasts.append(state)
        cells.append(cell)

    def joined(values, shape, axis):
        values = [case.reshape(v, shape) for v in values]
        return values[0] if len(values) == 1 else case.op("concat", *values, axis=axis)

    out = [None, None, None]
    if case.wants(0):
        each = [joined([o[t] for o in outputs], [1, 1, batch, units], 1) for t in range(steps)]
        y = each[0] if steps == 1 else case.op("concat", *each, axis=0)
        out[0] = case.op("permute", y, axes=[2, 0, 1, 3]) if batch_first else y
    for k, values in ((1, lasts), (2, cells)):
        if case.wants(k):
            y = joined(values, [1, batch, units], 0)
            out[k] = case.op("permute", y, axes=[1, 0, 2]) if batch_first else y
    return out


MAPPING = {
    "BatchNormalization": batch_norm,
    "LayerNormalization": row_norm("layer_norm"),
    "RMSNormalization": row_norm("rms_norm"),
    "GroupNormalization": channel_norm,
    "InstanceNormalization": channel_norm,
    "SoftmaxCrossEntropyLoss": loss("cross_entropy"),
    "NegativeLogLikelihoodLoss": loss("nll"),
    "Dropout": dropout,
    "LSTM": recurrent,
    "GRU": recurrent,
}
