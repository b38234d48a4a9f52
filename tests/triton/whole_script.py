"""A script as people write them around a kernel: queries of the GPU, comparisons, benchmarks.

`verilocc-bench capture` runs it in the tests.
"""

import torch
import triton
import triton.language as tl
from triton.testing import do_bench

DEVICE = triton.runtime.driver.active.get_active_torch_device()
TARGET = triton.runtime.driver.active.get_current_target()
PROPERTIES = triton.runtime.driver.active.utils.get_device_properties(DEVICE.index)
IS_AMD = torch.version.hip is not None
assert (TARGET.backend == "hip") == IS_AMD
assert torch.cuda.is_available()
assert torch.cuda.get_device_capability()[0] in (8, 9)
SM_COUNT = torch.cuda.get_device_properties("cuda").multi_processor_count
assert PROPERTIES["multiprocessor_count"] == SM_COUNT
assert PROPERTIES["max_threads_per_sm"] // PROPERTIES["warpSize"] in (32, 64)


@triton.jit
def scaled_rows(source, target, rows, columns, scale, STAGES: tl.constexpr, BLOCK: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        places = tl.arange(0, BLOCK)
        described = tl.make_tensor_descriptor(
            source, shape=[rows, columns], strides=[columns, 1], block_shape=[1, BLOCK]
        )
        values = described.load([row, 0]).reshape([BLOCK])
        total = tl.sum(values, axis=0)
        tl.store(target + row * columns + places, values * scale / total, mask=places < columns)


def scaled(x):
    assert x.is_cuda
    assert x.device.type == "cuda"
    y = torch.empty_like(x, device=x.device)
    triton.set_allocator(lambda size, _align, _stream: torch.empty(size, device="cuda"))
    block = triton.next_power_of_2(x.shape[1])
    kernel = scaled_rows.warmup(x, y, *x.shape, 2.0, STAGES=2, BLOCK=block, grid=(1,))
    kernel._init_handles()
    per_sm = PROPERTIES["max_num_regs"] // (kernel.n_regs * PROPERTIES["warpSize"] * 4)
    per_sm = min(per_sm, PROPERTIES["max_shared_mem"] // max(kernel.metadata.shared, 1))
    kernel[(SM_COUNT * per_sm, 1, 1)](x, y, *x.shape, 2.0, 2, block)
    return y


x = torch.randn(64, 96, device=DEVICE)
assert torch.allclose(scaled(x), x * 2.0 / x.sum(1, keepdim=True))
torch.testing.assert_close(scaled(x), x)
triton.testing.assert_close(scaled(x), x)


@triton.testing.perf_report(
    [
        triton.testing.Benchmark(
            x_names=["rows", "columns"],
            x_vals=[64, (32, 200)],
            line_arg="provider",
            line_vals=["torch", "triton"],
            line_names=["torch", "Triton"],
            plot_name="scaled-rows",
            args={"dtype": torch.float16},
        )
    ]
)
def benchmark(rows, columns, dtype, provider):
    x = torch.randn(rows, columns, device=DEVICE, dtype=dtype)
    backend = getattr(torch, DEVICE.type)
    backend.set_stream(backend.Stream())
    if provider == "torch":
        wide = torch.empty(1 << 15, 1 << 15, dtype=dtype, device=DEVICE)
        product = wide @ wide  # takes minutes where it is computed
        assert product.shape == wide.shape
        return do_bench(lambda: torch.softmax(x, axis=-1))
    middle, low, high = do_bench(lambda: scaled(x), quantiles=[0.5, 0.2, 0.8])
    start, end = backend.Event(enable_timing=True), backend.Event(enable_timing=True)
    start.record()
    end.record()
    backend.synchronize()
    assert start.elapsed_time(end) > 0
    return middle, low, high


if __name__ == "__main__":
    benchmark.run(show_plots=True, print_data=True, save_path="plots")
    print("the whole script ran")
