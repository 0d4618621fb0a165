"""What only a GPU can tell, by torch: times and properties that plans depend on.

Each function takes torch, its device and the check, and gives numbers or words by
name. On a machine without a GPU they run in small on the CPU.
"""

import time

WARM_UP = 3
REPEATS = 10
GRAPH_NODES = (16, 1016)
# Batch, heads, tokens, depth of attention whose plans are asked for.
ATTENTION = (4, 12, 128, 64)
BACKENDS = ("CUDNN_ATTENTION", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "MATH")


class Absent(Exception):
    """What torch or its device lacks."""


def measure(torch, device, function):
    """The median of seconds."""
    for _ in range(WARM_UP):
        function()
    seconds = []
    for _ in range(REPEATS):
        if device == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            function()
            end.record()
            end.synchronize()
            seconds.append(begin.elapsed_time(end) / 1e3)
        else:
            start = time.perf_counter()
            function()
            seconds.append(time.perf_counter() - start)
    return sorted(seconds)[REPEATS // 2]


def properties(torch, device, check):
    """Of the device, and the versions of what torch brings along."""
    found = {"torch": torch.__version__, "cudnn": torch.backends.cudnn.version()}
    if device == "cuda":
        values = torch.cuda.get_device_properties(0)
        names = (name for name in dir(values) if not name.startswith("_"))
        found |= {name: str(getattr(values, name)) for name in names}
        found["free_bytes"] = torch.cuda.mem_get_info()[0]
    return found


def bandwidth(torch, device, check):
    """GB/s of copies on the device, which read and write, and to and from it."""
    count = check["bytes"]
    here = torch.zeros(count, dtype=torch.uint8, device=device)
    there = torch.empty_like(here)
    found = {"device": 2 * count / measure(torch, device, lambda: there.copy_(here))}
    if device == "cuda":
        host = torch.zeros(count, dtype=torch.uint8, pin_memory=True)
        for name, to, source in (("upload", here, host), ("download", host, here)):
            seconds = measure(torch, device, lambda: to.copy_(source, non_blocking=True))
            found[name] = count / seconds
    return {name: round(rate / 1e9, 1) for name, rate in found.items()}


def products(torch, device, check):
    """TFLOP/s of matrix products: m, n, k and type."""
    found = {}
    for name in check["types"]:
        dtype = getattr(torch, "float32" if name == "tf32" else name)
        torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
        for m, n, k in check["shapes"]:
            a = torch.ones(m, k, dtype=dtype, device=device)
            b = torch.ones(k, n, dtype=dtype, device=device)
            seconds = measure(torch, device, lambda: a @ b)
            found[f"{m}x{n}x{k} {name}"] = round(2e-12 * m * n * k / seconds, 3)
    torch.backends.cuda.matmul.allow_tf32 = False
    return found


def graph_gap(torch, device, check):
    """Microseconds from node to node of a graph of small kernels, and of launches."""
    if device != "cuda":
        raise Absent("a GPU for torch")
    x, seconds = torch.zeros(32, device=device), {}
    for nodes in GRAPH_NODES:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(nodes):
                x.add_(1)
        seconds["node", nodes] = measure(torch, device, graph.replay)

        def launch():
            for _ in range(nodes):
                x.add_(1)

        seconds["launch", nodes] = measure(torch, device, launch)
    few, many = GRAPH_NODES
    return {
        name: round((seconds[name, many] - seconds[name, few]) / (many - few) * 1e6, 3)
        for name in ("node", "launch")
    }


def attention_plans(torch, device, check):
    """Microseconds of attention forward, or why a backend has no plan."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    found = {}
    for name in ("float16", "bfloat16", "float32"):
        query = torch.randn(ATTENTION, dtype=getattr(torch, name), device=device)
        for backend in BACKENDS:
            key = f"{backend} {name}"
            try:
                with sdpa_kernel(getattr(SDPBackend, backend)):
                    attend = torch.nn.functional.scaled_dot_product_attention
                    seconds = measure(torch, device, lambda: attend(query, query, query))
                found[key] = round(seconds * 1e6, 1)
            except (RuntimeError, AttributeError) as problem:
                found[key] = str(problem).splitlines()[0][:80]
    return found


def convolution_plans(torch, device, check):
    """Microseconds of a convolution, its bias and relu; cuDNN's own fusions of batch
    norm are not for torch to ask for."""
    found = {}
    for name in ("float16", "bfloat16", "float32"):
        dtype = getattr(torch, name)
        x = torch.randn(check["shape"], dtype=dtype, device=device)
        x = x.to(memory_format=torch.channels_last)
        channels = check["shape"][1]
        weight = torch.randn(channels, channels, 3, 3, dtype=dtype, device=device)
        bias = torch.zeros(channels, dtype=dtype, device=device)
        convolve = torch.nn.functional.conv2d
        found[f"conv {name}"] = measure(
            torch, device, lambda: convolve(x, weight, padding=1)
        )
        found[f"conv+bias+relu {name}"] = measure(
            torch, device, lambda: torch.relu(convolve(x, weight, bias, padding=1))
        )
    return {name: round(seconds * 1e6, 1) for name, seconds in found.items()}


FUNCTIONS = {
    function.__name__: function
    for function in (
        properties, bandwidth, products, graph_gap, attention_plans, convolution_plans,
    )  # fmt: skip
}
