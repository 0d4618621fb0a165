"""The modules of workloads.py as functions of their parameters, by torch's names."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from bench import workloads
from jax import lax

EPSILON = 1e-5  # of norms


def linear(p, name, x):
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def mlp(p, x):
    for name in "02":
        x = jax.nn.relu(linear(p, name, x))
    return linear(p, "4", x)


def convolve(p, name, x, stride, padding):
    """Channels last: XLA's convolutions on CPUs are faster so."""
    weight = p[f"{name}.weight"].transpose(2, 3, 1, 0)
    sides, strides = [(padding, padding)] * 2, (stride, stride)
    layout = {"dimension_numbers": ("NHWC", "HWIO", "NHWC")}
    return lax.conv_general_dilated(x, weight, strides, sides, **layout)


def max_pool(x, size, stride, padding):
    sides = [(0, 0), (padding, padding), (padding, padding), (0, 0)]
    window, strides = (1, size, size, 1), (1, stride, stride, 1)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, sides)


def cnn(p, x):
    x = x.reshape(-1, 8, 8, 1)
    for name in "13":
        x = jax.nn.relu(convolve(p, name, x, 1, 1) + p[f"{name}.bias"])
    x = max_pool(x, 2, 2, 0).transpose(0, 3, 1, 2)
    x = jax.nn.relu(linear(p, "7", x.reshape(x.shape[0], -1)))
    return linear(p, "9", x)


def normalize(p, name, x, axes):
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    x = (x - mean) * lax.rsqrt(variance + EPSILON)
    return x * p[f"{name}.weight"] + p[f"{name}.bias"]


def block(p, name, x, stride):
    def layer(index, x, stride):
        x = convolve(p, f"{name}.conv{index}", x, stride, 1)
        return normalize(p, f"{name}.bn{index}", x, (0, 1, 2))

    y = layer(2, jax.nn.relu(layer(1, x, stride)), 1)
    if f"{name}.downsample.0.weight" in p:
        x = convolve(p, f"{name}.downsample.0", x, stride, 0)
        x = normalize(p, f"{name}.downsample.1", x, (0, 1, 2))
    return jax.nn.relu(x + y)


def resnet18(p, x):
    x = convolve(p, "conv1", x.transpose(0, 2, 3, 1), 2, 3)
    x = jax.nn.relu(normalize(p, "bn1", x, (0, 1, 2)))
    x = max_pool(x, 3, 2, 1)
    for index in range(1, 5):
        x = block(p, f"layer{index}.0", x, 1 if index == 1 else 2)
        x = block(p, f"layer{index}.1", x, 1)
    return linear(p, "fc", x.mean((1, 2)))


def projection(p, name, x):
    return x @ p[f"{name}.weight"] + p[f"{name}.bias"]


def attend(p, name, x, heads):
    batch, length, width = x.shape
    joint = projection(p, f"{name}.c_attn", x).reshape(batch, length, 3, heads, -1)
    q, k, v = joint.transpose(2, 0, 3, 1, 4)  # [batch, heads, length, depth] each
    scores = q @ k.swapaxes(-1, -2) * (width // heads) ** -0.5
    causal = jnp.tril(jnp.ones((length, length), bool))
    y = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf)) @ v
    return projection(p, f"{name}.c_proj", y.transpose(0, 2, 1, 3).reshape(x.shape))


def gpt2(p, tokens, layers, heads):
    top = "model.transformer"
    table = p[f"{top}.wte.weight"]
    x = table[tokens] + p[f"{top}.wpe.weight"][: tokens.shape[1]]
    for i in range(layers):
        name = f"{top}.h.{i}"
        x += attend(p, f"{name}.attn", normalize(p, f"{name}.ln_1", x, -1), heads)
        y = projection(p, f"{name}.mlp.c_fc", normalize(p, f"{name}.ln_2", x, -1))
        x += projection(p, f"{name}.mlp.c_proj", jax.nn.gelu(y))
    return normalize(p, f"{top}.ln_f", x, -1) @ table.T


MODELS = {
    "mlp_digits": mlp,
    "cnn_digits": cnn,
    "gpt2_tiny": functools.partial(gpt2, layers=4, heads=8),
    "resnet18": resnet18,
    "gpt2": functools.partial(gpt2, layers=12, heads=12),
}


def sgd(p, gradient, state, count, lr, momentum, weight_decay=0.0):
    gradient = gradient + weight_decay * p
    (mean,) = state
    mean = momentum * mean + gradient
    return p - lr * mean, (mean,)


def adamw(p, gradient, state, count, lr, betas=(0.9, 0.999), weight_decay=0.01, eps=1e-8):
    first, second = state
    first = betas[0] * first + (1 - betas[0]) * gradient
    second = betas[1] * second + (1 - betas[1]) * gradient**2
    rate = lr / (1 - betas[0] ** count)
    scale = jnp.sqrt(second / (1 - betas[1] ** count)) + eps
    return p * (1 - lr * weight_decay) - rate * first / scale, (first, second)


# With the number of their tensors for each parameter.
OPTIMIZERS = {"sgd": (sgd, 1), "adamw": (adamw, 2)}


def make_step(name, path):
    """A function from a batch to its loss, which updates the parameters."""
    options = dict(workloads.WORKLOADS[name].optimizer)
    optimizer, slots = OPTIMIZERS[options.pop("kind")]
    parameters = {key: jnp.asarray(value) for key, value in np.load(path).items()}
    state = {
        key: tuple(jnp.zeros_like(value) for _ in range(slots))
        for key, value in parameters.items()
    }

    def loss_of(parameters, x, target):
        scores = jax.nn.log_softmax(MODELS[name](parameters, x))
        return -jnp.take_along_axis(scores, target[..., None], -1).mean()

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def update(parameters, state, count, x, target):
        loss, gradients = jax.value_and_grad(loss_of)(parameters, x, target)
        updated = {
            key: optimizer(p, gradients[key], state[key], count, **options)
            for key, p in parameters.items()
        }
        parameters = {key: p for key, (p, _) in updated.items()}
        return parameters, {key: s for key, (_, s) in updated.items()}, loss

    kept, count = [parameters, state], 0

    def step(x, target):
        nonlocal count
        count += 1
        *kept[:], loss = update(*kept, np.float32(count), x, target.astype(np.int32))
        return float(loss)

    return step
